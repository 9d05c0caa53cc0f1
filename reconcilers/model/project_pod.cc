// Pod: JSON -> projected value.
#include <algorithm>

#include "reconcilers/model/jobs.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// What says that a pod must not be moved, what KAI reads, and ours.
bool keeps_pod_annotation(std::string_view key) {
  return key.starts_with("gpusharing.dev/") || key.starts_with("gpu-") || key.starts_with("kai.scheduler/") ||
         key.starts_with("runai-") || key == "received-resource-type" || key == kKarpenterDoNotDisrupt ||
         key == kSafeToEvict || names_a_job(key);
}

bool read_name_value(Fields& fields, Value value, std::string_view field, std::string& name, std::string& text) {
  return fields.object(value, field, [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, field, name);
    if (key == "value") return fields.text(inner, field, text);
    return true;
  });
}

// What one container of a pod says about its use of GPUs.
struct ContainerUse {
  ResourceCounts limits;
  std::vector<std::string> mounts;  // Volume names.
  bool visible_devices = false;     // NVIDIA_VISIBLE_DEVICES names devices.
};

bool read_container_use(Fields& fields, Value value, ContainerUse& use) {
  return fields.object(value, "spec.containers", [&](std::string_view key, Value inner) {
    if (key == "resources") {
      return fields.object(inner, "resources", [&](std::string_view side, Value list) {
        // Extended resources have equal requests and limits; limits alone is enough for the API server.
        if (side != "limits" && side != "requests") return true;
        return fields.object(list, "resources.limits", [&](std::string_view resource, Value count) {
          if (!resource.starts_with("nvidia.com/")) return true;
          return fields.quantity(count, "resources.limits", use.limits[Interned(resource)]);
        });
      });
    }
    if (key == "env") {
      return fields.array(inner, "env", [&](Value item) {
        std::string name;
        std::string text;
        if (!read_name_value(fields, item, "env", name, text)) return false;
        if (name == "NVIDIA_VISIBLE_DEVICES") use.visible_devices = !text.empty() && text != "void" && text != "none";
        return true;
      });
    }
    if (key == "volumeMounts") {
      return fields.array(inner, "volumeMounts", [&](Value item) {
        return fields.object(item, "volumeMounts", [&](std::string_view field, Value name) {
          return field == "name" ? fields.text(name, "volumeMounts.name", use.mounts.emplace_back()) : true;
        });
      });
    }
    return true;
  });
}

bool read_pod_volume(Fields& fields, Value value, bool& mps_path) {
  return fields.object(value, "spec.volumes", [&](std::string_view key, Value inner) {
    if (key != "hostPath") return true;
    return fields.object(inner, "spec.volumes.hostPath", [&](std::string_view field, Value path) {
      if (field != "path") return true;
      std::string_view text;
      if (!fields.view(path, "spec.volumes.hostPath.path", text)) return false;
      mps_path = mps_path || text.starts_with("/run/nvidia/mps") || text == "/mps" || text.starts_with("/mps/");
      return true;
    });
  });
}

void add_use(const ContainerUse& use, bool init, Pod& pod) {
  for (const auto& [resource, count] : use.limits) {
    std::int64_t& total = pod.gpu_requests[resource];
    // Init containers run one after the other, before the others: the larger need counts.
    total = init ? std::max(total, count) : total + count;
  }
}

bool read_pod_spec(Fields& fields, Value value, Pod& pod) {
  std::vector<ContainerUse> containers;
  std::vector<ContainerUse> init_containers;
  const bool read = fields.object(value, "spec", [&](std::string_view key, Value inner) {
    auto uses = [&](std::vector<ContainerUse>& into) {
      return fields.array(inner, "spec.containers",
                          [&](Value item) { return read_container_use(fields, item, into.emplace_back()); });
    };
    if (key == "nodeName") return fields.text(inner, "spec.nodeName", pod.node_name);
    if (key == "schedulerName") return fields.text(inner, "spec.schedulerName", pod.scheduler_name);
    if (key == "runtimeClassName") return fields.text(inner, "spec.runtimeClassName", pod.runtime_class);
    if (key == "priorityClassName") return fields.text(inner, "spec.priorityClassName", pod.priority_class);
    if (key == "containers") return uses(containers);
    if (key == "initContainers") return uses(init_containers);
    if (key == "volumes") {
      return fields.array(inner, "spec.volumes",
                          [&](Value item) { return read_pod_volume(fields, item, pod.uses_mps_pipe); });
    }
    if (key == "resourceClaims") {
      return fields.array(inner, "spec.resourceClaims", [&](Value) { return pod.dra_gpu_claim = true; });
    }
    return true;
  });
  for (const auto& use : containers) add_use(use, false, pod);
  for (const auto& use : init_containers) add_use(use, true, pod);
  auto visible = [](const ContainerUse& use) { return use.visible_devices && use.limits.empty(); };
  pod.nvidia_visible_devices =
      std::ranges::any_of(containers, visible) || std::ranges::any_of(init_containers, visible);
  return read;
}

// The newest message of a container is what its back-off was about: waiting first, then the last termination.
constexpr std::size_t kMessageBytes = 256;

bool read_container_state(Fields& fields, Value value, bool last, ContainerStatus& status) {
  return fields.object(value, "status.containerStatuses.state", [&](std::string_view kind, Value inner) {
    if (kind == "running" && !last) status.running = true;
    return fields.object(inner, "status.containerStatuses.state", [&](std::string_view key, Value text) {
      if (kind == "running" && !last && key == "startedAt") {
        return fields.time(text, "state.running.startedAt", status.started_at);
      }
      if (kind == "waiting" && key == "reason") return fields.text(text, "state.waiting.reason", status.waiting_reason);
      if (kind == "terminated" && key == "exitCode") {
        return fields.number(text, "state.terminated.exitCode", status.last_exit_code);
      }
      if (kind == "terminated" && key == "message") {
        std::string_view message;
        if (!fields.view(text, "state.terminated.message", message)) return false;
        if (status.last_message.empty()) status.last_message = Interned(message.substr(0, kMessageBytes));
      }
      return true;
    });
  });
}

bool read_container_status(Fields& fields, Value value, ContainerStatus& status) {
  return fields.object(value, "status.containerStatuses", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "status.containerStatuses.name", status.name);
    if (key == "ready") return fields.flag(inner, "status.containerStatuses.ready", status.ready);
    if (key == "restartCount") return fields.number(inner, "status.containerStatuses.restartCount", status.restarts);
    if (key == "state") return read_container_state(fields, inner, false, status);
    if (key == "lastState") return read_container_state(fields, inner, true, status);
    return true;
  });
}

bool read_pod_status(Fields& fields, Value value, Pod& pod) {
  return fields.object(value, "status", [&](std::string_view key, Value inner) {
    auto statuses = [&](std::vector<ContainerStatus>& into) {
      return fields.array(inner, "status.containerStatuses",
                          [&](Value item) { return read_container_status(fields, item, into.emplace_back()); });
    };
    if (key == "phase") return fields.text(inner, "status.phase", pod.phase);
    if (key == "reason") return fields.text(inner, "status.reason", pod.reason);
    if (key == "containerStatuses") return statuses(pod.containers);
    if (key == "initContainerStatuses") {
      if (!statuses(pod.init_containers)) return false;
      // They have done their work, and a fleet has tens of thousands.
      std::erase_if(pod.init_containers, [](const ContainerStatus& status) { return status.ready; });
      pod.init_containers.shrink_to_fit();
      return true;
    }
    if (key == "conditions") {
      return fields.array(inner, "status.conditions", [&](Value item) { return read_ready(fields, item, pod.ready); });
    }
    return true;
  });
}

}  // namespace

k8s::Result<Pod> project_pod(std::string_view text) {
  Pod pod;
  json::Document document("Pod", text);
  const json::MetaFilter filter{true, keeps_pod_annotation};
  auto read = document.read(pod.meta, [&](Fields& fields, std::string_view key, Value value) {
    if (key == "metadata") return json::read_meta(fields, value, filter, pod.meta);
    if (key == "spec") return read_pod_spec(fields, value, pod);
    if (key == "status") return read_pod_status(fields, value, pod);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return pod;
}

k8s::Result<Pod> project_operand_pod(std::string_view text) {
  k8s::Result<Pod> pod = project_pod(text);
  if (!pod) return pod;
  k8s::StringMap kept;
  if (const auto hash = pod->meta.labels.get(kRevisionHashLabel)) kept.set(kRevisionHashLabel, *hash);
  kept.shrink_to_fit();
  pod->meta.labels = std::move(kept);
  pod->meta.annotations = {};
  return pod;
}

}  // namespace gso
