// Pods that ask for slices, and the Lease of nos's gpu-partitioner: JSON -> projected value.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_fields.h"
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

struct ContainerRequests {
  std::string name;
  std::string image;
  Requests requests;
  bool whole_gpus = false;
  bool sidecar = false;
};

// `resources` of a container or of a pod: `requests`, and `limits` where those are missing, as the API server fills
// them in. `see` is given each extended resource.
template <class See>
bool read_resources(Fields& fields, Value value, PodNeeds& needs, See see) {
  PodNeeds limits;
  bool any_cpu = false;
  bool any_memory = false;
  const bool read = fields.object(value, "resources", [&](std::string_view side, Value list) {
    if (side != "limits" && side != "requests") return true;
    const bool requested = side == "requests";
    PodNeeds& into = requested ? needs : limits;
    return fields.object(list, "resources.limits", [&](std::string_view resource, Value count) {
      if (resource == "cpu") {
        any_cpu = any_cpu || requested;
        return fields.quantity(count, "resources.limits.cpu", into.cpu, kMilli);
      }
      if (resource == "memory") {
        any_memory = any_memory || requested;
        return fields.quantity(count, "resources.limits.memory", into.memory);
      }
      return see(resource, count);
    });
  });
  if (!any_cpu) needs.cpu = limits.cpu;
  if (!any_memory) needs.memory = limits.memory;
  return read;
}

bool read_list(Fields& fields, Value value, std::string_view field, PodNeeds& needs) {
  return fields.object(value, field, [&](std::string_view resource, Value count) {
    if (resource == "cpu") return fields.quantity(count, field, needs.cpu, kMilli);
    if (resource == "memory") return fields.quantity(count, field, needs.memory);
    return true;
  });
}

// Of the device plugin: nvidia.com/gpu, what it is renamed to, and MIG devices. Others have resources of nvidia.com as
// well: the Network Operator those of network cards.
bool is_gpu(std::string_view resource) {
  return resource.starts_with("nvidia.com/gpu") || resource.starts_with("nvidia.com/mig-");
}

bool read_container(Fields& fields, Value value, ContainerRequests& out) {
  return fields.object(value, "spec.containers", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "spec.containers.name", out.name);
    if (key == "image") return fields.text(inner, "spec.containers.image", out.image);
    if (key == "restartPolicy") {
      std::string_view policy;
      if (!fields.view(inner, "containers.restartPolicy", policy)) return false;
      out.sidecar = policy == "Always";
      return true;
    }
    if (key != "resources") return true;
    // Extended resources have equal requests and limits; one of the two is enough for the API server.
    return read_resources(fields, inner, out.requests.needs, [&](std::string_view resource, Value count) {
      if (!resource.starts_with("nvidia.com/")) return true;
      std::int64_t wanted = 0;
      if (!fields.quantity(count, "resources.limits", wanted)) return false;
      const auto gigabytes = slice_gigabytes(resource);
      if (gigabytes && wanted > 0) out.requests.slices[*gigabytes] = wanted;
      if (!gigabytes && wanted > 0 && is_gpu(resource)) out.whole_gpus = true;
      return true;
    });
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

// As the scheduler counts (k8s.io/component-helpers, resource.PodRequests): a sidecar runs beside everything that
// starts after it, and other init containers run one after the other before the main containers.
Requests counted(const std::vector<ContainerRequests>& inits, const std::vector<ContainerRequests>& mains) {
  Requests sidecars;
  Requests largest_step;
  for (const ContainerRequests& init : inits) {
    Requests step = sidecars;
    add(step, init.requests);
    if (init.sidecar) sidecars = step;
    raise_to(largest_step, step);
  }
  Requests out = std::move(sidecars);
  for (const ContainerRequests& main : mains) add(out, main.requests);
  raise_to(out, largest_step);
  return out;
}

// More slices than any machine has: such a request can never be served, and counting on changes nothing.
constexpr std::int64_t kMostSlices = 1000;

void keep_requests(const std::vector<ContainerRequests>& inits, const std::vector<ContainerRequests>& mains,
                   SlicePod& pod) {
  std::vector<SliceRequest> requests;
  for (const auto* list : {&inits, &mains}) {
    for (const ContainerRequests& container : *list) {
      pod.uses_whole_gpus = pod.uses_whole_gpus || container.whole_gpus;
      for (const auto& [gigabytes, count] : container.requests.slices) {
        if (requests.size() < json::kMostEntries) requests.push_back({container.name, gigabytes, count});
      }
    }
  }
  const Requests all = counted(inits, mains);
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
    std::optional<WallTime> started;  // nullopt: it does not run.
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

// `agent`: the container of nos's gpu-agent; empty: the pod has none.
bool read_spec(Fields& fields, Value value, SlicePod& pod, std::string& agent) {
  std::vector<ContainerRequests> inits;
  std::vector<ContainerRequests> mains;
  std::vector<Toleration> tolerations;
  std::vector<std::vector<NodeSelectorRequirement>> affinity;
  std::map<std::string, std::string> selector;
  PodNeeds overhead;
  std::optional<PodNeeds> of_pod;  // spec.resources: in place of the sum over the containers, where it names one.
  const bool read = fields.object(value, "spec", [&](std::string_view key, Value inner) {
    const auto containers = [&](std::vector<ContainerRequests>& into) {
      return fields.array(inner, "spec.containers",
                          [&](Value item) { return read_container(fields, item, into.emplace_back()); });
    };
    if (key == "nodeName") return fields.text(inner, "spec.nodeName", pod.node_name);
    if (key == "priority") return fields.number(inner, "spec.priority", pod.priority);
    if (key == "containers") return containers(mains);
    if (key == "initContainers") return containers(inits);
    if (key == "overhead") return read_list(fields, inner, "spec.overhead", overhead);
    if (key == "resources") {
      return read_resources(fields, inner, of_pod.emplace(), [](std::string_view, Value) { return true; });
    }
    if (key == "nodeSelector") return fields.string_map(inner, "spec.nodeSelector", selector);
    if (key == "affinity") return json::read_node_affinity(fields, inner, affinity);
    if (key == "tolerations") return json::read_tolerations(fields, inner, "spec.tolerations", false, tolerations);
    return true;
  });
  keep_requests(inits, mains, pod);
  if (const auto at = std::ranges::find_if(mains, is_slice_agent); at != mains.end()) agent = at->name;
  if (of_pod && of_pod->cpu > 0) pod.needs.cpu = of_pod->cpu;
  if (of_pod && of_pod->memory > 0) pod.needs.memory = of_pod->memory;
  pod.needs.cpu += overhead.cpu;
  pod.needs.memory += overhead.memory;
  if (!asks_for_gpus(pod)) return read;
  std::vector<StringMap::Entry> labels;
  for (const auto& [label, wanted] : selector) {
    if (labels.size() < json::kMostEntries) labels.push_back({Interned(label), Interned(wanted)});
  }
  pod.node_selector = std::move(labels);
  pod.affinity_terms = std::move(affinity);
  pod.tolerations = std::move(tolerations);
  return read;
}

// One of status.conditions.
bool read_condition(Fields& fields, Value value, SlicePod& pod, Readiness& readiness) {
  std::string type;
  std::string status;
  std::string reason;
  std::optional<WallTime> since;
  const bool read = fields.object(value, "status.conditions", [&](std::string_view key, Value inner) {
    if (key == "type") return fields.text(inner, "status.conditions.type", type);
    if (key == "status") return fields.text(inner, "status.conditions.status", status);
    if (key == "reason") return fields.text(inner, "status.conditions.reason", reason);
    if (key == "lastTransitionTime") return fields.time(inner, "status.conditions.lastTransitionTime", since);
    return true;
  });
  if (type == "Ready") {
    readiness.ready = status == "True";
    readiness.since = since;
  }
  if (type != "PodScheduled") return read;
  pod.unschedulable = status == "False" && reason == "Unschedulable";
  pod.bound = status == "True" ? since : std::nullopt;
  return read;
}

// One of status.containerStatuses.
bool read_container_status(Fields& fields, Value value, Readiness::Container& out) {
  return fields.object(value, "status.containerStatuses", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "status.containerStatuses.name", out.name);
    if (key == "ready") return fields.flag(inner, "status.containerStatuses.ready", out.ready);
    if (key != "state") return true;
    return fields.object(inner, "status.containerStatuses.state", [&](std::string_view state, Value details) {
      if (state != "running") return true;
      return fields.object(details, "state.running", [&](std::string_view field, Value time) {
        return field != "startedAt" || fields.time(time, "state.running.startedAt", out.started);
      });
    });
  });
}

bool read_status(Fields& fields, Value value, SlicePod& pod, Readiness& readiness) {
  std::optional<WallTime> taken;
  const bool read = fields.object(value, "status", [&](std::string_view field, Value inner) {
    if (field == "startTime") return fields.time(inner, "status.startTime", taken);
    if (field == "phase") return fields.text(inner, "status.phase", pod.phase);
    if (field == "nominatedNodeName") return fields.text(inner, "status.nominatedNodeName", pod.nominated_node);
    if (field == "containerStatuses") {
      return fields.array(inner, "status.containerStatuses", [&](Value item) {
        return read_container_status(fields, item, readiness.containers.emplace_back());
      });
    }
    if (field != "conditions") return true;
    return fields.array(inner, "status.conditions",
                        [&](Value item) { return read_condition(fields, item, pod, readiness); });
  });
  // A kubelet that was down takes pods, and gives them their slices, long after they were bound.
  if (taken) pod.bound = std::max(pod.bound.value_or(*taken), *taken);
  return read;
}

}  // namespace

k8s::Result<SlicePod> project_slice_pod(std::string_view text) {
  SlicePod pod;
  std::string agent;
  Readiness readiness;
  json::Document document("Pod", text);
  const json::MetaFilter filter{true, nullptr, true};
  auto read = document.read(pod.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, filter, pod.meta);
    if (key == "spec") return read_spec(fields, value, pod, agent);
    return key != "status" || read_status(fields, value, pod, readiness);
  });
  if (!read) return std::unexpected(read.error());
  const bool of_workload = !pod.meta.owners.empty() && std::ranges::none_of(pod.meta.owners, [](const auto& owner) {
    return owner.kind == "DaemonSet";
  });
  if (!agent.empty() && !of_workload) pod.agent = Rare<SliceAgent>(agent_of(pod, agent, readiness));
  if (!asks_for_gpus(pod)) pod.meta.labels = {};
  return pod;
}

namespace {

constexpr json::Row<PartitionerLease> kPartitionerLeaseRows[] = {
    json::row<&PartitionerLease::holder>("spec.holderIdentity"),
    json::row<&PartitionerLease::renewed>("spec.renewTime"),
    json::row<&PartitionerLease::duration_seconds>("spec.leaseDurationSeconds")};

}  // namespace

k8s::Result<PartitionerLease> project_partitioner_lease(std::string_view text) {
  return json::project<PartitionerLease>("Lease", text, {}, kPartitionerLeaseRows);
}

}  // namespace gso
