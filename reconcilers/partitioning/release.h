// Nodes that the operator has partitioned and that are not labelled for it any more: they get back what they had
// before.
//
// A node is released when its label is gone. A node whose owner had set only the former name of the label, and has
// removed it, still has the present name, which the operator had set beside it: it is released as well, once no pod
// uses its slices, because the plugin leaves a node with that label.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

inline constexpr std::string_view kPartitioningReleased = "PartitioningReleased";

// Restores the node: its profile label, if that still names the operator's key, has the value again that it had before
// the operator moved it first; the operator's annotation goes, and so does the label that it set. A key that nos had
// written is restored only while the node is labelled: no other plugin knows it.
[[nodiscard]] PatchNode restoring_patch(const Node& node);

// To be asked in every pass in which the label that nos's plugin selects by is missing: it has been for two minutes.
// Nodes change labels for a moment, such as while a script sets all of them anew.
[[nodiscard]] bool has_lost_label(PlanDraft& draft, const std::string& node);

// Adds the patches of nodes that have lost their label and that nobody holds; `left` are the names of those without
// the label.
void release_left(PlanDraft& draft, const Discovery& discovery, const std::set<std::string>& left);
// The same for nodes whose owner has removed the former name of the label.
void release_withdrawn(PlanDraft& draft, const std::vector<PartitionedNode>& nodes);

}  // namespace gso
