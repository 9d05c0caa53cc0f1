// One planning pass: the snapshot, the index, and the plan that grows. Time enters only here, as conditions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

using Index = FleetIndex::Impl;

class Pass {
 public:
  Pass(const Snapshot& snapshot, Index& fleet, std::string_view reconciler)
      : s(snapshot), index(fleet), reconciler_(reconciler) {}

  const Snapshot& s;
  Index& index;
  Plan plan;

  // Names the condition as seen now, and says for how long it has held (zero when it is new).
  Duration age(const std::string& condition);
  // The same: true once it has held for `wanted`; else the pass asks to be run again when it will have.
  bool held_for(const std::string& condition, Duration wanted);
  // Since when it has held; now when it is new.
  [[nodiscard]] WallTime since(const std::string& condition) const;
  void look_again_in(Duration wait);
  // The same, of something that is not looked at in this pass: it goes on where it has been seen before.
  void keep(std::string condition);

  // What one pass decides at most, so that a step costs no more in a large fleet; what is left comes in the next pass,
  // as soon as the stores show this one's writes.
  static constexpr std::size_t kMostActions = 60;
  // False once that much is decided; then the pass asks to be run again at once.
  [[nodiscard]] bool takes_more();

  void add(Action action, std::string_view reason, std::string message, bool disruptive = false, std::string node = {});
  void event(ObjectRef regarding, bool warning, std::string_view reason, std::string_view action, std::string note);
  void finding(Severity severity, ObjectRef object, std::string_view reason, std::string message);

  [[nodiscard]] bool plannable(const NodeAssessment& assessment) const;  // Its namespace has synced.

 private:
  std::string_view reconciler_;
};

// A node of which an earlier pass has seen the condition "KIND/NODE/TARGET", where TARGET is still what it goes to: its
// flight's, or that of the change that it waits for. Nodes that are settled, or go elsewhere by now, are left out.
struct SeenNode {
  const std::string& condition;
  std::string name;
  const NodeAssessment& assessment;
  WallTime since;
};
[[nodiscard]] std::vector<SeenNode> seen_nodes(const Pass& pass, std::string_view kind);

[[nodiscard]] ObjectRef node_ref(const std::string& name);
[[nodiscard]] ObjectRef config_map_ref(const ObjectKey& key);
[[nodiscard]] ObjectRef policy_ref(const SharingPolicy& policy);

// The GPU consumers of a node as last listed.
struct NodeUse {
  bool fresh = false;                       // Listed at or after `needed_since`, and not long ago.
  std::vector<const Pod*> waiting;          // Those that a disruption would break and that can leave.
  std::vector<const Pod*> daemonset_owned;  // Reported, neither waited for nor evicted.
  [[nodiscard]] std::int64_t requested(std::string_view resource) const;
  [[nodiscard]] std::string names() const;  // "ns/a, ns/b and 3 more"
};
[[nodiscard]] NodeUse use_of(const Snapshot& snapshot, const std::string& node, WallTime needed_since);

// What must be true of a node's consumers before its first pods go.
enum class Drain {
  nothing,
  fits,  // What they request of each resource must still be there afterwards.
  idle,  // None is left.
};
[[nodiscard]] Drain drain_for(const NodeAssessment& assessment, Transition transition, WorkloadMode mode);
[[nodiscard]] bool drained(Drain drain, const NodeUse& use, const NodeAssessment& assessment);

// Patches into and out of a disruption, and the deletions between them.
[[nodiscard]] PatchNode patch_into(const Pass& pass, const Node& node, const NodeAssessment& assessment, bool cordon,
                                   bool with_label);
// The pods that a start lists for replacement.
[[nodiscard]] std::map<Component, std::set<std::string>> pods_to_replace(const Pass& pass, const Node& node,
                                                                         const NodeAssessment& assessment);
// Annotations that keep autoscalers off a node in flight, where nobody else has set them (false counts, too); and taken
// back, those that are still as we set them.
void add_guards(PatchNode& patch, const Node& node);
void remove_guards(PatchNode& patch, const Node& node);
// Takes everything of a change off the node; a revision is recorded by record_on(). What says that the node is Blocked
// stays where it is.
[[nodiscard]] PatchNode patch_out(const Pass& pass, const Node& node, const NodeAssessment& assessment);
struct Kept {
  bool blocked = false;  // Label and message of a node that is Blocked.
  bool cordon = false;
};
[[nodiscard]] PatchNode take_off(const Node& node, Kept kept);
// Says on the node why it is Blocked or Failed, no longer than a message may be; and whether it says so already.
void set_message(PatchNode& patch, std::string_view message);
[[nodiscard]] bool has_message(const Node& node, std::string_view message);
void record_on(PatchNode& patch, const Node& node, const NodeAssessment& assessment, const std::string& revision);
// Devices that GFD's label does not tell (two models, or no GFD), where the plugin's capacity proves them; else 0.
[[nodiscard]] std::int64_t gpus_to_remember(const Node& node, const NodeAssessment& assessment);
// Deletes the listed pods of these components that are still there.
void delete_pods(Pass& pass, const std::string& node, const NodePods& pods, const std::vector<Component>& components,
                 const std::map<Component, std::set<std::string>>& replace, std::string_view why);
// The label that selects the node's profile, as its plugin's config-manager reads it.
[[nodiscard]] std::string config_label(const Pass& pass, const Node& node, const NodeAssessment& assessment);
[[nodiscard]] std::vector<Component> first_components(const NodeAssessment& assessment, Transition transition);

// The planners of sharing.rollout and node.profile, in the order in which they are called.
void plan_baseline(Pass& pass);
void plan_outcomes(Pass& pass);  // What was verified and what failed, into the record.
void plan_nodes_in_flight(Pass& pass);
void plan_nodes_to_record(Pass& pass);
void plan_node_states(Pass& pass);  // Blocked written, stale states taken away.
void plan_starts(Pass& pass);
void plan_healing(Pass& pass);          // Pods that only a new one gets over.
void plan_abandoned(Pass& pass);        // Nodes that nobody manages any more, in the middle of a change.
void plan_paused_relabels(Pass& pass);  // Nodes that a driver upgrade has drained.
void plan_managed_keys(Pass& pass);     // Keys of inline profiles: written, restored, collected.
void plan_finalizers(Pass& pass);       // Policies with deletionPolicy Revert wait for their nodes.
// Keeps since when each key has had its present text: an edit of one key makes no other one new.
void note_texts_of_keys(Pass& pass);
// True once the kubelets have certainly projected that key, as it is now, into running pods.
[[nodiscard]] bool key_is_projected(Pass& pass, const OperandSet& set, const std::string& key);

// How long plugin and GFD may take to reload by themselves after a label changed, before their pods are replaced.
inline constexpr Duration kReloadGrace = std::chrono::minutes(2);

// Names how long the node has been verifying; a new list of pods to replace starts it anew.
[[nodiscard]] std::string verifying_condition(const std::string& node, std::string_view target,
                                              std::string_view replace);
// Since when the text that the node goes to has stood in its key, as far as it has been seen.
[[nodiscard]] std::string unchanged_condition(const std::string& node, std::string_view target);
// How long a node that loads by itself may take before its pods are replaced: the condition, and whether it is over.
[[nodiscard]] std::string loading_condition(const std::string& node, const NodeAssessment& assessment);
[[nodiscard]] bool loading_expired(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// How long a node must have been without a plugin that has profiles before what a change has left there is taken off:
// longer than the GPU Operator or Helm take to make a DaemonSet anew, or NFD to write its labels again.
inline constexpr Duration kAbandonGrace = std::chrono::minutes(2);

// How long a node must have been out of its policy before the label that stays there (Retain) counts as somebody
// else's.
inline constexpr Duration kReleaseGrace = std::chrono::minutes(2);

[[nodiscard]] std::string rollout_name(const UnitKey& key, std::string_view revision);
[[nodiscard]] ObjectRef rollout_ref(const std::string& name);
// These keys of the state ConfigMap; its others stay.
[[nodiscard]] WriteConfigMap write_state(const Snapshot& snapshot, std::map<std::string, std::string> keys);

}  // namespace gso
