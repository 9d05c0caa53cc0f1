#include "reconcilers/standalone/daemon_writes.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/applying_deferral.h"

namespace gso {
namespace {

// Reasons of actions and Events.
constexpr std::string_view kBegun = "StandaloneMPSDraining";
constexpr std::string_view kReplaced = "StandaloneMPSReplaced";
constexpr std::string_view kBackedOut = "StandaloneMPSBackedOut";
constexpr std::string_view kDeleted = "StandaloneMPSRestart";

PatchNode uncordon(const DaemonNode& node) {
  PatchNode patch;
  patch.name = node.name();
  if (node.in_change() && node.mark.change->cordoned && node.node->unschedulable) {
    patch.unschedulable = false;
    patch.resource_version = node.node->meta.resource_version;
  }
  return patch;
}

}  // namespace

void begin_change(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change{k8s::to_string(node.daemonset->key), node.daemonset->newest_hash, pass.s.now, false, {}};
  PatchNode patch;
  patch.name = node.name();
  patch.resource_version = node.node->meta.resource_version;
  if (!node.node->unschedulable && node.policy->rollout.cordon.value_or(true)) {
    change.cordoned = true;
    patch.unschedulable = true;
  }
  patch.set_annotations[std::string(kMpsDaemonChangeAnnotation)] = print_mps_daemon_change(change);
  pass.add(std::move(patch), kBegun,
           fmt::format("DaemonSet {} has a new template: the node is drained of GPU clients", change.daemonset), true,
           node.name());
}

void leave_change(Pass& pass, const DaemonNode& node, std::string_view why) {
  PatchNode patch = uncordon(node);
  patch.remove_annotations.insert(std::string(kMpsDaemonChangeAnnotation));
  pass.add(std::move(patch), kReplaced, std::string(why), false, node.name());
}

void defer_change(Pass& pass, const DaemonNode& node, std::string_view why) {
  MpsDaemonChange change = *node.mark.change;
  change.cordoned = false;
  change.deferred_until =
      pass.s.now + std::chrono::ceil<WallTime::duration>(deferral_length(node.policy->rollout.idle_timeout));
  PatchNode patch = uncordon(node);
  patch.set_annotations[std::string(kMpsDaemonChangeAnnotation)] = print_mps_daemon_change(change);
  pass.add(std::move(patch), kBackedOut,
           fmt::format("{}; the daemon is not replaced before {}", why, k8s::format_time(*change.deferred_until)),
           false, node.name());
}

void delete_old_pod(Pass& pass, const DaemonNode& node) {
  pass.add(
      DeletePod{node.pod->meta.key(), std::string(node.pod->meta.uid), std::nullopt, std::nullopt}, kDeleted,
      fmt::format("node {} gets the new template of DaemonSet {}", node.name(), k8s::to_string(node.daemonset->key)),
      true, node.name());
}

}  // namespace gso
