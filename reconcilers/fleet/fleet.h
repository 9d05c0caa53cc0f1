// An index that follows the stores, for the planners.
//
//   FleetIndex index;
//   index.attach(world);                    // follows every store by listeners (not for a world that does not change)
//   Plan plan = plan_all(snapshot, index);  // registry.h: after events, or when plan.requeue_after has passed
//
// Costs: an event re-assesses the nodes it concerns (a ConfigMap's: the nodes that use it); a plan visits the nodes
// that are Pending, in a change, Failed or FollowingDaemonSet, never the whole fleet.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct NodeAssessment;      // reconcilers/node/assess.h
struct PluginInstallation;  // reconcilers/cluster/discovery.h

// Knowledge about the fleet, derived only from the World: dropping it loses nothing.
class FleetIndex {
 public:
  FleetIndex();
  ~FleetIndex();
  FleetIndex(const FleetIndex&) = delete;
  FleetIndex& operator=(const FleetIndex&) = delete;

  // Registers listeners on every store of `world`, which must outlive this index.
  void attach(World& world);
  // The listeners call these and others. A new index, like one after note_everything_changed(), looks at every object.
  void note_node_changed(const std::string& name);
  void note_everything_changed();

  // Brings the index up to date with the world. plan_all() does this itself.
  void refresh(const World& world, const PlannerSettings& settings);

  // After refresh(): one node's assessment, or nullptr if the node has no GPU operands.
  [[nodiscard]] const NodeAssessment* assessment(std::string_view node) const;
  [[nodiscard]] std::vector<std::string> node_names() const;  // Sorted.
  [[nodiscard]] const std::vector<PluginInstallation>& installations() const;

  class Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gso
