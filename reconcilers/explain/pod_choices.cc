#include "reconcilers/explain/pod_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "reconcilers/cluster/unread_decisions.h"
#include "reconcilers/explain/shown_state.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/rollout/evictions.h"

namespace gso {
namespace {

constexpr std::string_view kEvictsPods =
    "the operator evicts the pods, with their grace period and within PodDisruptionBudgets (it needs the chart value "
    "eviction.enabled=true, which whoever installs the operator sets)";

struct Setting {
  std::string_view field;
  std::string_view value;
};

// "the administrator of policy x sets spec.rollout.FIELD: VALUE and … (kubectl edit …)"
std::string by_policy(std::string_view policy, const std::vector<Setting>& settings, std::string_view effect) {
  std::string fields;
  for (const Setting& setting : settings)
    fields += fmt::format("{}spec.rollout.{}: {}", fields.empty() ? "" : " and ", setting.field, setting.value);
  return fmt::format("the administrator of policy {} sets {} (kubectl edit sharingpolicies.gpusharing.dev {}): {}",
                     policy, fields, policy, effect);
}

// Without an object of the policy the flags govern; `workloads` is one, and evictBarePods is none.
std::string by_flag(std::string_view value, std::string_view effect) {
  return fmt::format("the administrator of the operator sets --workloads {} (chart value config.workloads): {}", value,
                     effect);
}

// What the owners of the pods, or of their budgets, can do.
std::string by_owners(std::string_view reason) {
  if (reason == kPdbRefuses)
    return "the owners of the pods scale the workload up, or change its PodDisruptionBudget, so that a pod can be "
           "evicted";
  if (reason == kRenameStrandsPods)
    return "the owners of the pods request the resource that the node will serve, or the owner of the profile keeps "
           "its name";
  if (reason == kProtectedNamespace)
    return "the owners of the pods delete them, or move them to another namespace: the operator evicts no pod there";
  return "the owners of the pods end them, or delete them";
}

// The settings with which the operator evicts enough of the pods that block the node; empty: with none. `why` gets what
// keeps it from that.
std::vector<std::string> by_evicting(const ReadingPass& pass, const std::string& node, const NodeAssessment& a,
                                     const SharingPolicy& policy, bool has_object, std::string& why) {
  const bool evicts = policy.rollout.workloads == WorkloadMode::evict;
  const EvictionOutlook as_it_is = pass.eviction_outlook(node, a, policy.rollout.evict_bare_pods);
  if (as_it_is.frees) {
    if (evicts) return {};
    return {has_object ? by_policy(policy.meta.name, {{"workloads", "Evict"}}, kEvictsPods)
                       : by_flag("Evict", kEvictsPods)};
  }
  const EvictionOutlook with_bare = pass.eviction_outlook(node, a, true);
  if (!with_bare.frees) {
    why = with_bare.why;
    return {};
  }
  if (!has_object) {
    why =
        fmt::format("only a SharingPolicy can let it evict pods without a controller ({}: true)", kEvictBarePodsField);
    return {};
  }
  std::vector<Setting> settings;
  if (!evicts) settings.push_back({"workloads", "Evict"});
  settings.push_back({"evictBarePods", "true"});
  const bool one = with_bare.bare.waiting.size() == 1;
  return {by_policy(policy.meta.name, settings,
                    fmt::format("{}. {} {} no controller, so nothing creates {} again",
                                evicts ? "the operator evicts them as well" : kEvictsPods, with_bare.bare.names(),
                                one ? "has" : "have", one ? "it" : "them"))};
}

}  // namespace

std::vector<std::string> pod_choices(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  std::vector<std::string> out;
  const bool can_wait = a.phase == Phase::draining || a.phase == Phase::pending || a.phase == Phase::restarting;
  if (!can_wait || pass.stop_of(a) != nullptr || blocking_pods_of(pass.world(), node.meta.name).empty()) return out;
  const std::optional<BlockedBy> blocked = pass.blocked_by_pods(node.meta.name, a);
  const std::string_view reason = blocked ? blocked->reason : kWaitingForWorkloads;
  const SharingPolicy& policy = pass.index().policy(pass.world(), a.policy.view());
  const bool has_object =
      pass.world().policies.find(a.policy.view()) != nullptr || sharing_objects_unread(pass.world());
  const RolloutSpec& rollout = policy.rollout;
  out.emplace_back("nobody acts: the operator changes the node when the pods have ended");
  if (a.phase == Phase::draining)
    out.back() += fmt::format(", and changes other nodes first after idleTimeout ({})",
                              k8s::format_go_duration(rollout.idle_timeout));
  out.push_back(by_owners(reason));
  if (reason == kRenameStrandsPods) return out;
  if (rollout.workloads == WorkloadMode::evict && reason == kForbidden)
    out.emplace_back(
        "whoever installs the operator lets it evict pods: chart value eviction.enabled=true (helm upgrade)");
  if (rollout.workloads != WorkloadMode::interrupt) {
    std::string why;
    std::ranges::move(by_evicting(pass, node.meta.name, a, policy, has_object, why), std::back_inserter(out));
    if (!why.empty() && rollout.workloads == WorkloadMode::wait_for_idle)
      out[1] += fmt::format(". `workloads: Evict` does not help here: {}", why);
    constexpr std::string_view kInterrupts = "the operator does not wait, and the GPU work of the pods fails";
    out.push_back(has_object ? by_policy(policy.meta.name, {{"workloads", "Interrupt"}}, kInterrupts)
                             : by_flag("Interrupt", kInterrupts));
  }
  return out;
}

}  // namespace gso
