// The pods of a cluster as the operator counts them: operands, consumers of GPUs, and daemons that were killed.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- Puts every pod of a cluster where planners expect it: for commands that see the whole cluster at one moment
// (manifests, or one list). The operator itself watches pods by selector instead.

// GPU pods that have not started: Pending, or rejected by their kubelet. As the API server has them, for who explains
// them.
struct UnstartedPods {
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  struct Unstarted {
    Pod pod;
    std::string json;
  };
  std::vector<Unstarted> pods;  // At most kMost, of at most kMostBytes of JSON together.
  std::size_t bytes = 0;        // Of these.
  std::size_t beyond = 0;       // How many more there are.
};

// By uid of a pod: the names of its ResourceClaims (project_claims_of_pod()).
using ClaimsOfPods = std::map<std::string, std::vector<std::string>>;

class ClusterPods {
 public:
  // One pod's JSON. Errors as in model/project.h.
  [[nodiscard]] k8s::Result<void> add(std::string_view json);
  // Forgets what was added.
  void clear() {
    pods_.clear();
    claims_.clear();
    unstarted_ = {};
  }
  // Without rejected pods that their controller has replaced.
  [[nodiscard]] UnstartedPods take_unstarted();
  // Of bound pods.
  [[nodiscard]] ClaimsOfPods take_claims() { return std::move(claims_); }

  // Fills the stores of operands, of KAI's pods and of the pods that partitioning reads (which then hold only these,
  // and are synced), the GPU consumers by node, and the answer to every look-up of pods that a KAI planner might
  // request. `world` must already hold its other objects. Call it once, after what is taken.
  void place(World& world, std::map<std::string, NodeConsumers>& consumers, WallTime now);

 private:
  void place_for_kai(World& world, WallTime now);
  void place_for_partitioning(World& world);

  // One pod, as each part of the operator sees it.
  struct Views {
    Pod pod;
    KaiPod for_kai;
    SlicePod for_slices;
  };
  std::vector<Views> pods_;
  ClaimsOfPods claims_;
  UnstartedPods unstarted_;
};

// --- Which pods of a node use its GPUs, and which the kubelet rejected there.

// By an extended resource.
[[nodiscard]] bool requests_gpus(const Pod& pod);

// Its template has a container of the device plugin, GFD or an MPS control daemon.
[[nodiscard]] bool runs_operand(const DaemonSet& daemonset);
// Pods of one node as listed by spec.nodeName: true for a pod that uses GPUs and is neither finished nor an operand.
[[nodiscard]] bool is_gpu_consumer(const Pod& pod, const World& world);
// A pod that the kubelet rejected because no plugin served its GPUs (UnexpectedAdmissionError), that its controller has
// replaced, in a namespace where the operator is allowed to remove such pods.
[[nodiscard]] bool is_rejected(const Pod& pod, const PlannerSettings& settings);

// --- MPS control daemons that were killed instead of ending by themselves: MPSUncleanExit.

// How long an unclean exit is reported.
inline constexpr Duration kUncleanExitReported = std::chrono::hours(1);

// Keeps World::killed_daemons up to date from now on: a pod's last state arrives just before the watch event DELETED,
// which can be before any pass. `world` outlives its stores' listeners. Call it once, before the stores fill.
void follow_killed_daemons(World& world);

}  // namespace gso
