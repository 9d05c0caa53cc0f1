// Pods that ask for slices, and Leases: JSON -> projected value.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

using SliceCounts = std::map<std::int64_t, std::int64_t>;  // By size.
constexpr std::int64_t kMilli = 1000;

// What one container, or the pod itself, asks for.
struct Requests {
  SliceCounts slices;
  PodNeeds needs;
};

// What `limits` or `requests` name of these two.
struct Amounts {
  std::optional<std::int64_t> cpu;  // As PodNeeds has them.
  std::optional<std::int64_t> memory;
};

// `resources` of a container or of a pod.
struct Resources {
  Amounts requests;
  Amounts limits;
  // The limits where requests are missing, as the API server fills them in.
  [[nodiscard]] PodNeeds needs() const {
    return {requests.cpu.value_or(limits.cpu.value_or(0)), requests.memory.value_or(limits.memory.value_or(0))};
  }
};

struct ContainerRequests {
  std::string name;
  std::string image;
  Resources resources;
  Requests requests;
  std::int64_t user = kUserOfImage;
  bool whole_gpus = false;
  bool sidecar = false;
};

bool read_amount(Fields& fields, std::string_view resource, Value count, Amounts& out) {
  if (resource == "cpu") return fields.quantity(count, "resources.limits.cpu", out.cpu.emplace(), kMilli);
  if (resource == "memory") return fields.quantity(count, "resources.limits.memory", out.memory.emplace());
  return true;
}

bool read_pod_amounts(Fields& fields, Value value, std::string_view path, Amounts& out) {
  return fields.object(
      value, path, [&](std::string_view resource, Value count) { return read_amount(fields, resource, count, out); });
}

// Of the device plugin: nvidia.com/gpu, what it is renamed to, and MIG devices. Others have resources of nvidia.com as
// well: the Network Operator those of network cards.
bool is_gpu(std::string_view resource) {
  return resource.starts_with("nvidia.com/gpu") || resource.starts_with("nvidia.com/mig-");
}

// Extended resources have equal requests and limits; one of the two is enough for the API server.
template <auto kSide>
bool read_side(Fields& fields, Value value, std::string_view path, ContainerRequests& out) {
  return fields.object(value, path, [&](std::string_view resource, Value count) {
    if (!resource.starts_with("nvidia.com/")) return read_amount(fields, resource, count, out.resources.*kSide);
    std::int64_t wanted = 0;
    if (!fields.quantity(count, path, wanted)) return false;
    const auto gigabytes = slice_gigabytes(resource);
    if (gigabytes && wanted > 0) out.requests.slices[*gigabytes] = wanted;
    if (!gigabytes && wanted > 0 && is_gpu(resource)) out.whole_gpus = true;
    return true;
  });
}

constexpr json::Row<ContainerRequests> kContainerRequests[] = {
    json::row<&ContainerRequests::name>("spec.containers[].name"),
    json::row<&ContainerRequests::image>("spec.containers[].image"),
    json::row_by<json::read_sidecar, &ContainerRequests::sidecar>("spec.containers[].restartPolicy"),
    json::row<&ContainerRequests::user>("spec.containers[].securityContext.runAsUser"),
    {"spec.containers[].resources.requests", read_side<&Resources::requests>},
    {"spec.containers[].resources.limits", read_side<&Resources::limits>},
};

bool read_containers(Fields& fields, Value value, std::string_view path, std::vector<ContainerRequests>& out) {
  return fields.array(value, path, [&](Value item) {
    ContainerRequests& container = out.emplace_back();
    const bool read = json::read_rows(fields, item, "spec.containers[].", kContainerRequests, container);
    container.requests.needs = container.resources.needs();
    return read;
  });
}

void add(Requests& sum, const Requests& more) {
  for (const auto& [gigabytes, count] : more.slices) sum.slices[gigabytes] += count;
  sum.needs.cpu += more.needs.cpu;
  sum.needs.memory += more.needs.memory;
}

void raise_to(Requests& out, const Requests& least) {
  for (const auto& [gigabytes, count] : least.slices) out.slices[gigabytes] = std::max(out.slices[gigabytes], count);
  out.needs.cpu = std::max(out.needs.cpu, least.needs.cpu);
  out.needs.memory = std::max(out.needs.memory, least.needs.memory);
}

// More slices than any machine has: such a request can never be served, and counting on changes nothing.
constexpr std::int64_t kMostSlices = 1000;

// `user`: the pod's.
void keep_requests(const std::vector<ContainerRequests>& inits, const std::vector<ContainerRequests>& mains,
                   std::int64_t user, SlicePod& pod) {
  std::vector<SliceRequest> requests;
  for (const auto* list : {&inits, &mains}) {
    for (const ContainerRequests& container : *list) {
      pod.uses_whole_gpus = pod.uses_whole_gpus || container.whole_gpus;
      for (const auto& [gigabytes, count] : container.requests.slices)
        if (requests.size() < json::kMostEntries)
          requests.push_back(
              {container.name, gigabytes, count, container.user == kUserOfImage ? user : container.user});
    }
  }
  const Requests all = json::requests_of(inits, mains, add, raise_to);
  pod.needs = all.needs;
  std::vector<std::int64_t> slices;
  for (const auto& [gigabytes, count] : all.slices) {
    const auto room = kMostSlices - static_cast<std::int64_t>(slices.size());
    slices.insert(slices.end(), static_cast<std::size_t>(std::min(count, room)), gigabytes);
  }
  pod.requests = std::move(requests);
  pod.slices = std::move(slices);
}

bool asks_for_gpus(const SlicePod& pod) {
  return !pod.requests.empty() || pod.uses_whole_gpus;
}

// nos's gpu-agent: its chart names the container "<release>-gpu-agent" and the image ".../nos-gpu-agent", its manifests
// name both "gpu-agent". Source: nebuly-ai/nos at 12e0a72, helm-charts/nos/templates/gpu-partitioner and
// config/gpuagent.
bool is_slice_agent(const ContainerRequests& container) {
  constexpr std::string_view kName = "gpu-agent";
  return std::string_view(container.name).ends_with(kName) || image_name(container.image).ends_with(kName);
}

// What the pod's status says of its readiness, and of each container's.
struct Readiness {
  struct Container {
    std::string name;
    bool ready = false;
    std::optional<WallTime> started = std::nullopt;  // nullopt: it does not run.
  };
  std::vector<Container> containers;
  std::optional<bool> ready;  // The condition Ready; nullopt: there is none.
  std::optional<WallTime> since;
};

// Another container of the pod, such as a proxy of its metrics, can fail beside the agent.
SliceAgent agent_of(const SlicePod& pod, const std::string& container, const Readiness& readiness) {
  SliceAgent out;
  if (pod.phase != "Running" || pod.meta.deletion_timestamp) return out;
  const auto status = std::ranges::find(readiness.containers, container, &Readiness::Container::name);
  const bool known = status != readiness.containers.end();
  out.ready = known ? status->ready : readiness.ready.value_or(true);
  if (!out.ready) return out;
  if (known) out.since = status->started;
  if (readiness.ready == true && readiness.since)
    out.since = std::max(out.since.value_or(*readiness.since), *readiness.since);
  return out;
}

// With what decides about it once all is read.
struct ReadSlicePod {
  SlicePod pod;
  std::vector<ContainerRequests> inits;
  std::vector<ContainerRequests> mains;
  std::vector<Toleration> tolerations;
  std::vector<std::vector<NodeSelectorRequirement>> affinity;
  std::map<std::string, std::string> selector;
  Amounts overhead;
  bool host_ipc = false;
  std::int64_t user = kUserOfImage;
  Resources of_pod;  // spec.resources: in place of the sum over the containers, where it names one.
  Readiness readiness;
  std::optional<WallTime> taken;  // By its kubelet.
};

// kube-scheduler names each reason for which it has passed over nodes, and each resource that one lacks. Another
// scheduler says it in its own words, which prove nothing. Source: kubernetes v1.34, pkg/scheduler/framework/types.go
// (FitError), plugins/noderesources/fit.go.
bool names_no_slice(std::string_view message) {
  return message.starts_with("0/") && message.contains(" nodes are available: ") && !message.contains(kGpuResource);
}

bool read_conditions(Fields& fields, Value value, std::string_view path, ReadSlicePod& out) {
  return json::read_conditions(fields, value, path, [&](const json::Condition& condition) {
    if (condition.type == "Ready") {
      out.readiness.ready = condition.status == "True";
      out.readiness.since = condition.since;
    }
    if (condition.type != "PodScheduled") return;
    out.pod.unschedulable = condition.status == "False" && condition.reason == "Unschedulable";
    out.pod.lacks_no_slice = out.pod.unschedulable && names_no_slice(condition.note);
    out.pod.bound = condition.status == "True" ? condition.since : std::nullopt;
  });
}

using Read = ReadSlicePod;
constexpr json::Row<Read> kSlicePod[] = {
    json::row<&Read::pod, &SlicePod::node_name>("spec.nodeName"),
    json::row<&Read::pod, &SlicePod::priority>("spec.priority"),
    json::row<&Read::host_ipc>("spec.hostIPC"),
    json::row<&Read::user>("spec.securityContext.runAsUser"),
    json::row_by<read_containers, &Read::mains>("spec.containers"),
    json::row_by<read_containers, &Read::inits>("spec.initContainers"),
    json::row_by<read_pod_amounts, &Read::overhead>("spec.overhead"),
    json::row_by<read_pod_amounts, &Read::of_pod, &Resources::requests>("spec.resources.requests"),
    json::row_by<read_pod_amounts, &Read::of_pod, &Resources::limits>("spec.resources.limits"),
    json::row<&Read::selector>("spec.nodeSelector"),
    json::row_by<json::read_node_affinity, &Read::affinity>("spec.affinity"),
    json::row_by<json::read_tolerations<false>, &Read::tolerations>("spec.tolerations"),
    json::row<&Read::taken>("status.startTime"),
    json::row<&Read::pod, &SlicePod::phase>("status.phase"),
    json::row<&Read::pod, &SlicePod::nominated_node>("status.nominatedNodeName"),
    json::list<&Read::readiness, &Readiness::containers>("status.containerStatuses"),
    json::row<&Read::readiness, &Readiness::containers, &Readiness::Container::name>("status.containerStatuses[].name"),
    json::row<&Read::readiness, &Readiness::containers, &Readiness::Container::ready>(
        "status.containerStatuses[].ready"),
    json::row<&Read::readiness, &Readiness::containers, &Readiness::Container::started>(
        "status.containerStatuses[].state.running.startedAt"),
    {"status.conditions", read_conditions},
};

// Where it may run, of a pod that asks for GPUs.
void keep_placement(Read read, SlicePod& pod) {
  std::vector<StringMap::Entry> labels;
  for (const auto& [label, wanted] : read.selector)
    if (labels.size() < json::kMostEntries) labels.push_back({Interned(label), Interned(wanted)});
  pod.node_selector = std::move(labels);
  pod.affinity_terms = std::move(read.affinity);
  pod.tolerations = std::move(read.tolerations);
}

}  // namespace

k8s::Result<SlicePod> project_slice_pod(std::string_view text) {
  Read out;
  const json::MetaFilter filter{true, nullptr, true};
  if (auto read = json::read_object("Pod", text, filter, kSlicePod, out.pod.meta, out); !read)
    return std::unexpected(read.error());
  SlicePod pod = std::move(out.pod);
  keep_requests(out.inits, out.mains, out.user, pod);
  pod.own_ipc = !pod.requests.empty() && !out.host_ipc;
  const PodNeeds of_pod = out.of_pod.needs();
  pod.needs.cpu = (of_pod.cpu > 0 ? of_pod.cpu : pod.needs.cpu) + out.overhead.cpu.value_or(0);
  pod.needs.memory = (of_pod.memory > 0 ? of_pod.memory : pod.needs.memory) + out.overhead.memory.value_or(0);
  // A kubelet that was down takes pods, and gives them their slices, long after they were bound.
  if (out.taken) pod.bound = std::max(pod.bound.value_or(*out.taken), *out.taken);
  const bool of_workload = !pod.meta.owners.empty() && std::ranges::none_of(pod.meta.owners, [](const auto& owner) {
    return owner.kind == "DaemonSet";
  });
  const auto agent = std::ranges::find_if(out.mains, is_slice_agent);
  if (agent != out.mains.end() && !of_workload) pod.agent = Rare<SliceAgent>(agent_of(pod, agent->name, out.readiness));
  if (asks_for_gpus(pod))
    keep_placement(std::move(out), pod);
  else
    pod.meta.labels = {};
  return pod;
}

namespace {

constexpr json::Row<Lease> kLease[] = {
    json::row<&Lease::holder>("spec.holderIdentity"), json::row<&Lease::acquired>("spec.acquireTime"),
    json::row<&Lease::renewed>("spec.renewTime"), json::row<&Lease::duration_seconds>("spec.leaseDurationSeconds")};

}  // namespace

k8s::Result<Lease> project_lease(std::string_view text) {
  return json::project<Lease>("Lease", text, {}, kLease);
}

}  // namespace gso
