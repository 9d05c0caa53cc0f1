// The patches that begin, continue and end a change: one minimal PATCH each, with the node's resourceVersion if a
// cordon depends on it (S7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// One node as its changes see it. All referenced objects outlive it.
struct NodeView {
  const Snapshot& snapshot;
  const Node& node;
  const NodeAssessment& facts;
  const PluginInstallation& installation;
  NodePods pods;
};

// What a change does to a node: which restarts, and why.
struct ChangePlan {
  Transition kind = Transition::none;
  ChangeCause cause = ChangeCause::none;
};

// The components whose pods are deleted first in a change of this kind.
[[nodiscard]] std::vector<Component> first_components(const NodeAssessment& facts, Transition kind);
// The pods that a change of this kind lists for replacement, as they run now.
[[nodiscard]] ListedPods pods_to_replace(const NodeView& view, const ChangePlan& plan);
// The label that selects the node's profile, as its plugin's config-manager reads it.
[[nodiscard]] std::string config_label(const PluginInstallation& installation, const Node& node);

// A patch of that node that applies only to this version of it.
[[nodiscard]] PatchNode patch_of(const Node& node);
// The same, which writes the change into the node's annotation.
[[nodiscard]] PatchNode patch_of(const Node& node, const NodeChange& change);

// A change of this node that begins now and has the revision of its facts as target.
[[nodiscard]] NodeChange begin_change(const NodeView& view, const ChangePlan& plan);
// The same change from its first deletion on: it can no longer be backed out.
[[nodiscard]] NodeChange touched(NodeChange change);
// The change in progress with a new target and a new list of pods, as of now. It is touched.
[[nodiscard]] NodeChange list_again(const NodeView& view, const NodeChange& before, const ChangePlan& plan,
                                    ListedPods pods);

struct Into {
  bool cordon = false;  // Unless the node is already cordoned.
  bool live = false;    // The first pods are deleted beside this patch, which writes the profile label as well.
};
// Begins the disruption, or the next list of pods: adds the cordon and the annotations that stop autoscalers from
// removing the node.
[[nodiscard]] PatchNode patch_into(const NodeView& view, NodeChange change, Into into);

// Deletes the listed pods of these components that still exist and are not terminating, each with its uid.
[[nodiscard]] std::vector<PlannedAction> deletions(const NodeView& view, const NodeChange& change,
                                                   const std::vector<Component>& components, std::string_view why);

// Removes everything that a change left on the node. `change`: the node's; null if it cannot be read. `says_blocked`:
// but not label and message of a node that is Blocked.
[[nodiscard]] PatchNode take_off(const Node& node, const NodeChange* change, bool says_blocked = false);
// For a node with an assessment: the marks of a Blocked node stay.
[[nodiscard]] PatchNode patch_out(const Node& node, const NodeAssessment& facts);
// The same for an untouched change: if it has replaced a failed one, the node is Failed again, as it was before.
[[nodiscard]] PatchNode patch_back(const Node& node, const NodeAssessment& facts, Duration verify_timeout);
// What is written on a Failed node.
[[nodiscard]] std::string failure_text(std::string_view revision, Duration verify_timeout, std::string_view why);
// Writes on the node why it is Blocked or Failed, cut to the length of a message; and whether the node already says so.
void set_message(PatchNode& patch, std::string_view message);
[[nodiscard]] bool has_message(const Node& node, std::string_view message);
// Records a revision as the one that the node has loaded.
void record_on(PatchNode& patch, const Node& node, const NodeAssessment& facts, const std::string& revision);
// Devices that GFD's label does not show (two models, or no GFD), if the plugin's capacity proves them; else 0.
[[nodiscard]] std::int64_t gpus_to_remember(const Node& node, const NodeAssessment& facts);
// Removes the annotations that keep autoscalers off the node, if they are still as the change set them.
void remove_guards(PatchNode& patch, const Node& node, const NodeChange& change);

}  // namespace gso
