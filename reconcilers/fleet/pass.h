// One planning pass over the fleet: the snapshot, the index, and the plan under construction.
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
  // All outlive this. `views` is shared by all reconcilers of one pass; null if none of these reconcilers is planned.
  Pass(const Snapshot& snapshot, Index& fleet, std::string_view reconciler, RolloutViews* views)
      : PlanDraft(snapshot, reconciler), index(fleet), rollouts(views) {}

  Index& index;
  RolloutViews* const rollouts;

  [[nodiscard]] bool plannable(const NodeAssessment& assessment) const;  // Its namespace has synced.
};

// Nodes for which an earlier pass named such a timer, if the timer's scope is still the node's target revision: that of
// its change, or of the change that it waits for. Nodes that are settled, or have another target since, are left out.
struct SeenNode {
  const TimerKey& timer;
  std::string name;
  const NodeAssessment& assessment;
  WallTime since;
};
[[nodiscard]] std::vector<SeenNode> seen_nodes(const Pass& pass, Timer timer);

// A node as its changes see it.
[[nodiscard]] NodeView view_of(const Pass& pass, const Node& node, const NodeAssessment& assessment);

// The planners of sharing.rollout and node.profile, in the order in which they are called. Machines that have just
// joined and do not show their profile yet: treated like nodes that join later, or, if no operator runs that could do
// so, recorded like the others.
enum class NewMachines { join, record };
void plan_baseline(Pass& pass, NewMachines machines = NewMachines::join);
void plan_outcomes(Pass& pass);  // Writes verified and failed revisions into the record.
void plan_changes_in_progress(Pass& pass);
// Returns the nodes that it records: their patch also removes stale states.
[[nodiscard]] std::set<std::string> plan_self_loaded_nodes(Pass& pass);
// Writes Blocked, and removes stale states. `recorded`: nodes that have their patch of this pass already.
void plan_node_states(Pass& pass, const std::set<std::string>& recorded);
void plan_starts(Pass& pass);
void plan_abandoned(Pass& pass);        // Nodes that no plugin installation serves any more, mid-change.
void plan_paused_relabels(Pass& pass);  // Nodes that a driver upgrade has drained.
void plan_managed_keys(Pass& pass);     // Keys of inline profiles: written, restored, collected.
void plan_finalizers(Pass& pass);       // Policies with deletionPolicy Revert wait for their nodes.
// Keeps since when each key has had its present text: an edit of one key does not restart the time of the others.
void note_texts_of_keys(Pass& pass);
// True once the kubelets have certainly projected the present text of that key into running pods.
[[nodiscard]] bool key_is_projected(Pass& pass, const PluginInstallation& installation, const std::string& key);

// Since when the key has had its present text, according to the ConfigMap and the watch; nullopt: it has none. The
// empty key, of nodes without sharing, has always had its text.
[[nodiscard]] std::optional<WallTime> text_since(const Pass& pass, const PluginInstallation& installation,
                                                 const std::string& key);
// The pods of a node that loaded its profile by itself have certainly read the text that its key has now. Matching
// labels are necessary for that, never sufficient: an edit might change no label (S11).
[[nodiscard]] bool must_have_read(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// How long the operator waits for a node that loads by itself before it replaces the pods: the timer, and whether it
// has run out.
[[nodiscard]] TimerKey loading_timer(const std::string& node, const NodeAssessment& assessment);
[[nodiscard]] bool loading_expired(Pass& pass, const std::string& node, const NodeAssessment& assessment);

// How long a node must have been without a plugin with profiles before the marks of a change are removed: longer than
// the GPU Operator or Helm need to create a DaemonSet again, or NFD to write its labels again.
inline constexpr Duration kAbandonGrace = std::chrono::minutes(2);

// How long a node must have been out of its policy before the operator gives up the ownership of the label that stays
// there (Retain).
inline constexpr Duration kReleaseGrace = std::chrono::minutes(2);

[[nodiscard]] std::string rollout_name(const RolloutKey& key, std::string_view revision);
[[nodiscard]] ObjectRef rollout_ref(const std::string& name);
// Plans the writes after which the ConfigMaps of the record contain `next`.
void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message);
// The text of "namespace/configmap/key" if it still has that revision; empty otherwise.
[[nodiscard]] std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision);

}  // namespace gso
