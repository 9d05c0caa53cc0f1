// The phase of a node: determined once, by its assessment (assess.h), and returned by phase_of(). `status`, `explain`,
// the SharingRollout, metrics and what-if format these values and derive no others. The phase does not depend on the
// rollout: gates, slots and budgets decide when a Pending node starts, not its phase.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// The phase that people see: Held while a holder prevents what the node needs.
[[nodiscard]] Phase phase_of(const NodeAssessment& facts);
// Why it is Blocked or Held, or why its change cannot continue, by the same rule; empty: none of these.
[[nodiscard]] std::string_view shown_reason(const NodeAssessment& facts);
// The phase of a node in a change. `pods`: the node's operand pods.
[[nodiscard]] Phase phase_in_change(const NodeAssessment& facts, const NodePods& pods);

// Pods that a change lists and that still exist. `terminating`: count terminating pods too.
[[nodiscard]] std::size_t pods_left(const NodeChange& change, const NodePods& pods, Component component,
                                    bool terminating);
// Any of them, of any component.
[[nodiscard]] bool any_listed_left(const NodeChange& change, const NodePods& pods, bool terminating);
// The same, of these components.
[[nodiscard]] bool any_left_of(const std::vector<Component>& components, const NodeChange& change, const NodePods& pods,
                               bool terminating);
// A listed pod is gone or terminating, or the annotation says that the change is touched: what is_touched() knows
// before the node's target is known. `without_mps`: its MPS pods do not count, unless the change lists no others.
[[nodiscard]] bool has_begun(const NodeChange& change, const NodePods& pods, bool without_mps);
// The change has had an effect on the node: a listed pod is gone or terminating, the label was written, or the pods
// were listed again after that. A node without such an effect can be uncordoned and queued again.
[[nodiscard]] bool is_touched(const NodeAssessment& facts, const NodePods& pods);
// Of rows C4 and C6 of node_step.h. An obstacle can stop the change half-way: it is touched, and pods or the label
// remain to be changed.
[[nodiscard]] bool can_stop_half_way(const NodeAssessment& facts, const NodePods& pods);
// The first pods or the label remain.
[[nodiscard]] bool first_pods_remain(const NodeAssessment& facts, const NodePods& pods);

}  // namespace gso
