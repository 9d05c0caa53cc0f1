#include "tests/sim/story/boundary_rules.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

// As long as a view may be silent that counts as current, and the time that a look takes.
constexpr k8s::Duration kOldestView = std::chrono::seconds(160);
constexpr const char* kViewsOfAStart[] = {"nodes", "daemonsets", "configmaps", "sharingpolicies"};

bool is_true(const json& map, std::string_view key) {
  return map.value(std::string(key), "") == "true";
}

// Whether the object stops starts, by its kind.
bool is_stop(const k8s::Gvr& gvr, const json& object) {
  const json& spec = member(object, "spec");
  if (gvr.resource == "sharingpolicies")
    return member(spec, "rollout").value("paused", false) || spec.value("mode", "") == "Observe";
  if (gvr.resource == "sharingrollouts") return spec.value("paused", false) || spec.value("aborted", false);
  if (gvr.resource == "configmaps") return is_true(annotations(object), kPausedAnnotation);
  if (gvr.resource != "nodes") return false;
  return is_true(annotations(object), kHoldAnnotation) || is_true(labels(object), kHoldAnnotation);
}

}  // namespace

void BoundaryRules::attach(ApiServer* server) {
  server_ = server;
  server_->add_audit_listener([this](const AuditEntry& entry) { on_write(entry); });
}

void BoundaryRules::violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void BoundaryRules::on_write(const AuditEntry& entry) {
  if (entry.dry_run || entry.status >= 300) return;
  note_text(entry);
  if (entry.user != user_) return note_stop(entry);
  if (entry.gvr.resource == "leases" || entry.gvr.resource == "events") return;
  const std::string what = entry.verb + " of " + entry.gvr.resource + " " + k8s::to_string(entry.key);
  if (evidence_.strangers.contains(entry.key.ns)) violated("S13: the operator did " + what + ", which is a tenant's");
  judge_versions(entry);
  if (entry.gvr.resource != "nodes" || entry.before == nullptr || entry.after == nullptr) return;
  const std::string was = test::read_change(*entry.before).to, is = test::read_change(*entry.after).to;
  if (was.empty() && !is.empty()) judge_begin(entry, is);
  judge_proof(entry);
}

// A hold on a node is a person's, whoever wrote the node last.
void BoundaryRules::note_stop(const AuditEntry& entry) {
  const std::string id = entry.gvr.resource + " " + k8s::to_string(entry.key);
  if (entry.after != nullptr && is_stop(entry.gvr, *entry.after))
    stops_.try_emplace(id, entry.time);
  else
    stops_.erase(id);
}

void BoundaryRules::note_text(const AuditEntry& entry) {
  if (entry.gvr.resource != "sharingrollouts" || entry.after == nullptr) return;
  const json& spec = member(*entry.after, "spec");
  const std::string text = spec.value("profile", "");
  if (!text.empty()) texts_[spec.value("toRevision", "")].insert(text);
}

// S10 and S14: nobody has stopped it, and the views of those who might have are current.
void BoundaryRules::judge_begin(const AuditEntry& entry, const std::string& target) {
  for (const auto& [id, since] : stops_) {
    if (id.starts_with("nodes ") && id != "nodes " + entry.key.name) continue;
    if (id.starts_with("sharingrollouts ")) {
      const std::optional<json> rollout =
          server_->get({std::string(kGroup), "v1alpha1", "sharingrollouts"}, {"", id.substr(id.find(' ') + 1)});
      if (!rollout || member(*rollout, "spec").value("toRevision", "") != target) continue;
    }
    if (entry.time - since <= evidence_.reaction) continue;
    violated(fmt::format("S10: {} began a change to {} although {} has said stop since {}", entry.key.name, target, id,
                         k8s::format_time(since)));
  }
  for (const char* resource : kViewsOfAStart) {
    const auto silent = evidence_.silence ? evidence_.silence(entry.user_agent, resource) : std::nullopt;
    if (!silent || *silent <= kOldestView) continue;
    violated(fmt::format("S14: {} began a change to {}, and no watch of {} has brought anything for {}", entry.key.name,
                         target, resource, k8s::format_go_duration(*silent)));
  }
}

// S11: the plugin that serves has read a text of the revision that the node is said to run.
void BoundaryRules::judge_proof(const AuditEntry& entry) {
  const std::string key(kRevisionAnnotation);
  const std::string revision = annotations(*entry.after).value(key, "");
  if (revision.empty() || annotations(*entry.before).value(key, "") == revision) return;
  const auto known = texts_.find(revision);
  const auto served = evidence_.served_text ? evidence_.served_text(entry.key.name) : std::nullopt;
  if (known == texts_.end() || !served || known->second.contains(*served)) return;
  violated(fmt::format("S11: {} is said to run {}, but its plugin has read \"{}\"", entry.key.name, revision, *served));
}

// S14: records, keys and statuses carry the version that they were computed from.
void BoundaryRules::judge_versions(const AuditEntry& entry) {
  const bool is_versioned = entry.gvr.resource == "configmaps" || entry.subresource == "status";
  if (!is_versioned || entry.before == nullptr || entry.verb == "delete") return;
  const json body = json::parse(entry.body, nullptr, false);
  if (body.is_object() && !member(body, "metadata").value("resourceVersion", "").empty()) return;
  violated("S14: the operator did " + entry.verb + " of " + entry.gvr.resource + " " + k8s::to_string(entry.key) + " " +
           entry.subresource + " without the version that it had read: " + entry.body.substr(0, 300));
}

}  // namespace gso::sim
