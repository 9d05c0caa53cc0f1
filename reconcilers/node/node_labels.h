// node.labels: the sharing labels on nodes that no GPU Feature Discovery serves. We write a key where no one else owns
// it, and remember in gpusharing.dev/owned what stood before.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/node/assess.h"

namespace gso {

struct LabelChange {
  std::map<std::string, std::string> set;
  std::set<std::string> remove;
  std::optional<OwnedLabels> owned;  // All that are the operator's from now on, where that changes.
  [[nodiscard]] bool empty() const { return set.empty() && remove.empty() && !owned; }
};

// What a settled node needs. Empty for a node that is in flight (the planner of the rollout adds the labels to its own
// patches), does not show its profile, or is served by GPU Feature Discovery (unless the mode enforces).
[[nodiscard]] LabelChange label_change(const Node& node, const NodeAssessment& assessment,
                                       const PlannerSettings& settings);
// The same for a node that has just shown `expectation`, whatever its assessment says.
[[nodiscard]] LabelChange label_change_to(const Node& node, const NodeExpectation& expectation, bool gfd,
                                          const PlannerSettings& settings);
// mps.capable alone, which the MPS DaemonSet needs before there can be an MPS pod. Empty where it is not ours.
[[nodiscard]] LabelChange mps_capable_change(const Node& node, bool capable, bool gfd, const PlannerSettings& settings);
// The label that selects the profile, as the policy that governs the node wants it: written and claimed, or (where the
// node has left a policy) back to what stood before ours.
[[nodiscard]] LabelChange policy_label(const Node& node, std::string_view key, const NodeAssessment& assessment);
// Gives up the claim and leaves the label as it is.
[[nodiscard]] LabelChange release_label(const Node& node, std::string_view key);

// Adds a change to a patch of the same node.
void add_to(PatchNode& patch, const LabelChange& change);
// Two changes of one node as one.
[[nodiscard]] LabelChange merged(const Node& node, LabelChange first, const LabelChange& second);

}  // namespace gso
