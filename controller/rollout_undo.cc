// `rollout undo`. A profile that we own goes back by itself. For others the rollout is paused and the text that was
// verified last is printed; it is written into the ConfigMap only when asked for, and never where somebody keeps that
// in step with Git.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>

#include "controller/rollout_verbs.h"
#include "controller/rollout_view.h"
#include "reconcilers/fleet.h"
#include "reconcilers/fleet_index.h"
#include "reconcilers/labels.h"
#include "reconcilers/profile_book.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kForbiddenByOwner = 1;

// Managers of fields and marks of objects, by who they belong to.
struct Mark {
  std::string_view text;
  std::string_view owner;
};
constexpr Mark kManagers[] = {
    {"argocd", "Argo CD"}, {"kustomize-controller", "Flux"}, {"helm-controller", "Flux"}, {"flux", "Flux"},
    {"helm", "Helm"},      {"source-controller", "Flux"}};
constexpr Mark kAnnotations[] = {{"argocd.argoproj.io/tracking-id", "Argo CD"}, {"meta.helm.sh/release-name", "Helm"}};
constexpr Mark kLabels[] = {{"argocd.argoproj.io/instance", "Argo CD"},
                            {"kustomize.toolkit.fluxcd.io/name", "Flux"},
                            {"helm.toolkit.fluxcd.io/name", "Flux"}};

std::string owner_by_keys(const Json& metadata, const char* field, std::span<const Mark> marks) {
  const auto map = metadata.find(field);
  if (map == metadata.end() || !map->is_object()) return {};
  for (const Mark& mark : marks) {
    const auto at = map->find(std::string(mark.text));
    if (at != map->end() && at->is_string())
      return fmt::format("{} ({} {}={})", mark.owner, field, mark.text, at->get<std::string>());
  }
  return {};
}

// What goes back, and to what.
struct Undo {
  const SharingRollout* rollout = nullptr;
  std::string revision;  // Empty: nothing is known to go back to.
  std::string text;      // Empty: not on record.
  std::string why;       // Of the choice, for people.
};

bool is_ours(const World& world, const SharingRollout& rollout) {
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  return policy != nullptr && policy->inline_profile &&
         inline_profile_key(policy->meta.name, *policy->inline_profile) == rollout.key;
}

// It goes to what its policy's nodes should run at present.
bool is_present(const FleetIndex& index, const SharingRollout& rollout) {
  const auto& units = index.impl().units;
  const auto unit = units.find(UnitKey{rollout.policy, rollout.config_map, rollout.key});
  return unit != units.end() && unit_target(unit->second) == rollout.to_revision;
}

// The rollout under way, else the last one, of the present revision where that is on record.
k8s::Result<RolloutFacts> chosen_rollout(const RolloutCall& call, const FleetIndex& index) {
  const RolloutChoice any{call.options.name, true};
  const auto running =
      choose(call.world, any, [](const RolloutFacts& facts) { return !facts.finished(); }, "that is under way");
  if (running && running->size() == 1) return running->front();
  if (running) {
    std::string names;
    for (const RolloutFacts& facts : *running) names += (names.empty() ? "" : ", ") + facts.rollout->meta.name;
    return k8s::fail(k8s::Reason::invalid, fmt::format("several rollouts are under way: {}. Name one of them", names));
  }
  const auto present = choose(
      call.world, any,
      [&](const RolloutFacts& facts) { return facts.phase != "Superseded" && is_present(index, *facts.rollout); },
      "to the present revision");
  if (present) return present->front();
  const auto done = choose(
      call.world, any, [](const RolloutFacts& facts) { return facts.phase != "Superseded"; }, "that could be undone");
  if (!done) return std::unexpected(done.error());
  return done->front();
}

std::string text_on_record(const RolloutCall& call, const FleetRecord* record, const SharingRollout& of,
                           const std::string& revision) {
  if (record != nullptr) {
    if (const auto kept = record->texts.find(revision); kept != record->texts.end()) return kept->second;
  }
  for (const auto& [key, rollout] : call.world.rollouts.all()) {
    if (rollout->to_revision == revision && rollout->config_map == of.config_map && !rollout->profile.empty())
      return rollout->profile;
  }
  return {};
}

Undo find_undo(const RolloutCall& call, const FleetRecord* record, const SharingRollout& rollout) {
  Undo out;
  out.rollout = &rollout;
  const std::string id = rollout.config_map + "/" + rollout.key;
  const auto at = [&](const std::map<std::string, std::string>& revisions) {
    const auto entry = revisions.find(id);
    return entry == revisions.end() || entry->second == rollout.to_revision ? std::string() : entry->second;
  };
  if (!call.options.to_revision.empty()) {
    out.revision = call.options.to_revision;
    out.why = "asked for";
  } else if (record != nullptr && !at(record->verified).empty()) {
    out.revision = at(record->verified);
    out.why = "verified last";
  } else if (record != nullptr && !at(record->previous).empty()) {
    out.revision = at(record->previous);
    out.why = "verified before it";
  } else {
    for (const RolloutFacts& facts : all_rollouts(call.world)) {
      const SharingRollout& other = *facts.rollout;
      const bool same = other.config_map == rollout.config_map && other.key == rollout.key &&
                        other.to_revision != rollout.to_revision;
      if (!same || facts.phase != "Completed" || !out.revision.empty()) continue;
      out.revision = other.to_revision;
      out.why = "completed before it";
    }
  }
  out.text = text_on_record(call, record, rollout, out.revision);
  return out;
}

k8s::ObjectKey config_map_of(const SharingRollout& rollout) {
  const std::size_t slash = rollout.config_map.find('/');
  if (slash == std::string::npos) return {"", rollout.config_map};
  return {rollout.config_map.substr(0, slash), rollout.config_map.substr(slash + 1)};
}

asio::awaitable<int> write_back(RolloutCall* call, Undo undo) {
  const k8s::Gvr gvr{"", "v1", "configmaps"};
  const k8s::ObjectKey key = config_map_of(*undo.rollout);
  const k8s::CallOptions reading;
  const k8s::Result<std::string> found = co_await call->client->get(gvr, key, reading);
  if (!found) co_return call->refuse(found.error().message);
  const std::string owner = gitops_owner(*found);
  if (!owner.empty()) {
    *call->err << fmt::format(
        "gpu-sharing-operator rollout: ConfigMap {} is not written: {} keeps it, and would undo the undo. Put the "
        "text below into its source\n",
        undo.rollout->config_map, owner);
    *call->out << undo.text;
    co_return kForbiddenByOwner;
  }
  const Json config_map = Json::parse(*found, nullptr, false);
  if (config_map.value("immutable", false)) {
    co_return call->refuse(fmt::format("ConfigMap {} is immutable", undo.rollout->config_map));
  }
  Json body;
  body["metadata"]["resourceVersion"] = config_map["metadata"].value("resourceVersion", "");
  body["data"][undo.rollout->key] = undo.text;
  const std::string text = body.dump();
  const k8s::WriteOptions options;
  const k8s::Result<std::string> written = co_await call->client->merge_patch(gvr, key, text, options);
  if (!written) co_return call->refuse(written.error().message);
  *call->out << fmt::format("ConfigMap {} key {}: {} is back ({}); its rollout needs no canary where it was verified\n",
                            undo.rollout->config_map, undo.rollout->key, undo.revision, undo.why);
  co_return 0;
}

asio::awaitable<int> undo_ours(RolloutCall* call, std::string name, std::string policy) {
  Json body;
  body["metadata"]["annotations"][std::string(kUndoAnnotation)] = "true";
  const std::string text = body.dump();
  const bool done = co_await patch_ours(call, "sharingrollouts", name, text);
  if (!done) co_return 2;
  *call->out << fmt::format(
      "{}: taken back: the nodes of policy {} go to what was verified before. `rollout start policy/{}` tries it "
      "again; change spec.profile to keep it so\n",
      name, policy, policy);
  co_return 0;
}

asio::awaitable<bool> pause(RolloutCall* call, std::string name) {
  const std::string body = Json{{"spec", {{"paused", true}}}}.dump();
  const bool paused = co_await patch_ours(call, "sharingrollouts", name, body);
  if (paused) *call->err << fmt::format("{}: paused: nodes in flight finish, no further one starts\n", name);
  co_return paused;
}

// The policy names this key, whose text has been verified: it is the choice of the key that would have to go back.
bool is_choice_of_key(const World& world, const FleetRecord* record, const SharingRollout& rollout) {
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  if (policy == nullptr || policy->config_map_key != rollout.key || record == nullptr) return false;
  const auto verified = record->verified.find(rollout.config_map + "/" + rollout.key);
  return verified != record->verified.end() && verified->second == rollout.to_revision;
}

std::string key_before(const World& world, const SharingRollout& rollout) {
  for (const RolloutFacts& facts : all_rollouts(world)) {
    const SharingRollout& other = *facts.rollout;
    const bool same =
        other.policy == rollout.policy && other.config_map == rollout.config_map && other.key != rollout.key;
    if (same && facts.phase == "Completed") return other.key;
  }
  return {};
}

void print_text(const RolloutCall& call, const Undo& undo) {
  const SharingRollout& rollout = *undo.rollout;
  if (call.options.json) {
    const Json document{{"rollout", rollout.meta.name},
                        {"configMap", rollout.config_map},
                        {"key", rollout.key},
                        {"revision", undo.revision},
                        {"why", undo.why},
                        {"text", undo.text}};
    *call.out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  *call.out << fmt::format("# Put this back as key {} of ConfigMap {} ({}, {}), or say --write-configmap:\n{}{}",
                           rollout.key, rollout.config_map, undo.revision, undo.why, undo.text,
                           undo.text.ends_with('\n') ? "" : "\n");
}

}  // namespace

std::string gitops_owner(const std::string& config_map_json) {
  const Json object = Json::parse(config_map_json, nullptr, false);
  const auto metadata = object.is_object() ? object.find("metadata") : object.end();
  if (!object.is_object() || metadata == object.end() || !metadata->is_object()) return {};
  std::string owner = owner_by_keys(*metadata, "annotations", kAnnotations);
  if (owner.empty()) owner = owner_by_keys(*metadata, "labels", kLabels);
  if (!owner.empty()) return owner;
  const auto entries = metadata->find("managedFields");
  if (entries == metadata->end() || !entries->is_array()) return {};
  for (const Json& entry : *entries) {
    const std::string manager = entry.is_object() ? entry.value("manager", "") : "";
    const auto fields = entry.is_object() ? entry.find("fieldsV1") : entry.end();
    if (!entry.is_object() || fields == entry.end() || !fields->is_object() || !fields->contains("f:data")) continue;
    for (const Mark& mark : kManagers) {
      if (manager.starts_with(mark.text)) return fmt::format("{} (field manager {})", mark.owner, manager);
    }
  }
  return {};
}

asio::awaitable<int> rollout_undo(RolloutCall* call) {
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(call->world, call->settings);
  const k8s::Result<RolloutFacts> chosen = chosen_rollout(*call, index);
  if (!chosen) co_return call->refuse(chosen.error().message);
  const SharingRollout& rollout = *chosen->rollout;
  const std::string name = rollout.meta.name;
  int code = 0;
  if (is_ours(call->world, rollout) && call->options.to_revision.empty()) {
    code = co_await undo_ours(call, name, rollout.policy);
    co_return code;
  }
  const auto& record = index.impl().record;
  if (call->options.to_revision.empty() && is_choice_of_key(call->world, record ? &*record : nullptr, rollout)) {
    bool stopped = chosen->finished() || chosen->earlier_attempt || rollout.paused;
    if (!stopped) stopped = co_await pause(call, name);
    if (!stopped) co_return 2;
    const std::string before = key_before(call->world, rollout);
    *call->out << fmt::format(
        "policy {} chooses key {}, whose text is as it was verified: set its spec.profile.configMapKey back{}\n",
        rollout.policy, rollout.key, before.empty() ? "" : " to " + before);
    co_return 0;
  }
  const Undo undo = find_undo(*call, record ? &*record : nullptr, rollout);
  if (undo.text.empty()) {
    co_return call->refuse(
        undo.revision.empty()
            ? fmt::format("nothing is known to have been verified for {} key {} before {}", rollout.config_map,
                          rollout.key, rollout.to_revision)
            : fmt::format("the text of {} is not on record; `rollout history` lists those that are", undo.revision));
  }
  if (call->options.write_config_map) {
    code = co_await write_back(call, undo);
    co_return code;
  }
  if (!chosen->finished() && !chosen->earlier_attempt && !rollout.paused) {
    const bool paused = co_await pause(call, name);
    if (!paused) co_return 2;
  }
  print_text(*call, undo);
  co_return 0;
}

}  // namespace gso
