// One planning pass over the fleet: the snapshot, the index, and the plan that grows.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/node/node_use.h"

namespace gso {

using Index = FleetIndex::Impl;

class RolloutViews;  // rollout/rollout_view.h

class Pass : public PlanDraft {
 public:
  // All outlive this. `views` is shared by all reconcilers of one pass; null where none of them is asked for.
  Pass(const Snapshot& snapshot, Index& fleet, std::string_view reconciler, RolloutViews* views)
      : PlanDraft(snapshot, reconciler), index(fleet), rollouts(views) {}

  Index& index;
  RolloutViews* const rollouts;

  [[nodiscard]] bool plannable(const NodeAssessment& assessment) const;  // Its namespace has synced.
};

// A node of which an earlier pass has named such a timer, where the timer's scope is still the revision that the node
// goes to: its change's, or that of the change that it waits for. Nodes that are settled, or go elsewhere by now, are
// left out.
struct SeenNode {
  const TimerKey& timer;
  std::string name;
  const NodeAssessment& assessment;
  WallTime since;
};
[[nodiscard]] std::vector<SeenNode> seen_nodes(const Pass& pass, Timer timer);

// A node as its changes see it.
[[nodiscard]] NodeView view_of(const Pass& pass, const Node& node, const NodeAssessment& assessment);

// The planners of sharing.rollout and node.profile, in the order in which they are called.
// Machines that came a moment ago and do not show their profile yet: judged like nodes that join later, or, where no
// operator is there to do so, recorded like the others.
enum class NewMachines { join, record };
void plan_baseline(Pass& pass, NewMachines machines = NewMachines::join);
void plan_outcomes(Pass& pass);  // What was verified and what failed, into the record.
void plan_nodes_in_flight(Pass& pass);
void plan_nodes_to_record(Pass& pass);
void plan_node_states(Pass& pass);  // Blocked written, stale states taken away.
void plan_starts(Pass& pass);
void plan_remediation(Pass& pass);      // Pods that only a new one gets over.
void plan_abandoned(Pass& pass);        // Nodes that nobody manages any more, in the middle of a change.
void plan_paused_relabels(Pass& pass);  // Nodes that a driver upgrade has drained.
void plan_managed_keys(Pass& pass);     // Keys of inline profiles: written, restored, collected.
void plan_finalizers(Pass& pass);       // Policies with deletionPolicy Revert wait for their nodes.
// Keeps since when each key has had its present text: an edit of one key makes no other one new.
void note_texts_of_keys(Pass& pass);
// True once the kubelets have certainly projected that key, as it is now, into running pods.
[[nodiscard]] bool key_is_projected(Pass& pass, const PluginInstallation& set, const std::string& key);

// Since when the key has had its present text, as far as the ConfigMap and what has been watched tell; nullopt: it has
// none. The empty key, of nodes that share nothing, has always had its own.
[[nodiscard]] std::optional<WallTime> text_since(const Pass& pass, const PluginInstallation& set,
                                                 const std::string& key);
// The pods of a node that loaded its profile by itself have certainly read the text that its key has now. Matching
// labels are necessary for that, never sufficient: an edit may show in none (S11).
[[nodiscard]] bool must_have_read(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// How long a node that loads by itself may take before its pods are replaced: the timer, and whether it has run out.
[[nodiscard]] TimerKey loading_timer(const std::string& node, const NodeAssessment& assessment);
[[nodiscard]] bool loading_expired(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// How long a node must have been without a plugin that has profiles before what a change has left there is taken off:
// longer than the GPU Operator or Helm take to make a DaemonSet anew, or NFD to write its labels again.
inline constexpr Duration kAbandonGrace = std::chrono::minutes(2);

// How long a node must have been out of its policy before the label that stays there (Retain) counts as somebody
// else's.
inline constexpr Duration kReleaseGrace = std::chrono::minutes(2);

[[nodiscard]] std::string rollout_name(const RolloutKey& key, std::string_view revision);
[[nodiscard]] ObjectRef rollout_ref(const std::string& name);
// Plans the writes after which the ConfigMaps of the record say `next`.
void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message);
// The text behind "namespace/configmap/key", where it still has that revision; empty otherwise.
[[nodiscard]] std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision);

}  // namespace gso
