// Parts of the assessment that planners share: pods, changes, policies, holders.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"

namespace gso {

bool NodeAssessment::is_unreadable() const {
  return obstacle.code == kChangeUnreadable;
}

bool NodeAssessment::is_held() const {
  return holder == kHeld;
}

std::string shown_difference(const NodeAssessment& assessment) {
  if (!assessment.verified.mismatch.empty()) return assessment.verified.mismatch;
  return "a pod of the plugin, GFD or MPS is missing or not Ready";
}

bool has_missing_devices(const NodeAssessment& a) {
  const bool fewer = a.verified.unhealthy || a.missing_devices() > 0;
  return a.pods_ready && (a.verified.shortfall || (a.verified.ok && fewer));
}

std::string_view excuse_of(const NodeAssessment& a) {
  if (!a.holder.empty()) return a.holder;
  return a.ready ? std::string_view() : kNodesNotReady;
}

bool is_settled(const NodeAssessment& a) {
  return a.phase == Phase::up_to_date && (a.matches() || has_missing_devices(a));
}

bool is_busy(const NodeAssessment& a) {
  return a.is_unavailable() || a.change != nullptr || a.is_unreadable();
}

bool is_out_of_service(const NodeAssessment& a) {
  return a.change == nullptr ? a.availability == Availability::no_gpus : a.change->failed.has_value();
}

bool serves_cordoned(const NodeAssessment& a) {
  return a.availability == Availability::cordoned && a.change == nullptr;
}

bool can_prove(const NodeAssessment& a) {
  return a.availability == Availability::available || serves_cordoned(a);
}

bool is_repair(const NodeAssessment& a) {
  if (a.change == nullptr) return a.availability == Availability::no_gpus;
  const bool failed_before = a.change->failed && a.change->to != a.target.view();
  return failed_before && !was_sound(*a.change);
}

bool drifts(const NodeAssessment& a) {
  return a.phase == Phase::up_to_date && !is_settled(a);
}

std::string missing_devices_text(const NodeAssessment& a, const Verification& verified) {
  if (!verified.ok) return verified.mismatch;
  if (verified.unhealthy) return "allocatable is below capacity: a device is unhealthy";
  return fmt::format("{} of {} GPUs {} missing: the node had {} before, and GFD and the plugin count {} now",
                     a.missing_devices(), a.counted_devices + a.missing_devices(),
                     a.missing_devices() == 1 ? "is" : "are", a.counted_devices + a.missing_devices(),
                     a.counted_devices);
}

NodePods sort_pods(const PluginInstallation& installation, const std::vector<const Pod*>& operand_pods) {
  NodePods out;
  for (const Pod* pod : operand_pods) {
    const auto* owner = pod->meta.controller();
    const Operand* operand = owner ? installation.by_uid(owner->uid.view()) : nullptr;
    if (operand == nullptr || pod->phase == "Succeeded" || pod->phase == "Failed") continue;
    out.of(operand->component).push_back(pod);
  }
  for (auto* pods : {&out.plugin, &out.gfd, &out.mps}) {
    std::ranges::sort(*pods, {}, [](const Pod* pod) {
      return std::tuple(-pod->meta.creation_timestamp.time_since_epoch(), std::string_view(pod->meta.name));
    });
  }
  return out;
}

bool has_failing_container(const Pod& pod) {
  const auto fails = [](const ContainerStatus& container) { return cannot_start(container.waiting_reason.view()); };
  return std::ranges::any_of(pod.containers, fails) || std::ranges::any_of(pod.init_containers, fails);
}

bool is_serving(const Pod& pod) {
  return pod.ready && pod.phase == "Running" && !pod.meta.deletion_timestamp && !has_failing_container(pod);
}

bool created_after(const Pod& pod, WallTime moment) {
  using std::chrono::seconds;
  return std::chrono::floor<seconds>(pod.meta.creation_timestamp) > std::chrono::floor<seconds>(moment);
}

bool is_from_the_future(const Pod& pod, WallTime now) {
  constexpr Duration kClocksDiffer = std::chrono::seconds(10);
  return pod.meta.creation_timestamp > now + kClocksDiffer;
}

bool is_from_the_future(const NodePods& pods, WallTime now) {
  return std::ranges::any_of(std::array{&pods.plugin, &pods.gfd, &pods.mps}, [&](const auto* of_component) {
    return !of_component->empty() && is_from_the_future(*of_component->front(), now);
  });
}

WallTime::duration clock_difference(const PlannerSettings& settings) {
  return std::chrono::ceil<WallTime::duration>(settings.clock_difference);
}

bool loaded_after(const Pod& pod, WallTime moment, Duration projection) {
  if (created_after(pod, moment)) return true;
  return std::ranges::any_of(pod.containers, [&](const ContainerStatus& container) {
    // The first start counts as the pod's creation: only the node's own clock would show a later time.
    return container.restarts > 0 && container.running && container.started_at &&
           *container.started_at > moment + projection && component_of_container(container.name.view());
  });
}

std::vector<const SharingPolicy*> policies_in_order(const World& world, const SharingPolicy& built_in,
                                                    const std::map<std::string, SharingPolicy>& held) {
  std::vector<const SharingPolicy*> out;
  for (const auto& [key, policy] : world.policies.all())
    if (!policy->meta.deletion_timestamp) out.push_back(policy.get());
  for (const auto& [name, policy] : held) out.push_back(&policy);
  std::ranges::sort(out, {}, [](const SharingPolicy* policy) {
    return std::tuple(-policy->priority, policy->meta.creation_timestamp, std::string_view(policy->meta.name));
  });
  // A policy that is being deleted governs nothing, `default` included: its nodes are then governed like those of a
  // cluster without it, and what it wrote can be reverted.
  const bool has_default =
      std::ranges::any_of(out, [](const auto* policy) { return policy->meta.name == kDefaultPolicy; });
  if (!has_default) out.push_back(&built_in);
  return out;
}

std::string_view foreign_holder(const Node& node, const PluginInstallation& installation) {
  const auto upgrade = node.meta.labels.get(kDriverUpgradeState).value_or("");
  // "upgrade-required" only waits in the upgrade controller's queue. After "upgrade-failed" the controller keeps its
  // cordon, and goes on by itself once the driver's pod is well.
  constexpr std::string_view kIdle[] = {"", "upgrade-done", "upgrade-required"};
  if (std::ranges::find(kIdle, upgrade) == std::end(kIdle)) return kDriverUpgrade;
  const auto mig = node.meta.labels.get(kMigConfigState).value_or("");
  if (mig == "pending" || mig == "rebooting") return kMigChange;
  const auto pauses = [](std::string_view value) {
    if (!value.starts_with("paused-for-")) return std::string_view();
    return value.starts_with("paused-for-mig") ? kMigChange : kDriverUpgrade;
  };
  if (const auto who = pauses(node.meta.labels.get(kDeployClients).value_or("")); !who.empty()) return who;
  for (const Operand& operand : installation.operands) {
    for (const auto& [key, value] : operand.node_selector) {
      const auto who = pauses(node.meta.labels.get(key).value_or(""));
      if (!who.empty() && selects(operand, node, true) != Selects::no) return who;
    }
  }
  if (quarantine_of(node)) return kQuarantined;
  const MpsDaemonChangeOnNode daemon = mps_daemon_change_on(node);
  return daemon.change || !daemon.problem.empty() ? kStandaloneMpsChange : std::string_view();
}

std::string_view holder_of(const Node& node, const PluginInstallation& installation) {
  return is_held(node) ? kHeld : foreign_holder(node, installation);
}

std::string describe_holder(std::string_view holder, const Node& node) {
  if (holder == kHeld) return hold_of(node) + " is set";
  if (holder == kDriverUpgrade) {
    constexpr std::string_view kFailed = "upgrade-failed";
    const bool failed = node.meta.labels.get(kDriverUpgradeState) == kFailed;
    return failed ? fmt::format(
                        "a driver upgrade has failed on the node (label {}={}): the operator continues once the "
                        "driver's pod is Ready and the upgrade is done",
                        kDriverUpgradeState, kFailed)
                  : "a driver upgrade is in progress on the node";
  }
  if (holder == kMigChange) return "the MIG manager is changing the node";
  if (holder == kStandaloneMpsChange) return describe(mps_daemon_change_on(node));
  const auto quarantine = quarantine_of(node);
  return quarantine ? fmt::format("{} ({})", quarantine->by, quarantine->mark) : std::string(holder);
}

}  // namespace gso
