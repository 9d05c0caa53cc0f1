// The findings of an audit as problems: equal ones merged, ranked by the GPUs that nobody can use because of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// The findings about a node whose GPUs cannot be used because of a change of the operator: one that is in progress,
// one that no operator continues, or that a person holds.
inline constexpr std::string_view kInChange = "InChange";
inline constexpr std::string_view kLeftMidChange = "LeftMidChange";
inline constexpr std::string_view kHeldMidChange = "HeldMidChange";

// GPUs of a machine.
struct GpuCount {
  std::int64_t total = 0;
  std::int64_t lost = 0;  // Of these, what no pod can get: the node is NotReady, or allocatable is below the profile.
  std::int64_t cordoned = 0;    // Of the others, what no pod can get because the node is cordoned.
  std::int64_t mig_slices = 0;  // Of `total`: MIG devices, which count like cards where they are served as GPUs.
  // Nothing shows how many GPUs the machine has: no label, no annotation and no record counts them, and the replicas of
  // one GPU are not known because its profile is invalid or not the one that it runs. `total` is 1 then.
  bool unknown = false;
};

// `assessment` is null where no plugin serves the node.
[[nodiscard]] GpuCount gpus_of(const World& world, const PlannerSettings& settings, const FleetIndex::Impl& index,
                               const Node& node, const NodeAssessment* assessment);

// What is wrong with the node's own pods of the plugin, GFD and the MPS daemon: "pod gpu-operator/plugin-x7k2p (plugin)
// on node n1 is not Ready: CrashLoopBackOff: …", "no pod of DaemonSet gpu-operator/mps runs on node n1". Empty also
// where these pods could not be read.
[[nodiscard]] std::vector<std::string> operand_problems(const World& world, const FleetIndex::Impl& index,
                                                        const Node& node, const NodeAssessment& assessment);

struct AuditProblem {
  Severity severity = Severity::warning;
  std::string reason;
  std::string message;
  std::vector<ObjectRef> objects;    // Sorted.
  std::int64_t gpus_lost = 0;        // On these nodes, or on those that the DaemonSet, ConfigMap or policy serves.
  std::vector<std::string> lost_on;  // The nodes that have lost them.
  std::vector<std::string> pods;     // What operand_problems() says about these nodes, each once.
  std::string remedy;                // What to do in general.
  std::string command;               // The first thing to type: what shows the cause.
};

// GPUs that nobody can use, by what serves them: the Node, and the DaemonSets, the key of the ConfigMap and the
// SharingPolicy behind it.
class LostGpus {
 public:
  void add(const FleetIndex::Impl& index, const Node& node, const NodeAssessment* assessment, std::int64_t lost);
  // Of the node alone: its change or its failure is the cause, not what serves it.
  void add_of_node(const Node& node, std::int64_t lost);
  // What only the cordon of somebody else keeps from pods.
  void add_cordoned(const Node& node, std::int64_t gpus);
  // By node: those behind the object, or behind the key that the finding about a ConfigMap names ("key any: …"). A
  // problem of several objects (a ConfigMap and its nodes) counts each node once.
  using ByNode = std::map<std::string, std::int64_t>;
  [[nodiscard]] const ByNode& of(const Finding& finding) const;

 private:
  std::map<std::string, ByNode> by_object_;  // "Kind/namespace/name"
};

// `findings`: sorted. `pods`: by node. Of several findings about one Node, the most severe
// has its GPUs and pods.
[[nodiscard]] std::vector<AuditProblem> merge_findings(const std::vector<Finding>& findings, const LostGpus& lost,
                                                       const std::map<std::string, std::vector<std::string>>& pods);

// What a check says for information, and no action follows from while an operator runs: people read its code alone.
[[nodiscard]] bool needs_no_action(Severity severity, std::string_view reason, std::string_view remedy);
// "2 infos need no action while an operator runs: DefaultFirstStart, MPSSidecarCannotSignal (their texts: -o yaml)"
[[nodiscard]] std::string no_action_text(std::vector<std::string> reasons);

}  // namespace gso
