// Verbs of `rollout` that turn a switch of a SharingRollout, a SharingPolicy or, where our CRDs are not served, of the
// ConfigMaps that device plugins mount.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>

#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "controller/reading/forbidden_hint.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/switch_value.h"

namespace gso {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kRollouts = "sharingrollouts";
constexpr const char* kPolicies = "sharingpolicies";

std::string spec_patch(const char* field, bool value) {
  return Json{{"spec", {{field, value}}}}.dump();
}

struct Switch {
  const char* field;  // Of the SharingRollout's spec.
  bool value;
  const char* done;  // "paused"
  const char* none;  // What no rollout is: "can be paused"
  const char* hint;  // What to do then.
  bool (*fits)(const RolloutFacts&);
};

const Switch& switch_of(RolloutOptions::Verb verb) {
  static constexpr auto kStarted = [](const RolloutFacts& facts) {
    return !facts.finished() && !facts.earlier_attempt;
  };
  static constexpr Switch kPause{
      "paused",
      true,
      "paused: no further node starts, nodes with a deleted pod finish, nodes that only wait are uncordoned",
      "can be paused",
      ". To block the next rollout: rollout pause policy/NAME",
      [](const RolloutFacts& facts) { return kStarted(facts) && !facts.rollout->paused; }};
  static constexpr Switch kResume{"paused",
                                  false,
                                  "resumed",
                                  "is paused by spec.paused",
                                  ". If a failed node stopped a rollout, fix the node, then: rollout start",
                                  [](const RolloutFacts& facts) { return kStarted(facts) && facts.rollout->paused; }};
  static constexpr Switch kApprove{
      "approved", true, "approved", "waits for approval", "", [](const RolloutFacts& facts) {
        return kStarted(facts) && !facts.rollout->approved &&
               (facts.phase == "AwaitingApproval" || facts.phase == "Starting");
      }};
  static constexpr Switch kAbort{
      "aborted",
      true,
      "aborted: nodes with a deleted pod finish, nodes that only wait are uncordoned, the others are not changed",
      "can be aborted",
      "",
      kStarted};
  switch (verb) {
    case RolloutOptions::Verb::pause:
      return kPause;
    case RolloutOptions::Verb::resume:
      return kResume;
    case RolloutOptions::Verb::approve:
      return kApprove;
    default:
      return kAbort;
  }
}

// Other stops that a `resume` does not lift.
std::string still_stopped(const World& world, const SharingRollout& rollout) {
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  if (policy != nullptr && policy->rollout.paused) {
    return fmt::format("policy {} is also paused. Resume it: rollout resume policy/{}", rollout.policy, rollout.policy);
  }
  const std::size_t slash = rollout.config_map.find('/');
  const ConfigMap* config_map =
      slash == std::string::npos
          ? nullptr
          : world.configmaps.find(ObjectKey{rollout.config_map.substr(0, slash), rollout.config_map.substr(slash + 1)});
  if (config_map != nullptr && is_switched_on(config_map->meta.annotations.get(kPausedAnnotation))) {
    return fmt::format(
        "ConfigMap {} also has the annotation {}. Remove it: kubectl annotate configmap {} --namespace {} {}-",
        rollout.config_map, kPausedAnnotation, config_map->meta.name, config_map->meta.ns.view(), kPausedAnnotation);
  }
  return {};
}

// The ConfigMaps that plugins mount, each once. Errors: there is none, or they may not be read.
k8s::Result<std::vector<k8s::ObjectKey>> mounted_config_maps(const RolloutCall& call) {
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(call.world, call.settings);
  std::set<k8s::ObjectKey> found;
  std::set<std::string> unread;
  for (const PluginInstallation& installation : index.installations()) {
    const k8s::ObjectKey key = installation.config_map_key();
    if (key.name.empty()) continue;
    if (call.world.configmaps.find(key) != nullptr) {
      found.insert(key);
    } else if (call.world.unsynced_namespaces.contains(installation.ns)) {
      unread.insert(k8s::to_string(key));
    }
  }
  if (!unread.empty())
    return k8s::fail(k8s::Reason::forbidden,
                     fmt::format("ConfigMap {} cannot be read, so nothing was written", fmt::join(unread, ", ")));
  if (found.empty()) return k8s::fail(k8s::Reason::invalid, "no device plugin mounts a ConfigMap");
  return std::vector<k8s::ObjectKey>(found.begin(), found.end());
}

// Those of them that carry the switch.
std::vector<k8s::ObjectKey> paused_config_maps(const RolloutCall& call) {
  std::vector<k8s::ObjectKey> out;
  const auto mounted = mounted_config_maps(call);
  for (const k8s::ObjectKey& key : mounted ? *mounted : std::vector<k8s::ObjectKey>()) {
    const ConfigMap* config_map = call.world.configmaps.find(key);
    if (config_map != nullptr && is_switched_on(config_map->meta.annotations.get(kPausedAnnotation)))
      out.push_back(key);
  }
  return out;
}

asio::awaitable<int> annotate_config_maps(RolloutCall* call, std::vector<k8s::ObjectKey> keys, bool pause) {
  Json body;
  body["metadata"]["annotations"][std::string(kPausedAnnotation)] = pause ? Json("true") : Json();
  const std::string text = body.dump();
  const k8s::Gvr gvr{"", "v1", "configmaps"};
  for (const k8s::ObjectKey& key : keys) {
    const k8s::WriteOptions options;
    const k8s::Result<std::string> patched = co_await call->client->merge_patch(gvr, key, text, options);
    if (!patched) co_return call->refuse(explain_error(patched.error(), "patch", gvr, key.ns));
    *call->out << fmt::format("ConfigMap {}: {} ({})\n", k8s::to_string(key), pause ? "paused" : "resumed",
                              kPausedAnnotation);
  }
  co_return 0;
}

std::string names_of(const std::vector<k8s::ObjectKey>& config_maps) {
  std::vector<std::string> names;
  for (const k8s::ObjectKey& key : config_maps) names.push_back(k8s::to_string(key));
  return fmt::format("{}", fmt::join(names, ", "));
}

asio::awaitable<int> pause_policy(RolloutCall* call, std::string name, bool pause) {
  const SharingPolicy* policy = call->world.policies.find(name);
  if (policy == nullptr) co_return call->refuse(fmt::format("SharingPolicy {} does not exist", name));
  const std::vector<k8s::ObjectKey> stopped = pause ? std::vector<k8s::ObjectKey>() : paused_config_maps(*call);
  const std::string too = stopped.empty()
                              ? std::string()
                              : fmt::format("{} is set on ConfigMap {}; `rollout resume` without a name removes it",
                                            kPausedAnnotation, names_of(stopped));
  if (!pause && !policy->rollout.paused) {
    co_return call->refuse(
        fmt::format("policy {} is not paused by spec.rollout.paused{}{}", name, too.empty() ? "" : "; ", too));
  }
  const std::string body = Json{{"spec", {{"rollout", {{"paused", pause}}}}}}.dump();
  const bool done = co_await patch_ours(call, kPolicies, name, body);
  if (!done) co_return 2;
  *call->out << fmt::format("policy {}: {}\n", name, pause ? "paused: no further node starts" : "resumed");
  if (!too.empty()) *call->out << "  " << too << "\n";
  co_return 0;
}

}  // namespace

asio::awaitable<int> pause_config_maps(RolloutCall* call, bool pause) {
  const k8s::Result<std::vector<k8s::ObjectKey>> keys = mounted_config_maps(*call);
  if (!keys) co_return call->refuse(keys.error().message);
  const int code = co_await annotate_config_maps(call, *keys, pause);
  co_return code;
}

asio::awaitable<int> turn_switch(RolloutCall* call) {
  const RolloutOptions::Verb verb = call->options.verb;
  const bool pauses = verb == RolloutOptions::Verb::pause || verb == RolloutOptions::Verb::resume;
  const Switch& wanted = switch_of(verb);
  const std::optional<std::string> policy = policy_of(call->options.name);
  int code = 0;
  if (pauses && policy) {
    code = co_await pause_policy(call, *policy, wanted.value);
    co_return code;
  }
  const RolloutChoice choice{call->options.name, call->options.all, wanted.hint};
  const auto chosen = choose(call->world, choice, wanted.fits, wanted.none);
  // What was paused while our CRDs were not served, or by hand, is to be found again.
  const bool any = verb == RolloutOptions::Verb::resume && call->options.name.empty();
  const std::vector<k8s::ObjectKey> by_config_map =
      !chosen && any ? paused_config_maps(*call) : std::vector<k8s::ObjectKey>();
  if (!by_config_map.empty()) {
    code = co_await annotate_config_maps(call, by_config_map, false);
    co_return code;
  }
  if (!chosen) co_return call->refuse(chosen.error().message);
  for (const RolloutFacts& facts : *chosen) {
    const std::string name = facts.rollout->meta.name;
    const std::string body = spec_patch(wanted.field, wanted.value);
    const bool done = co_await patch_ours(call, kRollouts, name, body);
    if (!done) co_return 2;
    *call->out << fmt::format("{}: {}\n", name, wanted.done);
    const std::string stopped =
        verb == RolloutOptions::Verb::resume ? still_stopped(call->world, *facts.rollout) : std::string();
    if (!stopped.empty()) *call->out << "  " << stopped << "\n";
  }
  co_return code;
}

}  // namespace gso
