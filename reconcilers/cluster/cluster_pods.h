// Puts every pod of a cluster where planners expect it: for commands that see the whole cluster at one moment
// (manifests, or one list). The operator itself watches pods by selector instead.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class ClusterPods {
 public:
  // One pod's JSON. Errors as in model/project.h.
  [[nodiscard]] k8s::Result<void> add(std::string_view json);
  // Forgets what was added.
  void clear();

  // Fills the stores of operands, of KAI's pods and of the pods that partitioning reads (which then hold only these,
  // and are synced), the GPU consumers by node, and the answer to every look-up of pods that a KAI planner might
  // request. `world` must already hold its other objects. Call it once.
  void place(World& world, std::map<std::string, NodeConsumers>& consumers, WallTime now);

 private:
  void place_for_kai(World& world, WallTime now);
  void place_for_partitioning(World& world);

  std::vector<Pod> pods_;
  std::vector<KaiPod> kai_pods_;      // The same pods as KAI sees them, in the same order.
  std::vector<SlicePod> slice_pods_;  // The same pods as partitioning sees them, in the same order.
};

}  // namespace gso
