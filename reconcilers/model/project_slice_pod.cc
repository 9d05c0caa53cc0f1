// Pods that ask for slices, and the Lease of nos's gpu-partitioner: JSON -> projected value.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/project_node_affinity.h"
#include "reconcilers/model/project_toleration.h"
#include "reconcilers/model/slice_resource.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

using SliceCounts = std::map<std::int64_t, std::int64_t>;  // By size.

// A container's requests of nvidia.com resources.
struct ContainerRequests {
  std::string name;
  SliceCounts slices;
  bool whole_gpus = false;
  bool sidecar = false;
};

bool read_container(Fields& fields, Value value, ContainerRequests& out) {
  return fields.object(value, "spec.containers", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "spec.containers.name", out.name);
    if (key == "restartPolicy") {
      std::string_view policy;
      if (!fields.view(inner, "containers.restartPolicy", policy)) return false;
      out.sidecar = policy == "Always";
      return true;
    }
    if (key != "resources") return true;
    return fields.object(inner, "resources", [&](std::string_view side, Value list) {
      // Extended resources have equal requests and limits; one of the two is enough for the API server.
      if (side != "limits" && side != "requests") return true;
      return fields.object(list, "resources.limits", [&](std::string_view resource, Value count) {
        if (!resource.starts_with("nvidia.com/")) return true;
        std::int64_t wanted = 0;
        if (!fields.quantity(count, "resources.limits", wanted)) return false;
        const auto gigabytes = slice_gigabytes(resource);
        if (gigabytes && wanted > 0) out.slices[*gigabytes] = wanted;
        if (!gigabytes && wanted > 0) out.whole_gpus = true;
        return true;
      });
    });
  });
}

void add(SliceCounts& sum, const SliceCounts& counts) {
  for (const auto& [gigabytes, count] : counts) sum[gigabytes] += count;
}

// As the scheduler counts (k8s.io/component-helpers, resource.PodRequests): a sidecar runs beside everything that
// starts after it, and other init containers run one after the other before the main containers.
SliceCounts counted_slices(const std::vector<ContainerRequests>& inits, const std::vector<ContainerRequests>& mains) {
  SliceCounts sidecars;
  SliceCounts largest_step;
  for (const ContainerRequests& init : inits) {
    SliceCounts step = sidecars;
    add(step, init.slices);
    if (init.sidecar) sidecars = step;
    for (const auto& [gigabytes, count] : step) largest_step[gigabytes] = std::max(largest_step[gigabytes], count);
  }
  SliceCounts out = std::move(sidecars);
  for (const ContainerRequests& main : mains) add(out, main.slices);
  for (const auto& [gigabytes, count] : largest_step) out[gigabytes] = std::max(out[gigabytes], count);
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
      for (const auto& [gigabytes, count] : container.slices) requests.push_back({container.name, gigabytes, count});
    }
  }
  std::vector<std::int64_t> slices;
  for (const auto& [gigabytes, count] : counted_slices(inits, mains)) {
    slices.insert(slices.end(), static_cast<std::size_t>(std::min(count, kMostSlices)), gigabytes);
  }
  pod.requests = std::move(requests);
  pod.slices = std::move(slices);
}

bool read_spec(Fields& fields, Value value, SlicePod& pod) {
  std::vector<ContainerRequests> inits;
  std::vector<ContainerRequests> mains;
  std::vector<Toleration> tolerations;
  std::vector<std::vector<NodeSelectorRequirement>> affinity;
  std::map<std::string, std::string> selector;
  const bool read = fields.object(value, "spec", [&](std::string_view key, Value inner) {
    const auto containers = [&](std::vector<ContainerRequests>& into) {
      return fields.array(inner, "spec.containers",
                          [&](Value item) { return read_container(fields, item, into.emplace_back()); });
    };
    if (key == "nodeName") return fields.text(inner, "spec.nodeName", pod.node_name);
    if (key == "priority") return fields.number(inner, "spec.priority", pod.priority);
    if (key == "containers") return containers(mains);
    if (key == "initContainers") return containers(inits);
    if (key == "nodeSelector") return fields.string_map(inner, "spec.nodeSelector", selector);
    if (key == "affinity") return json::read_node_affinity(fields, inner, affinity);
    if (key == "tolerations") {
      return fields.array(inner, "spec.tolerations", [&](Value item) {
        return json::read_toleration(fields, item, "spec.tolerations", tolerations.emplace_back());
      });
    }
    return true;
  });
  keep_requests(inits, mains, pod);
  std::vector<StringMap::Entry> labels;
  for (const auto& [label, wanted] : selector) labels.push_back({Interned(label), Interned(wanted)});
  pod.node_selector = std::move(labels);
  pod.affinity_terms = std::move(affinity);
  pod.tolerations = std::move(tolerations);
  return read;
}

// One of status.conditions.
bool read_condition(Fields& fields, Value value, bool& unschedulable) {
  std::string type;
  std::string status;
  std::string reason;
  const bool read = fields.object(value, "status.conditions", [&](std::string_view key, Value inner) {
    if (key == "type") return fields.text(inner, "status.conditions.type", type);
    if (key == "status") return fields.text(inner, "status.conditions.status", status);
    if (key == "reason") return fields.text(inner, "status.conditions.reason", reason);
    return true;
  });
  if (type == "PodScheduled") unschedulable = status == "False" && reason == "Unschedulable";
  return read;
}

}  // namespace

k8s::Result<SlicePod> project_slice_pod(std::string_view text) {
  SlicePod pod;
  json::Document document("Pod", text);
  const json::MetaFilter filter{true, nullptr};
  auto read = document.read(pod.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, filter, pod.meta);
    if (key == "spec") return read_spec(fields, value, pod);
    if (key != "status") return true;
    return fields.object(value, "status", [&](std::string_view field, Value inner) {
      if (field == "phase") return fields.text(inner, "status.phase", pod.phase);
      if (field == "nominatedNodeName") return fields.text(inner, "status.nominatedNodeName", pod.nominated_node);
      if (field != "conditions") return true;
      return fields.array(inner, "status.conditions",
                          [&](Value item) { return read_condition(fields, item, pod.unschedulable); });
    });
  });
  if (!read) return std::unexpected(read.error());
  return pod;
}

k8s::Result<PartitionerLease> project_partitioner_lease(std::string_view text) {
  PartitionerLease out;
  json::Document document("Lease", text);
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, {}, out.meta);
    if (key != "spec") return true;
    return fields.object(value, "spec", [&](std::string_view field, Value inner) {
      if (Fields::is_null(inner)) return true;
      if (field == "holderIdentity") return fields.text(inner, "spec.holderIdentity", out.holder);
      if (field == "renewTime") return fields.time(inner, "spec.renewTime", out.renewed);
      if (field == "leaseDurationSeconds")
        return fields.number(inner, "spec.leaseDurationSeconds", out.duration_seconds);
      return true;
    });
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

}  // namespace gso
