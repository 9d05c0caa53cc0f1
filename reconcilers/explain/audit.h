// Problems of GPU sharing in a cluster, with or without the operator installed, for `audit`: what the planners find,
// what they do not report, and what follows from what.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/command.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// --- The findings of an audit as problems: equal ones merged, ranked by the GPUs that nobody can use because of them.

// The findings about a node whose GPUs cannot be used because of a change of the operator: one that is in progress,
// one that no operator continues, or that a person holds.
inline constexpr std::string_view kInChange = "InChange";
inline constexpr std::string_view kLeftMidChange = "LeftMidChange";
inline constexpr std::string_view kHeldMidChange = "HeldMidChange";

// A finding about the object as a whole.
[[nodiscard]] Finding found(Severity severity, ObjectRef object, std::string_view code, std::string message);

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

// One node of an audit.
struct NodeGpus : GpuCount {
  const Node* node = nullptr;
  const NodeAssessment* assessment = nullptr;  // Null where no plugin serves the node.
  // The node's own change or failure keeps the lost ones from pods, and not what serves the node.
  bool of_its_change = false;
  std::vector<std::string> pods = {};  // operand_problems() of a node that does not show its profile.
};
using GpusByNode = std::map<std::string, NodeGpus, std::less<>>;

// GPUs of a Ready node of nos that have no slices: they get them once a pod asks, so that they count as usable.
[[nodiscard]] std::int64_t uncut_gpus(const Node& node);
// Some are allocatable, or all of them are without slices.
[[nodiscard]] bool offers_gpus(const Node& node);
[[nodiscard]] GpuCount gpus_of(const World& world, const PlannerSettings& settings, const FleetIndex::Impl& index,
                               const Node& node, const NodeAssessment* assessment);

// What is wrong with the node's own pods of the plugin, GFD and the MPS daemon: "pod gpu-operator/plugin-x7k2p (plugin)
// on node n1 is not Ready: CrashLoopBackOff: …", "no pod of DaemonSet gpu-operator/mps runs on node n1". Empty also
// where these pods could not be read.
[[nodiscard]] std::vector<std::string> operand_problems(const World& world, const FleetIndex::Impl& index,
                                                        const Node& node, const NodeAssessment& assessment);

struct AuditProblem {
  Severity severity = Severity::warning;
  Reason reason;
  Cure cure = {};                  // The first thing to type shows the cause; its options: what to do in general.
  std::vector<ObjectRef> objects;  // Sorted.
  std::int64_t gpus_lost = 0;      // On these nodes, or on those that the DaemonSet, ConfigMap or policy serves.
  std::vector<std::string> lost_on = {};  // The nodes that have lost them.
  std::vector<std::string> pods = {};     // What operand_problems() says about these nodes, each once.
};

// `findings`: sorted. What a finding costs is what no pod can get of the Node itself, of the nodes that the DaemonSet
// or the SharingPolicy serves, or of those that run the key of the ConfigMap; a problem of several objects (a ConfigMap
// and its nodes) counts each node once. Of several findings about one Node, the most severe has its GPUs and pods.
[[nodiscard]] std::vector<AuditProblem> merge_findings(const FleetIndex::Impl& index,
                                                       const std::vector<Finding>& findings, const GpusByNode& gpus);

// What a check says for information, and no action follows from while an operator runs: people read its code alone.
[[nodiscard]] bool needs_no_action(Severity severity, std::string_view reason);
// "2 infos need no action while an operator runs: DefaultFirstStart, MPSSidecarCannotSignal (their texts: -o yaml)"
[[nodiscard]] std::string no_action_text(std::vector<std::string> reasons);

struct Audit {
  std::int64_t nodes = 0;                        // Nodes with GPUs or a device plugin.
  std::map<std::string, std::int64_t> plugins;   // Release -> nodes.
  std::map<std::string, std::int64_t> profiles;  // "<configmap>/<key>" -> nodes; "" without one.
  GpuCount gpus;                                 // Of all nodes; at least so many where some are uncounted.
  // GPU pods that have not started, by the code of what keeps them: for good, or until something ends by itself.
  std::map<std::string, std::int64_t> cannot_run;
  std::map<std::string, std::int64_t> waiting;
  std::vector<std::string> uncounted;  // Nodes whose number of GPUs is unknown; each counts as one GPU.
  std::vector<Finding> findings;       // Errors first, then by object.
  std::vector<AuditProblem> problems;  // The same, merged and ranked: errors first, then by GPUs lost.
  [[nodiscard]] std::int64_t count(Severity severity) const;    // Of problems.
  [[nodiscard]] std::int64_t objects(Severity severity) const;  // Of findings: each object of a problem is one.
};

// The findings of every planner, with drift as an error, and also: other tools that restart the plugin's pods or give
// out its GPUs (neighbours()), nodes whose pods are older than their target profile, nodes that no plugin serves, nodes
// that are Failed, NotReady or without an allocatable GPU, refused evictions, rollouts that nodes wait for and that
// start none (add_waiting_rollouts()), and invalid profiles that no node uses. If the fleet has no record, one is
// assumed (call assume_baseline() before). `index` is refreshed. Nodes whose GPUs cannot be used because of a change of
// the operator are named too: for information while one runs (`operator_runs`) and may change nodes.
// All of `pods` that cannot run are one problem, and all that wait another one.
[[nodiscard]] Audit audit(const Snapshot& snapshot, FleetIndex& index, bool operator_runs = true,
                          const UnstartedPods& pods = {});

// --- Rollouts that nodes wait for and that start none of them: for `audit`.

// Adds a finding for each rollout whose nodes do not run what their ConfigMap says: what stops it (a person, failures,
// mode Observe), or why none of its nodes makes progress (a full budget and the nodes that hold it, for example), which
// nodes wait, and what to do. Approvals and closed windows are for information; what opens by itself within minutes is
// left out.
void add_waiting_rollouts(ReadingPass& pass, std::vector<Finding>& findings);

// The only node that could go on is held in its change: the finding about that, which has the command, says from now on
// who waits for it. `effect`: "the rollout … starts no node, and …". False: there is no such finding.
[[nodiscard]] bool say_who_waits(std::string_view held, std::string_view effect, std::vector<Finding>& findings);

// --- Findings that follow from another finding of an audit: one cause is one problem, which names its consequences.

// Reasons that only an audit has.
inline constexpr std::string_view kNodeNotReady = "NodeNotReady";
inline constexpr std::string_view kNoneAllocatable = "NoneAllocatable";
inline constexpr std::string_view kPodsCannotRun = "PodsCannotRun";
inline constexpr std::string_view kPodsWait = "PodsWait";

// Of a node that is NotReady. `differs`: it does not show its profile either.
[[nodiscard]] std::string_view not_ready_text(bool differs);

// Leaves the causes among all findings of the audit. The index is refreshed. `changes_continue`: an operator runs and
// may finish changes, as far as that is known.
void keep_root_causes(const World& world, const FleetIndex& index, bool changes_continue,
                      std::vector<Finding>& findings);

// --- What else in the cluster restarts the plugin's pods, gives out the same GPUs, or cannot see how they are shared:
// for `audit`. Found by names that these tools write themselves.

// After index.refresh().
[[nodiscard]] std::vector<Finding> neighbours(const World& world, const FleetIndex& index);

// --- What people have set and nothing else shows: switches without a value, pauses that stop no node yet, and
// policies of equal priority for the same nodes. Pure functions.

// `gpusharing.dev/hold` and `gpusharing.dev/paused` without a value (`kubectl annotate node n1 gpusharing.dev/hold=`)
// have no effect, which their author might not expect: a warning, HoldIgnored or PausedIgnored. "false" and its like
// mean no, and every other value has an effect (model/policy.h).
[[nodiscard]] std::optional<Finding> ignored_hold(const Node& node);

// A pause of a policy, or of a ConfigMap that a plugin mounts, while no node waits for its end: no rollout and no node
// shows that the next edit will not be rolled out.
struct IdlePause {
  ObjectRef object;
  std::string text;  // Behind "the policy " or "the ConfigMap ".
  Command resume;    // Ends it.
};
// Sorted by kind and name.
[[nodiscard]] std::vector<IdlePause> idle_pauses(const World& world, const FleetIndex::Impl& index);
// The same for information: PolicyPaused, ConfigMapPaused.
[[nodiscard]] std::vector<Finding> idle_pause_findings(const World& world, const FleetIndex::Impl& index);

// All of these: ignored_hold() of each Node and the same of ConfigMaps, idle_pause_findings(), and for information
// (PolicyOverlap) the policies that select nodes which another policy of the same priority governs: which one does was
// not decided by a number that somebody chose. Each kind sorted by object.
[[nodiscard]] std::vector<Finding> findings_of_settings(const World& world, const FleetIndex::Impl& index);

// What a plan of every reconciler finds, with drift as an error. `index` is refreshed.
[[nodiscard]] std::vector<Finding> all_findings(const Snapshot& snapshot, const FleetIndex& index, const Plan& plan);

}  // namespace gso
