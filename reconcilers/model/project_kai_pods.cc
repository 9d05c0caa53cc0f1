// Pods as KAI sees them, and BindRequests: JSON -> projected value.

#include <algorithm>

#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

bool keeps_annotation(std::string_view key) {
  constexpr std::string_view kRead[] = {kai::kDeviceAnnotation, kai::kSharedConfigMap, kai::kContainerName,
                                        kDoNotDisruptAnnotation};
  return std::ranges::find(kRead, key) != std::end(kRead);
}

// Labels that decide a pod's role for KAI; the other labels are dropped to save memory (40,000 consumers are held).
bool keeps_label(std::string_view key) {
  return key == kai::kAppLabel || key == kai::kGroupLabel || key.starts_with(kai::kGroupPrefix);
}

// With the names of its containers.
struct ReadKaiPod {
  KaiPod pod;
  std::vector<std::string> names;
  std::vector<std::string> inits;
};

template <auto kNames>
bool read_container_name(Fields& fields, Value value, std::string_view path, ReadKaiPod& out) {
  return fields.text(value, path, (out.*kNames).emplace_back());
}

bool read_waiting(Fields& fields, Value value, std::string_view path, Interned& out) {
  return !out.empty() || fields.name(value, path, out);
}

constexpr json::Row<ReadKaiPod> kKaiPod[] = {
    json::row<&ReadKaiPod::pod, &KaiPod::node_name>("spec.nodeName"),
    json::row_by<json::read_name, &ReadKaiPod::pod, &KaiPod::scheduler_name>("spec.schedulerName"),
    {"spec.containers[].name", read_container_name<&ReadKaiPod::names>},
    {"spec.initContainers[].name", read_container_name<&ReadKaiPod::inits>},
    json::row_by<json::read_tolerations<true>, &ReadKaiPod::pod, &KaiPod::tolerations>("spec.tolerations"),
    json::row_by<json::read_name, &ReadKaiPod::pod, &KaiPod::phase>("status.phase"),
    json::row_by<json::read_name, &ReadKaiPod::pod, &KaiPod::reason>("status.reason"),
    json::row_by<read_waiting, &ReadKaiPod::pod, &KaiPod::waiting_reason>(
        "status.containerStatuses[].state.waiting.reason"),
};

// KAI gives the GPU to the first container, or to the one that an annotation names, init containers included.
std::string gpu_container(const ReadKaiPod& read) {
  const auto wanted = read.pod.meta.annotations.get(kai::kContainerName);
  if (!wanted || wanted->empty()) return "0";
  const auto& [pod, names, inits] = read;
  if (auto it = std::ranges::find(names, *wanted); it != names.end()) return std::to_string(it - names.begin());
  if (auto it = std::ranges::find(inits, *wanted); it != inits.end()) return "i" + std::to_string(it - inits.begin());
  return {};
}

}  // namespace

k8s::Result<KaiPod> project_kai_pod(std::string_view text) {
  ReadKaiPod out;
  KaiPod& pod = out.pod;
  const json::MetaFilter filter{true, keeps_annotation, true, keeps_label, json::kMostName};
  if (auto read = json::read_object("Pod", text, filter, kKaiPod, pod.meta, out); !read)
    return std::unexpected(read.error());
  // What it costs is bounded for each: as many tolerations as no scheduler needs are dropped.
  constexpr std::size_t kMostTolerations = 16;
  if (pod.tolerations.size() > kMostTolerations) pod.tolerations.resize(kMostTolerations);
  pod.meta.owners = {};
  pod.container_index = Interned(gpu_container(out));
  return std::move(pod);
}

namespace {

bool read_pod_name(Fields& fields, Value value, std::string_view path, std::string& out) {
  std::string_view name;
  if (!fields.view(value, path, name)) return false;
  out = first_bytes(name, json::kMostName);
  return true;
}

bool read_group(Fields& fields, Value value, std::string_view path, BindRequest& out) {
  return out.groups.size() >= json::kMostEntries || fields.name(value, path, out.groups.emplace_back());
}

bool read_groups(Fields& fields, Value value, std::string_view path, BindRequest& out) {
  return fields.array(value, path, [&](Value item) { return read_group(fields, item, path, out); });
}

constexpr json::Row<BindRequest> kBindRequest[] = {
    json::row_by<read_pod_name, &BindRequest::pod_name>("spec.podName"),
    json::row_by<json::read_name, &BindRequest::selected_node>("spec.selectedNode"),
    json::row<&BindRequest::backoff_limit>("spec.backoffLimit"),
    {"spec.selectedGPUGroups", read_groups},
    {"spec.selectedFractionalGpuGroups[].id", read_group},
    json::row_by<json::read_name, &BindRequest::phase>("status.phase"),
    json::row<&BindRequest::failed_attempts>("status.failedAttempts"),
};

}  // namespace

k8s::Result<BindRequest> project_bind_request(std::string_view text) {
  return json::project<BindRequest>("BindRequest", text, {false, nullptr}, kBindRequest);
}

}  // namespace gso
