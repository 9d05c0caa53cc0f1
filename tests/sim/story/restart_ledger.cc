#include "tests/sim/story/restart_ledger.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "reconcilers/labels.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

void RestartLedger::attach(ApiServer* server) {
  server_ = server;
  server_->add_audit_listener([this](const AuditEntry& entry) { on_write(entry); });
}

void RestartLedger::violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void RestartLedger::on_write(const AuditEntry& entry) {
  if (entry.user != user_ || entry.dry_run || entry.status >= 300) return;
  if (entry.gvr.resource == "events") return;
  if (entry.gvr.resource == "leases") {
    if (entry.after == nullptr) return;
    holder_ = entry.user_agent;
    renewed_ = entry.time;
    lease_ = std::chrono::seconds((*entry.after)["spec"].value("leaseDurationSeconds", 0));
    return;
  }
  writers_.insert(entry.user_agent);
  const std::string what = entry.verb + " " + entry.gvr.resource + " " + k8s::to_string(entry.key);
  if (entry.user_agent != holder_)
    violated("S4: " + entry.user_agent + " did " + what + ", but the lease is " + holder_ + "'s");
  if (entry.time - renewed_ > lease_) violated("S4: " + what + " came after the lease had run out");
  if (entry.gvr.resource == "pods" && entry.verb == "delete") note_deletion(entry);
}

void RestartLedger::note_deletion(const AuditEntry& entry) {
  if (entry.before == nullptr) return;
  const json& pod = *entry.before;
  const std::string node = pod["spec"].value("nodeName", "");
  const json owners = pod["metadata"].value("ownerReferences", json::array());
  const std::optional<json> on = server_->get(kNodes, {"", node});
  if (!on || owners.empty()) return;
  const std::string target =
      (*on)["metadata"].value("annotations", json::object()).value(std::string(kTargetAnnotation), "");
  if (target.empty()) return;
  ++deletions_;
  // The same pod again is harmless: a restarted operator may not have seen that it is going.
  auto& uids = deleted_[{node, target, owners[0].value("name", "")}];
  uids.insert(pod["metadata"].value("uid", ""));
  if (uids.size() > most_) {
    violated("Again: " + k8s::to_string(entry.key) + " was one pod too many of " + owners[0].value("name", "") +
             " to be deleted on " + node + "'s way to " + target);
  }
}

}  // namespace gso::sim
