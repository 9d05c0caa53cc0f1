// The gates of a rollout: what keeps it from starting nodes. Everybody who asks reads the same answer, once per pass
// (rollout_view.h), so that the reason shown is the reason that holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gso {

// In the order in which they are reported: the first one that is closed.
enum class Gate : std::uint8_t {
  open,
  // --- Switches that people have turned.
  observe,   // Mode Observe, of the policy or of the operator.
  paused,    // The policy, its ConfigMap or the rollout.
  aborted,   // The rollout.
  undone,    // The rollout, by `rollout undo`.
  approval,  // Mode Approve, and nobody has approved yet.
  // --- What stands against this revision, or this moment.
  gpu_operator_updating,  // The DaemonSets are about to change, or differ from their ClusterPolicy.
  max_failures,           // Too many nodes failed on this revision, now or before.
  canary_unwell,          // A canary has stopped showing its profile. It is restarted all the same.
  mechanism_unusable,     // Mechanism DaemonSetRestart would restart nodes that are not meant.
  key_not_projected,      // The kubelets may not have the key's text yet.
  outside_window,         // No maintenance window is open.
  settling,               // The inputs have changed a moment ago.
  new_attempt,            // The SharingRollout of an earlier attempt is replaced first: the next pass opens it.
};
// The condition's reason, CamelCase; empty for an open gate.
[[nodiscard]] std::string_view reason_of(Gate gate);

struct GateState {
  Gate gate = Gate::open;
  std::string message;  // For people.
  [[nodiscard]] bool is_open() const { return gate == Gate::open; }
  [[nodiscard]] std::string reason() const { return std::string(reason_of(gate)); }
};

class RolloutView;

// The first closed gate. `repair`: of nodes that stopped showing the revision that they have loaded; restarting them
// into it needs no approval.
[[nodiscard]] GateState first_closed_gate(RolloutView& rollout, bool repair);
// The first of those gates that also give back a node that only waits: what people have switched, failures, windows.
[[nodiscard]] GateState first_stop(RolloutView& rollout);

}  // namespace gso
