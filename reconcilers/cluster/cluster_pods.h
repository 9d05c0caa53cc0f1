// Every pod of a cluster, put where planners look for it: for commands that see the whole cluster at one moment
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

  // Operands and KAI's pods into their stores (which then hold nothing else, and are synced), GPU consumers by node,
  // and the answer to every look-up of pods that a KAI planner may want. `world` has its other objects already. Once
  // only.
  void place(World& world, std::map<std::string, NodeConsumers>& consumers, WallTime now);

 private:
  void place_for_kai(World& world, WallTime now);

  std::vector<Pod> pods_;
  std::vector<KaiPod> kai_pods_;  // The same, in the same order.
};

}  // namespace gso
