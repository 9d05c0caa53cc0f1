#include "reconcilers/standalone/daemon_writes.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
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

void set_mark(PatchNode& patch, const MpsDaemonChange& change) {
  patch.set_annotations[std::string(kMpsDaemonChangeAnnotation)] = print_mps_daemon_change(change);
}

PatchNode marked(const DaemonNode& node, const MpsDaemonChange& change) {
  PatchNode patch;
  patch.name = node.name();
  patch.resource_version = node.node->meta.resource_version;
  set_mark(patch, change);
  return patch;
}

}  // namespace

void begin_change(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change;
  change.daemonset = k8s::to_string(node.daemonset->key);
  change.to = node.daemonset->newest_hash;
  change.begun = pass.s.now;
  change.cordoned = !node.node->unschedulable && node.policy->rollout.cordon.value_or(true);
  PatchNode patch = marked(node, change);
  if (change.cordoned) patch.unschedulable = true;
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
  change.failed = false;
  change.deferred_until =
      pass.s.now + std::chrono::ceil<WallTime::duration>(deferral_length(node.policy->rollout.idle_timeout));
  change.retry = retry_of(*node.policy);
  PatchNode patch = uncordon(node);
  set_mark(patch, change);
  pass.add(std::move(patch), kBackedOut,
           fmt::format("{}; the daemon is not replaced before {}", why, k8s::format_time(*change.deferred_until)),
           false, node.name());
}

void mark_failed(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change = *node.mark.change;
  change.to = node.daemonset->newest_hash;
  change.failed = true;
  change.retry = retry_of(*node.policy);
  pass.add(marked(node, change), kStandaloneMpsFailed, "its new daemon is not Ready in time", false, node.name());
}

void try_again(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change = *node.mark.change;
  change.begun = pass.s.now;
  change.failed = false;
  change.retry = retry_of(*node.policy);
  pass.add(marked(node, change), kBegun, "a person has asked for another attempt (rollout start)", false, node.name());
  if (node.pod != nullptr && !node.pod->meta.deletion_timestamp) delete_old_pod(pass, node);
}

void delete_old_pod(Pass& pass, const DaemonNode& node) {
  pass.add(
      DeletePod{node.pod->meta.key(), std::string(node.pod->meta.uid), std::nullopt, std::nullopt}, kDeleted,
      fmt::format("node {} gets the new template of DaemonSet {}", node.name(), k8s::to_string(node.daemonset->key)),
      true, node.name());
}

}  // namespace gso
