// What the parts of explain_pod give each other: the pod, read once, and how it is changed (asked_pod.cc), the nodes
// that it could have and those that it selects (pod_placement.cc), what each obstacle there is called and what to do
// about it (placement_rows.cc), what its scheduler says (pod_scheduler.cc), and once it has a node, what that node, its
// kubelet and its end say (pod_on_node.cc).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/explain/pod.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/partitioning_world.h"

namespace gso {

struct AskedPod {
  Pod pod;
  nlohmann::json object;
  std::vector<Toleration> tolerations;
  // Its node selector and affinity, as if a DaemonSet had them.
  Operand placement;
  std::vector<ServerContainer> containers;
  bool fraction = false;  // It requests a share from KAI.
  // Whose template the pod comes from.
  struct Workload {
    std::string kind;  // "Deployment", "Job", "PyTorchJob"; empty: nobody creates the pod anew.
    std::string name;
    std::string resource;  // For kubectl: "deployment", "pytorchjobs.kubeflow.org".
    // A changed template reaches the pods: Deployment, StatefulSet, DaemonSet.
    bool changeable = false;
  };
  [[nodiscard]] Workload workload() const;
  // "metadata", "spec" or "status" of the object; empty: it has none.
  [[nodiscard]] nlohmann::json part(const char* name) const { return k8s::object_at<nlohmann::json>(object, name); }
  // How much of the resource the container requests that requests most of it; init containers count. 0: none.
  [[nodiscard]] std::int64_t most_of_a_container(const std::string& resource) const;
  [[nodiscard]] std::string in_namespace() const { return "--namespace " + std::string(pod.meta.ns.view()); }
};

// The pod as the API server has it. Errors (reason `decode`): the text is not a pod.
[[nodiscard]] k8s::Result<AskedPod> read_pod(std::string_view json);

// The texts of that list; other items are left out.
[[nodiscard]] std::vector<std::string> strings_at(const nlohmann::json& object, std::string_view field);

// A name from the cluster, for a command that people paste; empty: it is none that an object can have.
[[nodiscard]] std::string name_for_command(std::string_view name);

// How a pod is changed: in the template of its workload, by a command if that reaches the pods, else by whoever creates
// them.
// Each container that requests `instead_of` requests as many of `resource` in its place, and at most `count`. Other
// containers get nothing.
[[nodiscard]] Cure ask_for(const AskedPod& asked, const std::string& resource, std::int64_t count,
                           const std::string& instead_of);
// Another scheduler places the pods.
[[nodiscard]] Cure schedule_by(const AskedPod& asked, std::string_view scheduler);
// The pods tolerate the taint.
[[nodiscard]] Cure tolerate(const AskedPod& asked, const Taint& taint);
[[nodiscard]] Command describe_pod(const AskedPod& asked);
// `kubectl get` of the workload, or of the pod if it has none.
[[nodiscard]] Command show_template(const AskedPod& asked);

// Why the pod has no node, according to what the GPU nodes offer. `slices`: what is said about slices that it waits
// for; no node offers these before they are cut.
void explain_placement(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked,
                       const std::optional<PodCause>& slices, PodExplanation& out);

// The scheduler's message about a pod that it has not placed; empty: no message.
[[nodiscard]] std::string scheduler_says(const AskedPod& asked);

// A pod that waits for a scheduler that does not seem to run: the names of the API server's default scheduler and of
// KAI are known; any other scheduler is judged by whether it reports anything.
[[nodiscard]] std::optional<PodCause> unseen_by_schedulers(const Snapshot& snapshot, const AskedPod& asked);

// Why a pod is not placed although GPUs are free for it on `nodes` (for people; `node` is one of them): the other
// resources that the scheduler finds insufficient, or `otherwise`.
[[nodiscard]] PodCause not_placed(const AskedPod& asked, const std::string& otherwise, const std::string& nodes,
                                  const std::string& node);

// "a, b": the entries of spec.resourceClaims.
[[nodiscard]] std::string names_of_claims(const AskedPod& asked);
// True if the device plugin's GPUs are nothing to the pod: it has claims and requests no nvidia.com/* resource.
[[nodiscard]] bool waits_for_claims_alone(const AskedPod& asked);
// A pod with ResourceClaims, which are not read: no GPU of the device plugin satisfies one.
[[nodiscard]] PodCause claims_not_read(const AskedPod& asked);

// Why a pod that requests a share of a GPU from KAI has no node yet.
[[nodiscard]] PodCause kai_wait(const Snapshot& snapshot, const AskedPod& asked);

// The pod is deleted and still there. nullopt: it is not deleted.
[[nodiscard]] std::optional<PodCause> being_deleted(const AskedPod& asked, WallTime now);
[[nodiscard]] std::optional<PodCause> unknown_phase(const AskedPod& asked);

// Why containers of a pod that has a node do not run.
[[nodiscard]] std::vector<PodCause> container_causes(const AskedPod& asked, WallTime now);
// Why a pod of phase Failed has failed.
[[nodiscard]] PodCause failed_pod(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked);
// The pod's node is gone or cannot report: nothing that the pod's status says is current.
[[nodiscard]] std::optional<PodCause> node_unreachable(const Snapshot& snapshot, const AskedPod& asked);
// A change or a problem of the pod's node.
[[nodiscard]] std::optional<PodCause> node_state(const Snapshot& snapshot, const FleetIndex& index,
                                                 const AskedPod& asked);
// The pod runs: which pods use the GPUs of its node beside it.
void explain_neighbours(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked, PodExplanation& out);

// The pod mounts a usual directory of MPS, and not the one that its node's label gpusharing.dev/mps-pipe-directory
// names.
[[nodiscard]] std::optional<PodCause> other_pipe_directory(const World& world, const AskedPod& asked);

// True if the node's plugin refuses what one of the pod's containers requests of that resource
// (failRequestsGreaterThanOne).
[[nodiscard]] bool refuses_request(const FleetIndex& index, const Node& node, const AskedPod& asked,
                                   std::string_view resource);

// --- What can keep a waiting pod off a node, one row for each obstacle: its name, what is said about it, and what to
// do.

// What GFD appends to nvidia.com/gpu.product under sharing without renameByDefault.
inline constexpr std::string_view kSharedProduct = "-SHARED";

// In the order in which a node is looked at, from what makes it no candidate at all to what is nearest to running
// there.
enum class Obstacle {
  not_selected,
  no_gpus,
  not_served,
  renamed,
  too_few,
  refused,
  none_allocatable,
  tainted,
  pressure,
  not_ready,
  cordoned,
  in_change,
  full,
  none,
};

struct Verdict {
  Obstacle obstacle = Obstacle::none;
  std::string text;      // Follows the node's name.
  std::string resource;  // The resource or label that it concerns.
  // How much of the resource the node offers; of not_selected: 0 if the node does not have the label, and more the
  // nearer its value is to the required one.
  std::int64_t most = 0;
  const Taint* taint = nullptr;
  std::vector<std::string> preemptible = {};  // Pods of lower priority that use what the pod requests.
  bool nobody_cuts = false;                   // Of a slice: no node of the cluster is partitioned.
};

// The nodes with one obstacle.
struct Candidates {
  Verdict best;                                             // Of the node that offers most.
  std::vector<std::string> nodes;                           // The one of `best` first.
  std::map<std::string, std::vector<std::string>> by_text;  // Verdict::text -> its nodes.
};

// The stable name of the obstacle, CamelCase.
[[nodiscard]] std::string_view code_of(Obstacle obstacle);
// What is said about it where `at` has it, and what to do. Obstacle::none has an answer, too: the scheduler's own
// reasons (not_placed()) replace it.
[[nodiscard]] PodCause cause_of(Obstacle obstacle, const AskedPod& asked, const Candidates& at);

// Sorted: "one node (gpu-1)", "7 nodes (a, b, c, d, e and 2 more)"
[[nodiscard]] std::string where_of(const Candidates& at);

// The other name of the resource: a profile with renameByDefault adds or removes the suffix.
[[nodiscard]] std::string other_name(std::string_view resource);

// What is planned for a pod that waits for slices, or why nothing is, by those findings; nullopt: it waits for none, or
// no scheduler has called it unschedulable yet.
[[nodiscard]] std::optional<PodCause> awaited_slices(const std::vector<Finding>& findings, const Pod& pod);
// The finding is about slices that a pod waits for: awaited_slices() says it.
[[nodiscard]] bool is_of_awaited_slices(const Finding& finding);

// What each container of the pod that requests a slice can allocate, and how to see it in a pod that runs. Empty for
// other pods.
[[nodiscard]] std::vector<PodCause> slice_limits(const SlicePod& pod);

}  // namespace gso
