// What the parts of explain_pod give each other: the pod, read once, which nodes it selects, and how it is changed
// (asked_pod.cc), why it has no node (pod_scheduler.cc), what the nodes offer it (pod_placement.cc), and once it has a
// node, what that node, its kubelet and its end say (pod_on_node.cc).
#pragma once

#include <cstdint>
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

// What GFD appends to nvidia.com/gpu.product under sharing without renameByDefault.
inline constexpr std::string_view kSharedProduct = "-SHARED";

// What a node lacks that the pod's node selector or required node affinity asks for.
struct UnmetSelector {
  std::string text;        // Follows the node's name.
  std::string label = {};  // That it concerns; empty: none.
  // 0 if the node does not have the label, and more the nearer its value is to the required one.
  std::int64_t nearness = 0;
};
// nullopt: the pod selects the node.
[[nodiscard]] std::optional<UnmetSelector> not_selected_by(const AskedPod& asked, const Node& node);

// A pod, and the cluster about which it is asked. The index is refreshed.
struct PodQuestion {
  const Snapshot& snapshot;
  const FleetIndex& index;
  const AskedPod& asked;
  // What the operator would do now. Null without access to nodes and plugins: then the snapshot is empty.
  const Plan* plan = nullptr;
};

// The code of a cause: no node that the pod selects offers what it requests.
inline constexpr std::string_view kNotServed = "NotServed";
// Why the pod has no node. It is not deleted.
void explain_wait(const PodQuestion& question, PodExplanation& out);
// The same according to what the GPU nodes offer.
void explain_placement(const PodQuestion& question, PodExplanation& out);

// A pod that waits for a scheduler that does not seem to run: the names of the API server's default scheduler and of
// KAI are known; any other scheduler is judged by whether it reports anything.
[[nodiscard]] std::optional<PodCause> unseen_by_schedulers(const PodQuestion& question);

// Why a pod is not placed although GPUs are free for it on `nodes` (for people; `node` is one of them): the other
// resources that the scheduler finds insufficient, or `otherwise`.
[[nodiscard]] PodCause not_placed(const AskedPod& asked, const std::string& otherwise, const std::string& nodes,
                                  const std::string& node);

// "a, b": the entries of spec.resourceClaims.
[[nodiscard]] std::string names_of_claims(const AskedPod& asked);

// The object is the pod.
[[nodiscard]] bool is_about(const ObjectRef& object, const Pod& pod);

// What is planned for a pod that waits for slices, or why nothing is, as the plan's Events say it: no node offers
// slices before they are cut. nullopt: it waits for none, or no scheduler has called it unschedulable yet.
[[nodiscard]] std::optional<PodCause> awaited_slices(const PodQuestion& question);
// The code is of slices that a pod waits for: awaited_slices() says it.
[[nodiscard]] bool is_of_awaited_slices(std::string_view code);

// What each container of the pod that requests a slice, and can use one, can allocate, and how to see it in a pod that
// runs. Empty for other pods.
[[nodiscard]] std::vector<PodCause> slice_limits(const SlicePod& pod, std::int64_t mps_user);

// That nothing which the pod's status says is current, because its node is gone or cannot report; and that the pod is
// deleted and still there.
void explain_end(const PodQuestion& question, PodExplanation& out);
// Why a pod that has a node has failed or does not run, what its node has to do with it, and which pods use the GPUs
// beside it.
void explain_on_node(const PodQuestion& question, PodExplanation& out);

// True if the node's plugin refuses what one of the pod's containers requests of that resource
// (failRequestsGreaterThanOne).
[[nodiscard]] bool refuses_request(const PodQuestion& question, const Node& node, std::string_view resource);

}  // namespace gso
