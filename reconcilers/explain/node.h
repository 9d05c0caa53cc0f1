// A node for people: its state and why it is in it, what it waits for, its cordon, its slices, and all that `explain`
// shows of it. Pure functions of the objects.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/reasons/command.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// Its profile is valid and shares by MPS. `assessment` may be null.
[[nodiscard]] bool shares_by_mps(const NodeAssessment* assessment);

// --- What one client of the node's shared GPUs gets: a container that requests one replica. In client_share.cc.

struct ClientShare {
  Strategy strategy = Strategy::none;  // none: no GPU is shared, or no valid profile is known; the rest is empty then.
  std::string resource;                // What the container requests: "nvidia.com/gpu.shared".
  std::int64_t threads = 0;            // Of a GPU, in per cent; 0: no limit.
  std::vector<std::int64_t> memory_mib;  // By index of the GPU, one where all are alike; 0: not known. Empty: no limit.
  bool is_loaded = false;                // The node runs that profile, and shows it.

  [[nodiscard]] std::string_view kind() const;  // "MPS client", "time-slicing"; empty: none of them.
  [[nodiscard]] bool knows_memory() const;      // Of each GPU.
  // "25 % of threads, 3840 MiB", "no memory limit"; empty: nothing is shared.
  [[nodiscard]] std::string limits() const;
};
// Under the target of the node, as the MPS daemon computes it. `assessment` may be null.
[[nodiscard]] ClientShare client_share(const Node& node, const NodeAssessment* assessment);
// The field `client` of docs/json.md; null: nothing is shared.
[[nodiscard]] nlohmann::ordered_json to_json(const ClientShare& share);

// --- The slices of partitioned nodes and of the pods that use them, for people.

// One GPU of a node that is labelled for partitioning.
struct GpuBar {
  std::int64_t gpu = 0;  // Its index.
  std::int64_t memory_mib = 0;
  GpuSlices slices;
  std::string bar;  // "[######----....]": memory of used slices, of free ones, and the rest.
};
// By index; empty if the node is not labelled for partitioning, or its report makes no sense.
[[nodiscard]] std::vector<GpuBar> slice_bars(const Node& node);
// "40.0 GiB"
[[nodiscard]] std::string memory_of(const GpuBar& bar);
// "GPU 0 [######----....] 40.0 GiB; used: 2 x 10 GiB; free: none"
[[nodiscard]] std::string to_string(const GpuBar& bar);

// --- The state of a node as tables show it, and what it waits for.

class ReadingPass;  // reconcilers/explain/reading_pass.h

struct ShownState {
  std::string state;  // "UpToDate", "Blocked(OutsideWindow)", "Drift", "NoPlugin", …
  std::string message;
  bool in_trouble = false;      // The node is Failed or Blocked.
  bool waits_for_slot = false;  // Of a full budget: the message is that of all nodes that wait for it.
};
// If the namespace of the node's device plugin, or the operator's record, could not be read, the state is kUnknown,
// whatever the assessment concluded from the missing objects. A change that has failed shows in the node's annotation.
[[nodiscard]] ShownState shown_state(ReadingPass& pass, const Node& node);
inline constexpr std::string_view kUnknown = "Unknown";
// What a state means that is no phase (Drift, PreexistingDrift, Unproven), and what the operator does about such nodes;
// empty: of other states. `assumed`: no operator has recorded the fleet, so nothing is known of the time before;
// `operator_lease`: the Lease that an operator renews all the same, empty if none does.
[[nodiscard]] std::string state_note(std::string_view state, bool assumed, std::string_view operator_lease = {});
// A revision for people: "(invalid)" for the revision that represents an invalid text (kInvalidRevision).
[[nodiscard]] std::string shown_revision(std::string_view revision);
// "<configmap>/<key>" of a profile: "mps-config/(none)" without a key, "(none)" without a ConfigMap.
[[nodiscard]] std::string shown_profile(std::string_view profile);
// The same of what the node has loaded: a node that serves GPUs has loaded some valid text, "(unknown)", before the
// operator saw an invalid one.
[[nodiscard]] std::string shown_loaded_revision(const Node& node, const NodeAssessment& assessment);
// The node has loaded a text that is not known, although the record has the invalid one of that time.
[[nodiscard]] bool loaded_text_is_unknown(const Node& node, const NodeAssessment& assessment);
// The pods that block a node in a change or at the back of the queue, with the text of the SharingRollout ("waits for
// team/job-1"); empty if no pod blocks it, or the node is not among the first 50 listed there.
[[nodiscard]] std::string blocking_pods_of(const World& world, std::string_view node);
// What a condition of a status, or another entry of it, gives as its reason.
[[nodiscard]] Reason reason_in(const nlohmann::json& entry);
// How the API server refuses what the operator requests on a node that waits: PDBRefuses, or Forbidden. Only the
// operator receives these answers, so they are read from the SharingRollout, as in blocking_pods_of(). nullopt: it
// refuses nothing.
[[nodiscard]] std::optional<Reason> refusal_of(const World& world, std::string_view node);
// That the stop of a policy still applies although the policy does not exist any more; empty: it has none, or exists.
[[nodiscard]] std::string gone_policy_text(const ReadingPass& pass, std::string_view policy);

// --- Cordons, for people.

struct NodeAssessment;  // reconcilers/node/assess.h

// The finding about a node that is cordoned, and that no change in progress uncordons.
inline constexpr std::string_view kCordoned = "Cordoned";
// A plugin with profiles serves the node, so that a cordon takes a slot of every budget. `assessment` may be null.
[[nodiscard]] bool is_managed(const NodeAssessment* assessment);
// The operator has cordoned the node for a change that failed: the cordon stays until the node is retried.
[[nodiscard]] bool is_cordon_of_failure(const Node& node);

// Who cordoned the node: "cordoned, and not by the operator", "cordoned by the operator, for the failed
// change". Empty: it is not cordoned, or the operator uncordons it when the change in progress finishes. `assessment`
// is null where no plugin serves the node.
[[nodiscard]] std::string cordon_text(const Node& node, const NodeAssessment* assessment);

// That no new pod gets the node's GPUs because of that cordon, and who ends it. `name`: what the command to type calls
// the node: its name, or "NODE" where equal findings of many nodes are printed once. nullopt: cordon_text() is empty.
[[nodiscard]] std::optional<Finding> cordon_finding(const Node& node, const NodeAssessment* assessment,
                                                    std::string_view name);

// --- Nodes whose pods are older than the last edit of their ConfigMap, in a fleet where no operator has rolled it
// out: they serve what they read before, and have lost nothing.

// The audit's reason for such nodes.
inline constexpr std::string_view kEditNotLive = "EditNotLive";

// When the ConfigMap's data was edited last, of a node that did not show its profile at the baseline, and whose plugin
// serves with a pod that read its profile before that edit. Once an operator has recorded what a node has loaded, an
// edit makes it Pending instead. nullopt: it is not so, or not known.
[[nodiscard]] std::optional<WallTime> edit_not_live(const World& world, const PlannerSettings& settings,
                                                    const FleetIndex::Impl& index, const Node& node,
                                                    const NodeAssessment& assessment);

// What is said of such a node, without its name: which edit, what it serves instead, and how the edit becomes live.
[[nodiscard]] std::string edit_not_live_text(const World& world, const FleetIndex::Impl& index,
                                             const NodeAssessment& assessment, WallTime edited);

// --- How far the replacement of standalone MPS daemons is, for people.

// The nodes of one DaemonSet of such daemons.
struct DaemonProgress {
  std::string daemonset;      // "namespace/name"
  bool watches_host = false;  // Its pods only watch a daemon that the host runs.
  std::string revision;       // controller-revision-hash of the newest template; empty: unknown.
  std::int64_t total = 0;
  std::int64_t updated = 0;              // Serve with that template.
  std::vector<std::string> in_progress;  // Nodes whose daemon is being replaced,
  std::vector<std::string> deferred;     // whose replacement is deferred,
  std::vector<std::string> not_ready;    // and others whose pod does not serve.
  std::vector<std::string> pinning;      // Whose daemon stays while the driver is to be replaced (DriverPinned).
};
// Sorted by DaemonSet; those without a node are included. `index` is up to date with `world`.
[[nodiscard]] std::vector<DaemonProgress> daemon_progress(const World& world, const FleetIndex& index);

// Where the nodes of such a rollout are in the change of their daemon, by name, in the words for changes of profiles.
// Without the nodes that need none.
[[nodiscard]] std::map<std::string, Phase> daemon_phases(const World& world, const FleetIndex::Impl& index,
                                                         const RolloutKey& rollout);

// --- The GPUs of a node that KAI shares: which pods have a part of each, and how much.

// One group of KAI's, which is one GPU.
struct SharedGpu {
  std::string group;
  std::vector<std::string> reservations;  // Pods that hold it, "namespace/name"; several are a fault of KAI's.
  std::string device;                     // The GPU's UUID, as a reservation says; empty: not known.
  struct Part {
    k8s::ObjectKey pod;
    std::string fraction;         // The annotation gpu-fraction; empty: the pod asks for memory, or in another way.
    std::int64_t memory_mib = 0;  // gpu-memory; 0: the pod asks for a fraction, or in another way.
  };
  std::vector<Part> parts;  // By namespace and name.
  // Sums of what can be read.
  double fraction = 0;
  std::int64_t memory_mib = 0;
};

// By group. Pods that have ended, and those that KAI has not placed, have no part. Empty: none is shared, or the node's
// GPU pods are not among snapshot.consumers.
[[nodiscard]] std::vector<SharedGpu> shared_gpus(const Snapshot& snapshot, const FleetIndex::Impl& index,
                                                 std::string_view node);
// "group g1 (GPU-1, held by kai-resource-reservation/gpu-reservation-n1-x): team/a 0.5, lab/b 0.25; together 0.75 of
// it"
[[nodiscard]] std::string to_string(const SharedGpu& gpu);
// [{"group":"g1","reservations":[…],"device":"GPU-1","pods":[{"namespace":…,"name":…,"fraction":"0.5","memoryMiB":0}],
// "fraction":0.75,"memoryMiB":0}]
[[nodiscard]] nlohmann::ordered_json shared_gpus_json(const std::vector<SharedGpu>& gpus);

// "a share of 0.5 of a GPU, from KAI" of a pod's annotations; empty: it asks KAI for none by gpu-fraction or
// gpu-memory.
[[nodiscard]] std::string asked_of_kai(const k8s::StringMap& annotations);

struct NodeExplanation {
  std::string node;
  ShownState shown;
  // The check that blocks the node (without a code: it is not blocked, or something else blocks it), and how to fix
  // that in general; `next` is the command.
  Reason obstacle;
  // "GPU Operator (cluster-policy)", "nos", …; empty: no provider serves GPUs on the node.
  std::string provider;
  std::string plugin;  // "gpu-operator/nvidia-device-plugin-daemonset v0.17.1"
  std::string policy;
  bool policy_is_gone = false;  // It was deleted, and its last spec still governs the node.
  std::string profile;          // "<configmap>/<key>"
  std::string source;           // Who chose it: "label nvidia.com/device-plugin.config=t4, written by policy p"
  std::string strategy;         // "mps", with replicas: "mps, nvidia.com/gpu x 4"
  ClientShare client;
  std::string loaded;  // Revision, and how it is known: "v1-… (annotation)"
  std::string target;
  struct Row {
    std::string what;  // A label or resource.
    std::string expected;
    std::string observed;
    [[nodiscard]] bool fits() const { return expected == observed; }
  };
  std::vector<Row> rows;
  std::map<std::string, std::int64_t> replicas;  // Of each device, by shared resource.
  std::map<std::string, std::int64_t> capacity;
  std::map<std::string, std::int64_t> allocatable;
  // Operands and GPU pods, for programs.
  struct NodePod {
    std::string ns;
    std::string name;
    std::string component;  // "plugin", "gfd", "mps"; empty: a GPU pod.
    bool ready = false;
    std::map<std::string, std::int64_t> requests;
  };
  std::vector<NodePod> pods;
  std::vector<GpuBar> slices;          // Of a node whose GPUs are partitioned.
  std::vector<SharedGpu> shared_gpus;  // By KAI.
  std::vector<std::string> notes;      // Cordons, holds, a change in progress: for people.
  std::vector<std::string> operands;   // "plugin: nvidia-…-x7k2p Running, ready"
  std::vector<std::string> consumers;  // "team-a/train-0: nvidia.com/gpu=1"
  // The planners' findings about this node and its setup, and that of a cordon by somebody else.
  std::vector<Finding> findings;
  std::set<std::string> of_headline;  // Those messages of findings that `shown` says, without their field.
  // What to do about them, by reason.
  std::map<std::string, std::string, std::less<>> remedies;
  // What can end a wait for pods, each with whoever decides it (pod_choices()). Empty: there is nothing to decide.
  std::vector<std::string> options;
  // The one command to continue with; empty: no action is needed.
  Command next;
};

// After index.refresh(). `findings`: all findings of the planners about the cluster. nullopt: the node does not exist.
[[nodiscard]] std::optional<NodeExplanation> explain_node(const Snapshot& snapshot, FleetIndex& index,
                                                          const std::vector<Finding>& findings, std::string_view name);

// --- An explanation of a node as JSON: `explain -o json` and /debug/nodes.

// Of the JSON forms of explanations (docs/json.md): it changes when a field changes its meaning or goes.
inline constexpr int kExplanationVersion = 1;

// [{"gpu":0,"memoryMiB":40960,"used":{"10":2},"free":{}}]: the numbers of slices by their size in GiB. `status` has the
// same.
[[nodiscard]] nlohmann::ordered_json slices_json(const std::vector<GpuBar>& bars);

// {"node":…,"state":…,…}: the names are stable.
[[nodiscard]] nlohmann::ordered_json explanation_json(const NodeExplanation& explanation);

}  // namespace gso
