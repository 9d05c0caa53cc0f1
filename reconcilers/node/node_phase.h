// The phase of a node: the only place that names one. `status`, `explain`, the SharingRollout, metrics and what-if
// format this value and derive nothing of their own. It sees nothing of the rollout: gates, slots and budgets decide
// when a Pending node starts, not what it is.
#pragma once

#include <cstdint>
#include <string_view>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

enum class Phase : std::uint8_t {
  unmanaged,            // No plugin installation with profiles serves the node.
  unrecorded,           // No baseline yet.
  up_to_date,           // Runs its target.
  pending,              // Needs a change and waits for the rollout.
  draining,             // In a change; no pod of it has been deleted yet.
  restarting,           // In a change; pods remain to be replaced, or their successors to become Ready.
  verifying,            // Must show its profile: after a change, or after it loaded one by itself.
  following_daemonset,  // Its DaemonSet controller replaces the pods (RollingUpdate).
  failed,               // Its last change did not verify.
  blocked,              // Cannot be changed now, for a reason.
  held,                 // Another actor or a person holds it, or its change cannot be read.
};
// As it is displayed everywhere: Unmanaged, Unrecorded, UpToDate, Pending, …
[[nodiscard]] std::string_view to_string(Phase phase);

// Pods that a change lists and that are still there. `terminating`: count those that are going, too.
[[nodiscard]] std::size_t pods_left(const NodeChange& change, const NodePods& pods, Component component,
                                    bool terminating);
// Any of them, of any component.
[[nodiscard]] bool any_listed_left(const NodeChange& change, const NodePods& pods, bool terminating);
// The uid of a listed pod that is gone; empty while all are there.
[[nodiscard]] std::string listed_and_gone(const NodeChange& change, const NodePods& pods);
// Something of the change has happened to the node: a listed pod is gone or going, the label is written, or the list
// was written anew after that. An untouched node is free to be given back.
[[nodiscard]] bool is_touched(const NodeAssessment& facts, const NodePods& pods);

// `pods`: the node's operand pods; `holder`: another actor holds the node (foreign_holder()).
[[nodiscard]] Phase phase_of(const NodeAssessment& facts, const NodePods& pods, std::string_view holder);

}  // namespace gso
