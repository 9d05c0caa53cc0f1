// The phase of a node: read once, by its assessment (assess.h), and shown by phase_of(). `status`, `explain`, the
// SharingRollout, metrics and what-if format these values and derive nothing of their own. It sees nothing of the
// rollout: gates, slots and budgets decide when a Pending node starts, not what it is.
#pragma once

#include <cstddef>
#include <string>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// What people see: Held while a holder keeps the node from what it needs.
[[nodiscard]] Phase phase_of(const NodeAssessment& facts);
// The phase of a node in a change. `pods`: the node's operand pods.
[[nodiscard]] Phase phase_in_change(const NodeAssessment& facts, const NodePods& pods);

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

}  // namespace gso
