// Findings that follow from another finding of an audit: one cause is one problem, which names its consequences.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct RolloutFinding;  // reconcilers/explain/audit_rollouts.h

// Reasons that only an audit has.
inline constexpr std::string_view kNodeNotReady = "NodeNotReady";
inline constexpr std::string_view kNoneAllocatable = "NoneAllocatable";
// A check of objects: pods mount a ConfigMap that does not exist.
inline constexpr std::string_view kConfigMapMissing = "ConfigMapMissing";

// Of a node that is NotReady. `differs`: it does not show its profile either.
[[nodiscard]] std::string_view not_ready_text(bool differs);

// A label names an MPS key that the plugin's release cannot load by label: that the node would break by the same label
// is said in that finding.
void join_breaks_by_label(std::vector<Finding>& findings);

// Leaves the causes among all findings of the audit. The index is refreshed. `changes_continue`: an operator runs and
// may finish changes, as far as that is known.
void keep_root_causes(const World& world, const FleetIndex& index, bool changes_continue,
                      std::vector<Finding>& findings);

// Rollouts that start no node because a person holds one in its change: the finding about that node has the command,
// and says from now on who waits for it. Those rollouts are removed.
void join_held_changes(std::vector<RolloutFinding>& rollouts, std::vector<Finding>& findings);

}  // namespace gso
