// A node that is labelled for partitioning, as the stores show it: its slices, the pods that are bound to it, the
// device plugin and ConfigMap that serve it, and whether it can be planned for.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/partitioning/packing.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// --- nos's gpu-agent of a node: whether what it has reported can be what pods use now. The agent looks every 10 s.
// While it is down, pods end and start, and the report stays: its numbers can agree with the pods that are bound, and
// place their slices on the wrong GPUs. Where no pod of the GPU software can be seen at all, as in manifests without
// such pods, nothing speaks against the report. Source: nebuly-ai/nos at 12e0a72,
// internal/controllers/gpuagent/reporter.go.

struct PartitionedNode;

inline constexpr std::string_view kPartitioningReportStale = "PartitioningReportStale";
inline constexpr std::string_view kPartitioningReleased = "PartitioningReleased";

// Within this time after a pod was bound, or after the agent became ready, the agent reports the slices that are used:
// it looks every 10 s, after the kubelet has admitted the pod.
inline constexpr Duration kReportDelay = std::chrono::seconds(30);

struct AgentView {
  const SlicePod* pod = nullptr;  // Null: none can be seen.
  bool missing = false;           // None runs there, although it should. Otherwise that is not known without a pod.
};

// `pods`: those of a node on which the agent should run. `plugin`: the uid of the DaemonSet of nos's device plugin
// there: where that one's pod can be seen, the agent's could be seen as well. So it could if `seen` elsewhere.
[[nodiscard]] AgentView view_agent(const std::vector<const SlicePod*>& pods, std::string_view plugin, bool seen);

// Why the node's report can be from before: a part of a sentence, for people. Empty: nothing speaks against it. An
// agent that became ready less than kReportDelay ago might not have reported yet; then another look is requested.
[[nodiscard]] std::string doubt_about_report(PlanDraft& draft, const PartitionedNode& node);

// --- Results that one pass shares with the next: they follow from their inputs alone.

class PlanningCache {
 public:
  // pack(); the answer to one of the last few inputs is found instead of computed.
  [[nodiscard]] const Packing& packing(PackInput input);
  // read_profile() of a text that a ConfigMap has.
  [[nodiscard]] const std::optional<Geometry>& profile(const std::shared_ptr<const std::string>& text);

 private:
  std::list<std::pair<PackInput, Packing>> packings_;  // The newest first.
  // Keeps the texts, so that no other text gets their address.
  std::map<std::shared_ptr<const std::string>, std::optional<Geometry>> profiles_;
};

// nos's device plugin for a node, whichever name of the label the node has.
struct NosPlugin {
  const PluginInstallation* installation = nullptr;  // Null: none selects the node.
  const Operand* plugin = nullptr;                   // Its DaemonSet that does.
  bool selected = false;  // Also with the labels that the node has: it might have the former name of the label alone.
};

// What a plan may do with a node (follow_moves()).
struct NodeStanding {
  // The slices, used and free, with which it serves pods: those that it reports, or those of a profile that it is about
  // to show.
  Geometry carries;
  bool serves = false;       // Pods can be put on its free slices.
  bool changeable = false;   // It can get other slices.
  bool moves = false;        // Its label was moved, and its report of the new slices is awaited: that ends by itself.
  bool in_progress = false;  // A move of the operator is not confirmed and not overdue.
  std::string why;           // Not changeable: a part of a sentence, for people.
};

// What the pod asks for.
[[nodiscard]] SliceCounts slices_of(const SlicePod& pod);
// `by` times that (node_slices.h).
void add_slices(SliceCounts& slices, const SlicePod& pod, std::int64_t by);

struct PartitionedNode {
  std::string name;
  const Node* node = nullptr;  // Lives as long as the World does not change.
  NodeSlices slices;
  NosPlugin nos;
  const ConfigMap* config_map = nullptr;  // That installation's; null: it is missing or was not read.
  std::string key;                        // The label nvidia.com/device-plugin.config; empty: none.
  std::optional<Geometry> named;  // The slices of that key; nullopt: no such key, or not in the format of nos's plugin.
  bool key_of_operator = false;   // The operator wrote that key for this node.
  PartitioningMark mark;
  std::vector<const SlicePod*> pods;  // Bound to it and not finished. By namespace and name.
  // Pods that the scheduler has nominated for it: it ends others for their sake, and then binds them. Sorted alike.
  std::vector<const SlicePod*> nominated;
  // Slices of its pods that the report does not show as used yet: so many of its free slices are not free.
  SliceCounts unreported;
  // Slices of its pods that were bound less than kReportDelay ago. The report might show them or not, also where the
  // numbers agree: a pod that has ended since is still in it. Each GPU keeps so many of its free slices.
  SliceCounts just_bound;
  AgentView agent;
  Duration report_due{0};            // In how long `just_bound` is empty again, if no other pod comes.
  bool divisible = false;            // Its GPUs can carry slices: from Volta on, and without MIG.
  bool readable = false;             // The same, and its report makes sense.
  std::optional<Reason> left_alone;  // Why: a part of a sentence. nullopt: it is not.
  NodeStanding standing;             // Of follow_moves().
  // The report shows the slices that the label's key holds, and after a move of the operator the kubelet does too; or
  // the label names no such key.
  [[nodiscard]] bool confirmed() const;
  // The kubelet counts as many slices of each size as the label's key has, and can hand some of them out.
  [[nodiscard]] bool registered() const;
  // The label nos.nebuly.com/gpu-partitioning that the plugin selects by is missing: the node has its former name, and
  // no plugin runs there.
  [[nodiscard]] bool awaits_label() const;
  // Free slices of its report that no other pod can have: those of bound and of nominated pods.
  [[nodiscard]] SliceCounts taken() const;
  // Free slices of that size that these pods have, or might have: none of them is known to be free.
  [[nodiscard]] std::int64_t bound_slices(std::int64_t gigabytes) const;
  // It has the CPUs, the memory and the place for one more pod like this, beside its pods of the same or a higher
  // priority, nominated ones included: those of a lower one can be preempted. What is unknown counts as enough.
  [[nodiscard]] bool has_room_for(const SlicePod& pod) const;
  // Pods can be scheduled to it: it is Ready, not cordoned and not being deleted.
  [[nodiscard]] bool schedulable() const;
};

// The labelled nodes of these names (FleetIndex has them, so that a pass does not look at every node), by name.
[[nodiscard]] std::vector<PartitionedNode> read_partitioned_nodes(const World& world, WallTime now,
                                                                  const Discovery& discovery,
                                                                  const std::set<std::string>& names,
                                                                  PlanningCache& cache);

[[nodiscard]] NosPlugin nos_plugin_of(const Discovery& discovery, const Node& node);

// The label nos.nebuly.com/gpu-partitioning that the plugin selects by is missing: the node has its former name.
[[nodiscard]] bool lacks_present_label(const Node& node);

}  // namespace gso
