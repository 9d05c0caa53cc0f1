// sizeof, and the heap memory that an object owns.
#include "controller/serving/store_size.h"

namespace gso {
namespace {

constexpr std::size_t kTreeNode = 4 * sizeof(void*);  // What std::map and std::set put around an entry.

std::size_t text(const std::string& value) {
  return value.capacity() >= sizeof(std::string) / 2 ? value.capacity() + 1 : 0;  // Short ones are inside.
}

std::size_t meta(const ObjectMeta& meta) {
  return text(meta.name) + text(meta.resource_version) + meta.labels.own_bytes() + meta.annotations.own_bytes() +
         meta.owners.capacity() * sizeof(k8s::OwnerReference);
}

std::size_t statuses(const std::vector<ContainerStatus>& list) {
  return list.capacity() * sizeof(ContainerStatus);
}

std::size_t texts(const std::map<std::string, std::string>& map) {
  std::size_t out = 0;
  for (const auto& [key, value] : map) out += kTreeNode + 2 * sizeof(std::string) + text(key) + text(value);
  return out;
}

std::size_t container(const ContainerSpec& spec) {
  std::size_t out = sizeof(spec) + text(spec.name) + text(spec.image) + texts(spec.env) + texts(spec.volume_mounts);
  for (const std::string& word : spec.command) out += sizeof(word) + text(word);
  return out;
}

}  // namespace

std::size_t bytes_of(const Node& node) {
  return sizeof(node) + meta(node.meta) + node.taints.capacity() * sizeof(Taint) +
         (node.capacity.size() + node.allocatable.size()) * sizeof(ResourceCounts::Entry);
}

std::size_t bytes_of(const Pod& pod) {
  return sizeof(pod) + meta(pod.meta) + statuses(pod.containers) +
         pod.init_containers.size() * sizeof(ContainerStatus) + pod.gpu_requests.size() * sizeof(ResourceCounts::Entry);
}

std::size_t bytes_of(const ConfigMap& config_map) {
  std::size_t out = sizeof(config_map) + meta(config_map.meta);
  for (const auto& [key, value] : config_map.data) {
    out += kTreeNode + sizeof(std::string) + text(key) + (value == nullptr ? 0 : sizeof(std::string) + text(*value));
  }
  return out;
}

std::size_t bytes_of(const DaemonSet& daemonset) {
  std::size_t out = sizeof(daemonset) + meta(daemonset.meta) + texts(daemonset.match_labels) +
                    texts(daemonset.node_selector) + texts(daemonset.configmap_volumes);
  for (const ContainerSpec& spec : daemonset.containers) out += container(spec);
  for (const ContainerSpec& spec : daemonset.init_containers) out += container(spec);
  return out;
}

std::size_t bytes_of(const ControllerRevision& revision) {
  return sizeof(revision) + meta(revision.meta);
}

std::size_t bytes_of(const ClusterPolicy& policy) {
  return sizeof(policy) + meta(policy.meta) + text(policy.config_name) + text(policy.config_default);
}

std::size_t bytes_of(const DeviceClass& device_class) {
  return sizeof(device_class) + meta(device_class.meta);
}

std::size_t bytes_of(const ResourceSlice& slice) {
  return sizeof(slice) + meta(slice.meta);
}

std::size_t bytes_of(const SharingPolicy& policy) {
  return sizeof(policy) + meta(policy.meta) + text(policy.status_json);
}

std::size_t bytes_of(const SharingRollout& rollout) {
  return sizeof(rollout) + meta(rollout.meta) + text(rollout.profile) + text(rollout.status_json) +
         text(rollout.config_map) + text(rollout.to_revision);
}

std::size_t bytes_of(const KaiPod& pod) {
  return sizeof(pod) + meta(pod.meta) + pod.tolerations.capacity() * sizeof(Toleration);
}

std::size_t bytes_of(const KaiConfig& config) {
  return sizeof(config) + meta(config.meta) + texts(config.managers);
}

std::size_t bytes_of(const BindRequest& request) {
  return sizeof(request) + meta(request.meta) + text(request.pod_name) + request.groups.capacity() * sizeof(Interned);
}

std::vector<StoreSize> store_sizes(const World& world) {
  const KaiWorld& kai = world.kai;
  return {{"nodes", world.nodes.size(), bytes_of(world.nodes)},
          {"pods", world.operand_pods.size(), bytes_of(world.operand_pods)},
          {"configmaps", world.configmaps.size(), bytes_of(world.configmaps)},
          {"daemonsets", world.daemonsets.size(), bytes_of(world.daemonsets)},
          {"controllerrevisions", world.revisions.size(), bytes_of(world.revisions)},
          {"clusterpolicies", world.clusterpolicies.size(), bytes_of(world.clusterpolicies)},
          {"deviceclasses", world.device_classes.size(), bytes_of(world.device_classes)},
          {"resourceslices", world.resource_slices.size(), bytes_of(world.resource_slices)},
          {"sharingpolicies", world.policies.size(), bytes_of(world.policies)},
          {"sharingrollouts", world.rollouts.size(), bytes_of(world.rollouts)},
          {"kai-pods", kai.pods.size(), bytes_of(kai.pods)},
          {"configs", kai.configs.size(), bytes_of(kai.configs)},
          {"bindrequests", kai.bind_requests.size(), bytes_of(kai.bind_requests)}};
}

}  // namespace gso
