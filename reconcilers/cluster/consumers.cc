#include "reconcilers/cluster/consumers.h"

#include <algorithm>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/kai_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/paths.h"

namespace gso {

namespace {

// KAI's fractions are annotations and groups: the GPU itself is requested by their reservation pod. A consumer of
// several devices has only group labels.
bool has_marks_of_kai(const Pod& pod) {
  const auto& annotations = pod.meta.annotations;
  if (annotations.contains(kai::kFraction) || annotations.contains(kai::kMemory)) return true;
  const auto by_container = [](const auto& entry) { return kai::names_nv_fraction(entry.key.view()); };
  const auto in_group = [](const auto& entry) {
    return entry.key == kai::kGroupLabel || entry.key.view().starts_with(kai::kGroupPrefix);
  };
  return std::ranges::any_of(annotations, by_container) || std::ranges::any_of(pod.meta.labels, in_group);
}

// Anybody can write these marks on a pod. They mean a GPU only where KAI has placed the pod; in doubt they do.
bool shares_by_kai(const Pod& pod, const KaiWorld& kai) {
  if (!has_marks_of_kai(pod)) return false;
  const KaiView view = view_kai(kai, KaiSettings());
  return view.served ? is_placed_by_kai(kai, view, pod.scheduler_name.view(), pod.meta.key()) : !kai.use_known;
}

// A claim can be for a device of any driver. It can be for a GPU only where the GPUs' driver offers some.
bool claims_gpu(const Pod& pod, const World& world) {
  if (!pod.dra_gpu_claim) return false;
  if (!world.resource_slices.synced()) return true;
  return std::ranges::any_of(world.resource_slices.all(), [&](const auto& entry) {
    const ResourceSlice& slice = *entry.second;
    return slice.driver == kGpuDraDriver && (slice.node.empty() || slice.node == pod.node_name);
  });
}

// Mounts from the host the directory of an MPS daemon of this cluster, or a path below it.
bool mounts_mps_root(const Pod& pod, const World& world) {
  if (pod.host_paths.empty()) return false;
  return std::ranges::any_of(world.daemonsets.all(), [&](const auto& entry) {
    const DaemonSet& daemonset = *entry.second;
    return !daemonset.mps_roots.empty() && runs_operand(daemonset) &&
           std::ranges::any_of(daemonset.mps_roots, [&](const std::string& root) {
             return std::ranges::any_of(pod.host_paths,
                                        [&](const Interned& path) { return is_at_or_below(path.view(), root); });
           });
  });
}

// By its DaemonSet where operand pods are not listed (`cleanup`): the plugin's pods mount the directory of its daemon.
bool is_operand_pod(const Pod& pod, const World& world) {
  if (world.operand_pods.find(pod.meta.key()) != nullptr) return true;
  const auto* owner = pod.meta.controller();
  if (owner == nullptr || owner->kind != "DaemonSet") return false;
  const DaemonSet* daemonset =
      world.daemonsets.find(ObjectKey{std::string(pod.meta.ns.view()), std::string(owner->name.view())});
  return daemonset != nullptr && daemonset->meta.uid == owner->uid.view() && runs_operand(*daemonset);
}

}  // namespace

bool runs_operand(const DaemonSet& daemonset) {
  return std::ranges::any_of(daemonset.containers, is_operand_container, &ContainerSpec::name);
}

bool is_gpu_consumer(const Pod& pod, const World& world) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed") return false;
  if (is_operand_pod(pod, world)) return false;
  const bool requests = std::ranges::any_of(pod.gpu_requests, [](const auto& entry) { return entry.second > 0; });
  if (requests || pod.uses_mps_pipe || claims_gpu(pod, world) || shares_by_kai(pod, world.kai) ||
      mounts_mps_root(pod, world))
    return true;
  // The NVIDIA stack's other DaemonSets (DCGM, validator, driver) see all devices and are not GPU clients.
  const auto* owner = pod.meta.controller();
  // The container toolkit creates `nvidia`, `nvidia-cdi` and `nvidia-legacy`.
  const bool sees_devices = pod.nvidia_visible_devices || pod.runtime_class.view().starts_with("nvidia");
  return sees_devices && !(owner != nullptr && owner->kind == "DaemonSet");
}

bool is_rejected(const Pod& pod, const PlannerSettings& settings) {
  const auto* owner = pod.meta.controller();
  // DaemonSets clean up after themselves, and mirror pods are files on the node.
  const bool remade = owner != nullptr && owner->kind != "DaemonSet" && owner->kind != "Node";
  return pod.phase == "Failed" && pod.reason == "UnexpectedAdmissionError" && remade &&
         std::ranges::any_of(pod.gpu_requests, [](const auto& entry) { return entry.second > 0; }) &&
         settings.remove_rejected_pods.contains(std::string(pod.meta.ns.view()));
}

}  // namespace gso
