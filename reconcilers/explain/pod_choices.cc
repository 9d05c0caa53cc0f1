#include "reconcilers/explain/pod_choices.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "reconcilers/explain/shown_state.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/rollout/evictions.h"

namespace gso {
namespace {

// "the administrator of policy x sets spec.rollout.FIELD: VALUE (kubectl edit …)"; without the object the flags govern.
std::string by_policy(bool has_object, std::string_view policy, std::string_view field, std::string_view flag,
                      std::string_view value, std::string_view effect) {
  if (!has_object)
    return fmt::format("the administrator of the operator sets --{} {} (chart value config.{}): {}", flag, value, flag,
                       effect);
  return fmt::format(
      "the administrator of policy {} sets spec.rollout.{}: {} (kubectl edit sharingpolicies.gpusharing.dev {}): {}",
      policy, field, value, policy, effect);
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

}  // namespace

std::vector<std::string> pod_choices(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  std::vector<std::string> out;
  const bool can_wait = a.phase == Phase::draining || a.phase == Phase::pending || a.phase == Phase::restarting;
  if (!can_wait || pass.stop_of(a) != nullptr || blocking_pods_of(pass.world(), node.meta.name).empty()) return out;
  const std::optional<BlockedBy> blocked = pass.blocked_by_pods(node.meta.name, a);
  const std::string_view reason = blocked ? blocked->reason : kWaitingForWorkloads;
  const SharingPolicy& policy = pass.index().policy(pass.world(), a.policy.view());
  const bool has_object = pass.world().policies.find(a.policy.view()) != nullptr;
  const RolloutSpec& rollout = policy.rollout;
  out.emplace_back("nobody acts: the operator changes the node when the pods have ended");
  if (a.phase == Phase::draining)
    out.back() += fmt::format(", and changes other nodes first after idleTimeout ({})",
                              k8s::format_go_duration(rollout.idle_timeout));
  out.push_back(by_owners(reason));
  if (reason == kRenameStrandsPods) return out;
  if (rollout.workloads == WorkloadMode::wait_for_idle) {
    out.push_back(by_policy(has_object, policy.meta.name, "workloads", "workloads", "Evict",
                            "the operator evicts the pods, with their grace period and within PodDisruptionBudgets"));
  }
  if (rollout.workloads == WorkloadMode::evict && reason == kForbidden)
    out.emplace_back(
        "whoever installs the operator lets it evict pods: chart value eviction.enabled=true (helm upgrade)");
  if (blocked && has_object && blocked->message.contains(kEvictBarePodsField)) {
    out.push_back(by_policy(has_object, policy.meta.name, "evictBarePods", "", "true",
                            "the operator also evicts pods without a controller, which nobody creates again"));
  }
  if (rollout.workloads != WorkloadMode::interrupt)
    out.push_back(by_policy(has_object, policy.meta.name, "workloads", "workloads", "Interrupt",
                            "the operator does not wait, and the GPU work of the pods fails"));
  return out;
}

}  // namespace gso
