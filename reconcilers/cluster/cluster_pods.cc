// Sorts the pods into operands, consumers, reservations, and waiting pods.
#include "reconcilers/cluster/cluster_pods.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/operand.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {

namespace {

// Fraction pods and scaling pods (of KAI's node-scale-adjuster) that have no node yet.
bool is_waiting(const Pod& pod, const KaiView& view) {
  const bool fraction = pod.meta.annotations.contains(kai::kFraction) || pod.meta.annotations.contains(kai::kMemory);
  return pod.node_name.empty() && (pod.phase.empty() || pod.phase == "Pending") &&
         (fraction || pod.meta.ns.view() == view.scaling);
}

bool was_rejected(const Pod& pod) {
  return pod.phase == "Failed" && pod.reason == "UnexpectedAdmissionError";
}

// A controller creates another pod in its place. Mirror pods are files on the node.
bool is_remade(const Pod& pod) {
  const auto* owner = pod.meta.controller();
  return owner != nullptr && owner->kind != "Node";
}

bool is_unstarted(const Pod& pod) {
  const bool asks = requests_gpus(pod) || pod.meta.annotations.contains(kai::kFraction) ||
                    pod.meta.annotations.contains(kai::kMemory);
  const bool pending = pod.phase.empty() || pod.phase == "Pending";
  return asks && !pod.meta.deletion_timestamp && (pending || was_rejected(pod));
}

}  // namespace

k8s::Result<void> ClusterPods::add(std::string_view json) {
  k8s::Result<Pod> pod = project_pod(json);
  if (!pod) return std::unexpected(pod.error());
  k8s::Result<KaiPod> for_kai = project_kai_pod(json);
  if (!for_kai) return std::unexpected(for_kai.error());
  k8s::Result<SlicePod> for_slices = project_slice_pod(json);
  if (!for_slices) return std::unexpected(for_slices.error());
  if (is_unstarted(*pod)) {
    if (unstarted_.pods.size() < UnstartedPods::kMost && unstarted_.bytes + json.size() <= UnstartedPods::kMostBytes) {
      unstarted_.bytes += json.size();
      unstarted_.pods.push_back({*pod, std::string(json)});
    } else {
      ++unstarted_.beyond;
    }
  }
  if (pod->dra_gpu_claim && !pod->node_name.empty())
    if (auto names = project_claims_of_pod(json)) claims_[std::string(pod->meta.uid)] = *std::move(names);
  pods_.push_back({*std::move(pod), *std::move(for_kai), *std::move(for_slices)});
  return {};
}

UnstartedPods ClusterPods::take_unstarted() {
  std::set<std::string, std::less<>> serving;  // Controllers with a pod that runs, or has ended well.
  for (const auto& each : pods_) {
    const auto* owner = each.pod.meta.controller();
    if (owner != nullptr && (each.pod.phase == "Running" || each.pod.phase == "Succeeded"))
      serving.emplace(owner->uid.view());
  }
  std::erase_if(unstarted_.pods, [&](const UnstartedPods::Unstarted& each) {
    return was_rejected(each.pod) && is_remade(each.pod) && serving.contains(each.pod.meta.controller()->uid.view());
  });
  return std::move(unstarted_);
}

void ClusterPods::place_for_partitioning(World& world) {
  PartitioningWorld& partitioning = world.partitioning;
  const std::vector<std::string> nodes = partitioned_nodes(world);
  partitioning.nodes_known = {nodes.begin(), nodes.end()};
  partitioning.pending_known = true;
  partitioning.pods.init();
  for (Views& views : pods_) {
    SlicePod& pod = views.for_slices;
    const bool waits = pod.node_name.empty() && pod.phase == "Pending";
    if (!nodes.empty() && (waits || partitioning.nodes_known.contains(std::string(pod.node_name.view()))))
      partitioning.pods.init_apply(std::move(pod));
  }
  partitioning.pods.init_done();
}

void ClusterPods::place_for_kai(World& world, WallTime now) {
  KaiWorld& kai = world.kai;
  const KaiView view = view_kai(kai, KaiSettings{});
  LookupResults::Waiting waiting{one_look(now), {}};
  for (const Views& views : pods_)
    if (is_waiting(views.pod, view)) waiting.pods.push_back({views.pod, views.for_kai.tolerations});
  kai.lookups.waiting = std::move(waiting);
  kai.pods.init();
  for (const Views& views : pods_) {
    const KaiPod& pod = views.for_kai;
    const bool watched = pod.meta.labels.contains(kai::kGroupLabel) || role_of(pod, view) == KaiRole::unlabelled;
    if (watched) kai.pods.init_apply(pod);
    for (const std::string& group : groups_of(pod.meta.labels)) {
      LookupResults::Group& listed = kai.lookups.groups[group];
      listed.at = one_look(now);
      if (pod.meta.labels.contains(std::string(kai::kGroupPrefix) + group)) listed.pods.push_back(pod);
    }
    kai.lookups.pods[pod.meta.key()] = {one_look(now), is_alive(pod)};
  }
  kai.pods.init_done();
  for (const auto& [key, request] : kai.bind_requests.all())
    kai.lookups.pods.try_emplace(ObjectKey{key.ns, request->pod_name}, LookupResults::Pod{one_look(now), false});
}

namespace {

void follow_jobs(std::map<std::string, NodeConsumers>& consumers) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const auto& [name, listing] : consumers) {
    for (const Pod& pod : listing.pods)
      if (const auto job = job_of(pod)) nodes[job->id()].insert(name);
  }
  for (auto& [name, listing] : consumers) {
    for (const Pod& pod : listing.pods)
      if (const auto job = job_of(pod)) listing.jobs[job->id()] = nodes[job->id()];
  }
}

}  // namespace

void ClusterPods::place(World& world, std::map<std::string, NodeConsumers>& consumers, WallTime now) {
  place_for_kai(world, now);
  place_for_partitioning(world);
  const Discovery found = discover(world);
  const auto is_operand = [&](const Pod& pod) {
    const auto* owner = pod.meta.controller();
    if (owner == nullptr) return false;
    const auto owns = [&](const Operand& daemon) {
      return daemon.key.ns == pod.meta.ns.view() && daemon.uid == owner->uid.view();
    };
    return std::ranges::any_of(found.standalone, owns) ||
           std::ranges::any_of(found.installations, [&](const PluginInstallation& installation) {
             return installation.ns == pod.meta.ns.view() && installation.by_uid(owner->uid.view()) != nullptr;
           });
  };
  for (const auto& [key, node] : world.nodes.all()) consumers[key.name].listed_at = one_look(now);
  std::vector<Pod> others;
  world.operand_pods.init();
  for (Views& views : pods_)
    if (is_operand(views.pod))
      world.operand_pods.init_apply(std::move(views.pod));
    else
      others.push_back(std::move(views.pod));
  world.operand_pods.init_done();
  for (Pod& pod : others) {
    const auto node = consumers.find(std::string(pod.node_name.view()));
    if (node != consumers.end() && is_gpu_consumer(pod, world)) node->second.pods.push_back(std::move(pod));
  }
  follow_jobs(consumers);
  clear();
}

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

bool requests_gpus(const Pod& pod) {
  return std::ranges::any_of(pod.gpu_requests, [](const auto& entry) { return entry.second > 0; });
}

bool is_gpu_consumer(const Pod& pod, const World& world) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed") return false;
  if (is_operand_pod(pod, world)) return false;
  if (requests_gpus(pod) || pod.uses_mps_pipe || claims_gpu(pod, world) || shares_by_kai(pod, world.kai) ||
      mounts_mps_root(pod, world))
    return true;
  // The NVIDIA stack's other DaemonSets (DCGM, validator, driver) see all devices and are not GPU clients.
  const auto* owner = pod.meta.controller();
  // The container toolkit creates `nvidia`, `nvidia-cdi` and `nvidia-legacy`.
  const bool sees_devices = pod.nvidia_visible_devices || pod.runtime_class.view().starts_with("nvidia");
  return sees_devices && !(owner != nullptr && owner->kind == "DaemonSet");
}

bool is_rejected(const Pod& pod, const PlannerSettings& settings) {
  // DaemonSets clean up after themselves.
  return was_rejected(pod) && is_remade(pod) && pod.meta.controller()->kind != "DaemonSet" && requests_gpus(pod) &&
         settings.remove_rejected_pods.contains(std::string(pod.meta.ns.view()));
}

// --- A killed daemon does not reset its GPUs to compute mode DEFAULT (reference: the device plugin's
// mps-control-daemon, which resets them when it is asked to stop).

namespace {

constexpr std::int64_t kKilled = 137;  // 128 + SIGKILL.

const ContainerStatus* daemon_of(const Pod& pod) {
  const auto it = std::ranges::find_if(pod.containers, [](const ContainerStatus& container) {
    return component_of_container(container.name.view()) == Component::mps;
  });
  return it == pod.containers.end() ? nullptr : &*it;
}

}  // namespace

void follow_killed_daemons(World& world) {
  world.operand_pods.add_listener([&world](const ObjectKey&, const auto&, const auto& pod) {
    const ContainerStatus* daemon = pod == nullptr ? nullptr : daemon_of(*pod);
    if (daemon == nullptr) return;
    const std::string node(pod->node_name.view());
    if (daemon->running && daemon->ready && !pod->meta.deletion_timestamp) {
      const auto killed = world.killed_daemons.find(node);
      if (killed != world.killed_daemons.end()) killed->second.replaced = true;
    } else if (pod->meta.deletion_timestamp && daemon->terminated && daemon->terminated->exit_code == kKilled) {
      world.killed_daemons[node] = {.pod = pod->meta.name, .deleted_at = *pod->meta.deletion_timestamp};
    }
  });
  world.nodes.add_listener([&world](const ObjectKey& key, const auto&, const auto& node) {
    if (node == nullptr) world.killed_daemons.erase(key.name);
  });
}

}  // namespace gso
