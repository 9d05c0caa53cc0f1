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

bool read_names(Fields& fields, Value value, std::vector<std::string>& names) {
  return fields.array(value, "spec.containers", [&](Value item) {
    return fields.object(item, "spec.containers", [&](std::string_view key, Value inner) {
      return key == "name" ? fields.text(inner, "spec.containers.name", names.emplace_back()) : true;
    });
  });
}

// KAI gives the GPU to the first container, or to the one that an annotation names, init containers included.
std::string gpu_container(const KaiPod& pod, const std::vector<std::string>& names,
                          const std::vector<std::string>& inits) {
  const auto wanted = pod.meta.annotations.get(kai::kContainerName);
  if (!wanted || wanted->empty()) return "0";
  if (auto it = std::ranges::find(names, *wanted); it != names.end()) return std::to_string(it - names.begin());
  if (auto it = std::ranges::find(inits, *wanted); it != inits.end()) return "i" + std::to_string(it - inits.begin());
  return {};
}

bool read_waiting(Fields& fields, Value value, KaiPod& pod) {
  return fields.array(value, "status.containerStatuses", [&](Value item) {
    return fields.object(item, "status.containerStatuses", [&](std::string_view key, Value inner) {
      if (key != "state") return true;
      return fields.object(inner, "status.containerStatuses.state", [&](std::string_view kind, Value state) {
        if (kind != "waiting" || !pod.waiting_reason.empty()) return true;
        return fields.object(state, "state.waiting", [&](std::string_view field, Value text) {
          return field == "reason" ? fields.name(text, "state.waiting.reason", pod.waiting_reason) : true;
        });
      });
    });
  });
}

}  // namespace

k8s::Result<KaiPod> project_kai_pod(std::string_view text) {
  KaiPod out;
  std::vector<std::string> names;
  std::vector<std::string> inits;
  json::Document document("Pod", text);
  const json::MetaFilter filter{true, keeps_annotation, true, keeps_label, json::kMostName};
  auto read = document.read(out.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, filter, out.meta);
    if (key == "spec") {
      return fields.object(value, "spec", [&](std::string_view field, Value inner) {
        if (field == "nodeName") return fields.text(inner, "spec.nodeName", out.node_name);
        if (field == "schedulerName") return fields.name(inner, "spec.schedulerName", out.scheduler_name);
        if (field == "containers") return read_names(fields, inner, names);
        if (field == "initContainers") return read_names(fields, inner, inits);
        if (field != "tolerations") return true;
        return json::read_tolerations(fields, inner, "spec.tolerations", true, out.tolerations);
      });
    }
    if (key != "status") return true;
    return fields.object(value, "status", [&](std::string_view field, Value inner) {
      if (field == "phase") return fields.name(inner, "status.phase", out.phase);
      if (field == "reason") return fields.name(inner, "status.reason", out.reason);
      if (field == "containerStatuses") return read_waiting(fields, inner, out);
      return true;
    });
  });
  if (!read) return std::unexpected(read.error());
  // What it costs is bounded for each: as many tolerations as no scheduler needs are dropped.
  constexpr std::size_t kMostTolerations = 16;
  if (out.tolerations.size() > kMostTolerations) out.tolerations.resize(kMostTolerations);
  out.meta.owners = {};
  out.container_index = Interned(gpu_container(out, names, inits));
  return out;
}

namespace {

bool read_short_name(Fields& fields, Value value, std::string_view path, Interned& out) {
  return fields.name(value, path, out);
}

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
    json::row_by<read_short_name, &BindRequest::selected_node>("spec.selectedNode"),
    json::row<&BindRequest::backoff_limit>("spec.backoffLimit"),
    {"spec.selectedGPUGroups", read_groups},
    {"spec.selectedFractionalGpuGroups", nullptr, [](BindRequest& /*request*/) {}},
    {"spec.selectedFractionalGpuGroups[].id", read_group},
    json::row_by<read_short_name, &BindRequest::phase>("status.phase"),
    json::row<&BindRequest::failed_attempts>("status.failedAttempts"),
};

}  // namespace

k8s::Result<BindRequest> project_bind_request(std::string_view text) {
  return json::project<BindRequest>("BindRequest", text, {false, nullptr}, kBindRequest);
}

}  // namespace gso
