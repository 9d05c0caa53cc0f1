// Sorts the pods into operands, consumers, reservations, and waiting pods.
#include "reconcilers/cluster/cluster_pods.h"

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/consumers.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/kai_roles.h"
#include "reconcilers/cluster/nos.h"
#include "reconcilers/model/jobs.h"
#include "reconcilers/model/kai_names.h"
#include "reconcilers/model/project.h"

namespace gso {

namespace {

// Fraction pods and scaling pods (of KAI's node-scale-adjuster) that have no node yet.
bool is_waiting(const Pod& pod, const KaiView& view) {
  const bool fraction = pod.meta.annotations.contains(kai::kFraction) || pod.meta.annotations.contains(kai::kMemory);
  return pod.node_name.empty() && (pod.phase.empty() || pod.phase == "Pending") &&
         (fraction || pod.meta.ns.view() == view.scaling);
}

}  // namespace

k8s::Result<void> ClusterPods::add(std::string_view json) {
  k8s::Result<Pod> pod = project_pod(json);
  if (!pod) return std::unexpected(pod.error());
  k8s::Result<KaiPod> for_kai = project_kai_pod(json);
  if (!for_kai) return std::unexpected(for_kai.error());
  k8s::Result<SlicePod> for_slices = project_slice_pod(json);
  if (!for_slices) return std::unexpected(for_slices.error());
  pods_.push_back(*std::move(pod));
  slice_pods_.push_back(*std::move(for_slices));
  kai_pods_.push_back(*std::move(for_kai));
  return {};
}

void ClusterPods::clear() {
  pods_.clear();
  kai_pods_.clear();
  slice_pods_.clear();
}

void ClusterPods::place_for_partitioning(World& world) {
  PartitioningWorld& partitioning = world.partitioning;
  const std::vector<std::string> nodes = partitioned_nodes(world);
  partitioning.nodes_known = {nodes.begin(), nodes.end()};
  partitioning.pending_known = true;
  partitioning.pods.init();
  for (SlicePod& pod : slice_pods_) {
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
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (is_waiting(pods_[i], view)) waiting.pods.push_back({pods_[i], kai_pods_[i].tolerations});
  }
  kai.lookups.waiting = std::move(waiting);
  kai.pods.init();
  for (const KaiPod& pod : kai_pods_) {
    const bool watched = pod.meta.labels.contains(kai::kGroupLabel) || role_of(pod, view) == KaiRole::unlabelled;
    if (watched) kai.pods.init_apply(pod);
    for (const std::string& group : groups_of(pod)) {
      LookupResults::Group& listed = kai.lookups.groups[group];
      listed.at = one_look(now);
      if (pod.meta.labels.contains(std::string(kai::kGroupPrefix) + group)) listed.pods.push_back(pod);
    }
    kai.lookups.pods[pod.meta.key()] = {one_look(now), is_alive(pod)};
  }
  kai.pods.init_done();
  for (const auto& [key, request] : kai.bind_requests.all()) {
    kai.lookups.pods.try_emplace(ObjectKey{key.ns, request->pod_name}, LookupResults::Pod{one_look(now), false});
  }
}

namespace {

void follow_jobs(std::map<std::string, NodeConsumers>& consumers) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const auto& [name, listing] : consumers) {
    for (const Pod& pod : listing.pods) {
      if (const auto job = job_of(pod)) nodes[job->id()].insert(name);
    }
  }
  for (auto& [name, listing] : consumers) {
    for (const Pod& pod : listing.pods) {
      if (const auto job = job_of(pod)) listing.jobs[job->id()] = nodes[job->id()];
    }
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
  for (Pod& pod : pods_) {
    if (is_operand(pod)) {
      world.operand_pods.init_apply(std::move(pod));
    } else {
      others.push_back(std::move(pod));
    }
  }
  world.operand_pods.init_done();
  for (Pod& pod : others) {
    const auto node = consumers.find(std::string(pod.node_name.view()));
    if (node != consumers.end() && is_gpu_consumer(pod, world)) node->second.pods.push_back(std::move(pod));
  }
  follow_jobs(consumers);
  clear();
}

}  // namespace gso
