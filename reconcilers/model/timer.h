// Timers: what they are named by, and their order.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/interned.h"
#include "k8sclient/value/time.h"

namespace gso {

// --- Timers: since when something that planners watch has been true without a gap. Each pass names the timers that
// run (Plan::timers; plan_draft.h says how); the runtime keeps since when each has run and returns that with the next
// Snapshot, so that planners call no clock. A timer that a pass does not name has a gap and starts again. Decisions of
// a person or of the operator are not timers. They are stored: in annotations of the node, in the record, or in the
// objects that people edit. How long ago a stored time was, a timer says (Timer::stored_time): the wall clock can be
// set between two looks at it.

enum class Timer : std::uint8_t {
  // --- Of a node: subject: its name; scope: its target revision, unless the line names another one.
  draining,      // Out of service for a change and waits for its workloads.
  not_ready,     // NotReady during a change whose pods are to be deleted.
  busy,          // Pending, and was seen in use.
  gang_waits,    // Waits for slots for the nodes of its jobs.
  retargeting,   // Mid-change, and the node has a new target.
  unchanged,     // Its key has had its target text.
  verifying,     // Its pods were listed for replacement; scope: revision and a hash of the list.
  shown,         // Shows the result of the replacement; scope: as for verifying.
  reloading,     // Its label was written, and plugin and GFD reload by themselves.
  loading,       // Loaded a profile by itself and does not show it yet.
  serving,       // Its pods are Ready and cannot have read the target text, and its status does not show it.
  drifting,      // Was verified, and has stopped showing its profile.
  changing,      // A change is in progress.
  held,          // In a change, and somebody holds the node (C1); scope: the target of its change.
  released,      // In a change, and since then nobody holds the node any more; scope: the same.
  leaving,       // Has left its policy; scope: the policy that wrote its label.
  abandoned,     // No plugin with profiles serves it any more; no scope.
  pod_fault,     // Has a stuck pod; scope: component, fault and uid.
  mps_ready,     // Its MPS control daemon is up and not marked; scope: none, or the directory that a label must name.
  mps_gone,      // The node is marked and the daemon is down; scope: none, or the label that names its directory.
  kai_mismatch,  // KAI's accounting differs from what runs; no scope.
  kai_turn,      // Its next reservation to be deleted; scope: the pod's uid.
  mps_draining,  // Waits for its GPU clients before its standalone MPS daemon is replaced; scope: the new template.
  mps_starting,  // Its standalone MPS daemon was replaced, and is not Ready; scope: the new template.
  labelling,     // Got sharing labels that its annotation did not call the operator's; scope: as label_contest.h says.
  // --- Of a ConfigMap ("namespace/name") or of what mounts it.
  settled,      // Nothing that restarted pods would load has changed; scope: signature.
  key_text,     // A key has had its present text; scope: key and a hash of the text.
  projecting,   // A change waits for a key to be projected; scope: key.
  key_unused,   // No node uses a key of an inline profile; scope: key.
  left_behind,  // Nodes still need the change for which their DaemonSets were restarted; scope: policy, key and the
                // reason of the restart.
  daemonset_stalls,  // As many nodes as before wait for their DaemonSets; scope: policy, key and their number.
  differing,         // The DaemonSets of one installation differ from their ClusterPolicy; scope: how.
  mixed_config,      // The DaemonSets of one installation mount different ConfigMaps.
  // --- Of a rollout.
  soaking,    // Subject: SharingRollout; scope: product whose canary is verified. Or a node whose standalone MPS daemon
              // might be a canary (daemon_soaking_timer()).
  unsettled,  // Subject: ConfigMap; scope: policy and key whose rollout waits for inputs to settle.
  // --- Of KAI: subject and scope as the reconciler says.
  kai_orphan,
  kai_duplicate,
  kai_stable,
  // --- Of partitioning. Subject: the node, unless the line names another one.
  slices_batch,       // Pods wait for slices that a node could get; subject: ConfigMap.
  slices_batch_idle,  // The same, and no pod has come or gone; subject: ConfigMap; scope: hash of the pods.
  slices_projecting,  // Its next key is in the ConfigMap, and kubelets might not show it yet; scope: key.
  slices_confirming,  // Its label names a key, and it does not report those slices; scope: key.
  slices_idle,        // Has free slices that no pod uses or waits for; scope: hash of them.
  partitioner_lease,  // The Lease of nos's gpu-partitioner has not been renewed; subject: Lease; scope: when it was.
  // --- Of a time that an annotation, the record or an object stores: it has been reached (is_of_stored_time()).
  slices_moved,  // Its label was moved; scope: when.
  slices_agent,  // nos's gpu-agent has become ready there; scope: when.
  stored_time,   // Subject: what has it; scope: which one (stored_time()).
};
[[nodiscard]] std::string_view to_string(Timer timer);
[[nodiscard]] bool is_of_stored_time(Timer timer);

// Thousands run while a fleet changes, each with a text that its node, its object or its change has as well.
struct TimerText : k8s::Interned {
  TimerText() = default;
  TimerText(const k8s::Interned& text) : Interned(text) {}
  template <std::convertible_to<std::string_view> Text>
  TimerText(const Text& text) : Interned(text) {}
};

struct TimerKey {
  Timer timer = Timer::settled;
  TimerText subject;
  TimerText scope;
  friend auto operator<=>(const TimerKey&, const TimerKey&) = default;
};
// "verifying/a01/v1-…": for logs and /debug.
[[nodiscard]] std::string to_string(const TimerKey& key);
// The key that prints as this text; nullopt: this release does not know such a timer.
[[nodiscard]] std::optional<TimerKey> parse_timer_key(std::string_view text);

// Another time is another timer. `what` names it: "deferral".
[[nodiscard]] TimerKey stored_time(std::string_view subject, std::string_view what, k8s::WallTime time);
// A wait whose end is stored: `begun` is the time of its timer.
struct StoredWait {
  TimerKey timer;
  k8s::WallTime begun{};
  k8s::WallTime::duration length{};
};
[[nodiscard]] StoredWait stored_wait(std::string_view subject, std::string_view what, k8s::WallTime end,
                                     k8s::Duration length);

// Since when each timer has run.
using Timers = std::map<TimerKey, k8s::WallTime>;

// Whether the timer watches something in progress: while it runs, the fleet has not converged. Timers of unchanged
// inputs and texts do not.
[[nodiscard]] bool shows_progress(Timer timer);

// --- The timers that the parts of a plan have named, put in order.

// Sorts the timers and keeps one of each. Planners name thousands of them for a fleet in change, kind by kind nearly in
// order: the time that it takes is in proportion to their number then.
void put_in_order(std::vector<TimerKey>& timers);

}  // namespace gso
