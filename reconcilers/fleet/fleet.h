// The fleet planner's front door: an index that follows the stores, and the plan over it.
//
//   FleetIndex index;
//   index.attach(world);                      // follows every store by listeners (or call note_* yourself)
//   Plan plan = plan_fleet(snapshot, index);  // after events, or when plan.requeue_after has passed
//
// Costs: an event re-assesses the nodes it concerns (a ConfigMap's: the nodes that use it); a plan walks the nodes that
// are pending, in flight, failed or being followed, never the whole fleet.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct NodeAssessment;  // reconcilers/node/assess.h
struct OperandSet;      // reconcilers/cluster/discovery.h

// What is known about the fleet, derived from the World and nothing else: dropping it loses nothing.
class FleetIndex {
 public:
  FleetIndex();
  ~FleetIndex();
  FleetIndex(const FleetIndex&) = delete;
  FleetIndex& operator=(const FleetIndex&) = delete;

  // Registers listeners on every store of `world`, which must outlive this index.
  void attach(World& world);
  // What the listeners call. Objects that were there before count as changed after note_everything_changed().
  void note_node_changed(const std::string& name);
  void note_pod_changed(const std::shared_ptr<const Pod>& before, const std::shared_ptr<const Pod>& after);
  void note_configmap_changed(const ObjectKey& config_map);
  void note_discovery_changed();  // A DaemonSet, ControllerRevision or ClusterPolicy changed.
  void note_policies_changed();
  void note_everything_changed();

  // Brings the index up to date with the world. plan_fleet does this itself.
  void refresh(const World& world, const PlannerSettings& settings);

  // After refresh(): one node's assessment, or nullptr when the node has no GPU operands.
  [[nodiscard]] const NodeAssessment* assessment(std::string_view node) const;
  [[nodiscard]] std::vector<std::string> node_names() const;  // Sorted.
  // Nodes that no plugin with profiles serves and that carry what a change has left there. Sorted.
  [[nodiscard]] std::vector<std::string> abandoned_nodes() const;
  [[nodiscard]] const std::vector<OperandSet>& operand_sets() const;

  class Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Everything that the operator would do now. Empty (no actions) on an up-to-date, quiet cluster, and whenever a store
// has not synced. Conditions and requeue_after are filled all the same.
[[nodiscard]] Plan plan_fleet(const Snapshot& snapshot, FleetIndex& index);

// Pods of one node as listed by spec.nodeName: true for what uses GPUs and is neither finished nor an operand.
[[nodiscard]] bool is_gpu_consumer(const Pod& pod, const World& world);
// A pod that the kubelet refused to start because nothing served its GPUs (UnexpectedAdmissionError), that its
// controller has replaced, in a namespace where such pods may be removed.
[[nodiscard]] bool is_rejected(const Pod& pod, const PlannerSettings& settings);

}  // namespace gso
