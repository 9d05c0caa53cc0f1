// The patches into a change, between its steps and out of it: one PATCH each, minimal, with the node's resourceVersion
// where a cordon depends on it (S7).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// One node as its changes see it. Everything that it refers to outlives it.
struct NodeView {
  const Snapshot& snapshot;
  const Node& node;
  const NodeAssessment& facts;
  const PluginInstallation& set;
  NodePods pods;
};

// What a change does to a node: which restarts, and why.
struct ChangePlan {
  Transition kind = Transition::none;
  ChangeCause cause = ChangeCause::none;
};

// The components whose pods go first in a change of this kind.
[[nodiscard]] std::vector<Component> first_components(const NodeAssessment& facts, Transition kind);
// The pods that a change of this kind lists for replacement, as they run now.
[[nodiscard]] std::map<Component, std::set<std::string>> pods_to_replace(const NodeView& view, const ChangePlan& plan);
// The label that selects the node's profile, as its plugin's config-manager reads it.
[[nodiscard]] std::string config_label(const PluginInstallation& set, const Node& node);

// A change of this node that begins now, to the revision that its facts name.
[[nodiscard]] NodeChange begin_change(const NodeView& view, const ChangePlan& plan);
// The change in progress with a new target and a new list of pods, as of now. Its pods count as touched.
[[nodiscard]] NodeChange list_again(const NodeView& view, const NodeChange& before, const ChangePlan& plan,
                                    std::map<Component, std::set<std::string>> pods);

struct Into {
  bool cordon = false;      // Where the node is not cordoned already.
  bool with_label = false;  // Writes the profile label in the same patch.
};
// Into the disruption, or into the next list of pods: adds the cordon and the annotations that keep autoscalers off.
[[nodiscard]] PatchNode patch_into(const NodeView& view, NodeChange change, Into into);

// Deletes those of the listed pods of these components that are still there and not terminating, each with its uid.
[[nodiscard]] std::vector<PlannedAction> deletions(const NodeView& view, const NodeChange& change,
                                                   const std::vector<Component>& components, std::string_view why);

// Takes everything of a change off the node.
struct Kept {
  bool blocked = false;  // Label and message of a node that is Blocked.
};
[[nodiscard]] PatchNode take_off(const Node& node, Kept kept);
// The same for a node with an assessment: what says that it is Blocked stays.
[[nodiscard]] PatchNode patch_out(const Node& node, const NodeAssessment& facts);
// Says on the node why it is Blocked or Failed, no longer than a message may be; and whether it says so already.
void set_message(PatchNode& patch, std::string_view message);
[[nodiscard]] bool has_message(const Node& node, std::string_view message);
// Records a revision as the one that the node has loaded.
void record_on(PatchNode& patch, const Node& node, const NodeAssessment& facts, const std::string& revision);
// Devices that GFD's label does not tell (two models, or no GFD), where the plugin's capacity proves them; else 0.
[[nodiscard]] std::int64_t gpus_to_remember(const Node& node, const NodeAssessment& facts);
// Takes the annotations that keep autoscalers off the node back, where they are as the change has set them.
void remove_guards(PatchNode& patch, const Node& node, const NodeChange& change);

}  // namespace gso
