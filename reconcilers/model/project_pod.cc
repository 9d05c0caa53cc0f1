// Pod: JSON -> projected value.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// Annotations that forbid the eviction of a pod, those that KAI reads, and the operator's.
bool keeps_pod_annotation(std::string_view key) {
  return key.starts_with("gpusharing.dev/") || key.starts_with("gpu-") || key.starts_with("kai.scheduler/") ||
         key.starts_with("runai-") || key == "received-resource-type" || key == kKarpenterDoNotDisrupt ||
         key == kSafeToEvict || kai::names_nv_fraction(key) || names_a_job(key);
}

// A variable of a container.
struct Variable {
  std::string name;
  std::string text;
  bool from_elsewhere = false;  // valueFrom: of a ConfigMap, for example.
};

bool read_variable(Fields& fields, Value value, Variable& out) {
  return fields.object(value, "env", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "env", out.name);
    if (key == "value") return fields.text(inner, "env", out.text);
    if (key == "valueFrom") out.from_elsewhere = !Fields::is_null(inner);
    return true;
  });
}

struct Mount {
  std::string volume;
  std::string path;      // In the container. Clean (foreign_names.h).
  std::string sub_path;  // Of the volume.
};

// Values of a container's variables by name; a value that the pod does not contain is omitted.
using Variables = std::map<std::string, std::string, std::less<>>;

// Longer than any path. Variables that repeat each other would otherwise grow without bounds.
constexpr std::size_t kLongestExpansion = json::kMostBytes;
// The same for the variables of a pod together: what is beyond stays unknown.
constexpr std::size_t kMostVariables = std::size_t{256} << 10U;

// The text with the container's variables in the place of $(NAME), as the kubelet puts them there; unknown ones stay.
// Cut after about kLongestExpansion bytes.
std::string with_variables(std::string_view text, const Variables& variables) {
  std::string out;
  while (!text.empty() && out.size() <= kLongestExpansion) {
    const std::size_t end = text.starts_with("$(") ? text.find(')') : std::string_view::npos;
    const bool escaped = text.starts_with("$$");
    const auto known = end == std::string_view::npos ? variables.end() : variables.find(text.substr(2, end - 2));
    out += known != variables.end() ? known->second : std::string(text.substr(0, 1));
    text.remove_prefix(known != variables.end() ? end + 1 : escaped ? 2 : 1);
  }
  return out;
}

// The fields of one container that show its use of GPUs.
struct ContainerUse {
  ResourceCounts limits;
  Variables variables;
  std::vector<Mount> mounts;
  std::string pipe_directory;    // CUDA_MPS_PIPE_DIRECTORY, clean.
  bool other_pipe = false;       // The same, with a value that the pod does not contain (valueFrom).
  bool visible_devices = false;  // NVIDIA_VISIBLE_DEVICES names devices.
  bool sidecar = false;          // Of an init container: restartPolicy Always.
};

struct Volume {
  std::string name;
  std::string host_path;  // Clean (foreign_names.h). Empty: another kind of volume.
  bool of_pod = false;    // Made for the pod: no daemon outside of it uses the same directory.
};

bool read_path(Fields& fields, Value value, std::string_view field, std::string& out) {
  if (!fields.text(value, field, out)) return false;
  out = clean_path(out);
  return true;
}

// `room`: for variables, in bytes.
bool read_container_use(Fields& fields, Value value, ContainerUse& use, std::size_t& room) {
  return fields.object(value, "spec.containers", [&](std::string_view key, Value inner) {
    if (key == "resources") {
      return fields.object(inner, "resources", [&](std::string_view side, Value list) {
        // Extended resources have equal requests and limits; limits alone is enough for the API server.
        if (side != "limits" && side != "requests") return true;
        return fields.object(list, "resources.limits", [&](std::string_view resource, Value count) {
          if (!resource.starts_with("nvidia.com/")) return true;
          const Interned name(resource);
          if (use.limits.size() >= json::kMostEntries && !use.limits.contains(name)) return true;
          return fields.request(count, "resources.limits", use.limits[name]);
        });
      });
    }
    if (key == "env") {
      return fields.array(inner, "env", [&](Value item) {
        Variable variable;
        if (!read_variable(fields, item, variable)) return false;
        // A variable refers to earlier ones.
        std::string text = with_variables(variable.text, use.variables);
        const bool elsewhere = variable.from_elsewhere;  // It counts as set: the pod does not show that it is not.
        if (variable.name == "NVIDIA_VISIBLE_DEVICES")
          use.visible_devices = elsewhere || (!text.empty() && text != "void" && text != "none");
        if (variable.name == "CUDA_MPS_PIPE_DIRECTORY") {
          use.pipe_directory = clean_path(text);
          use.other_pipe = elsewhere;
        }
        const std::size_t bytes = variable.name.size() + text.size();
        if (text.empty() || text.size() > kLongestExpansion || bytes > room) return true;
        if (use.variables.try_emplace(std::move(variable.name), std::move(text)).second) room -= bytes;
        return true;
      });
    }
    if (key == "volumeMounts") {
      return fields.array(inner, "volumeMounts", [&](Value item) {
        Mount& mount = use.mounts.emplace_back();
        return fields.object(item, "volumeMounts", [&](std::string_view field, Value text) {
          if (field == "name") return fields.text(text, "volumeMounts.name", mount.volume);
          if (field == "mountPath") return read_path(fields, text, "volumeMounts.mountPath", mount.path);
          if (field == "subPath" || field == "subPathExpr")
            return fields.text(text, "volumeMounts.subPath", mount.sub_path);
          return true;
        });
      });
    }
    if (key == "restartPolicy") {
      std::string_view policy;
      if (!fields.view(inner, "containers.restartPolicy", policy)) return false;
      use.sidecar = policy == "Always";
    }
    return true;
  });
}

bool read_pod_volume(Fields& fields, Value value, Volume& volume) {
  return fields.object(value, "spec.volumes", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "spec.volumes.name", volume.name);
    constexpr std::string_view kOfPod[] = {"emptyDir", "configMap", "secret", "projected", "downwardAPI", "ephemeral"};
    volume.of_pod = volume.of_pod || std::ranges::find(kOfPod, key) != std::end(kOfPod);
    if (key != "hostPath") return true;
    return fields.object(inner, "spec.volumes.hostPath", [&](std::string_view field, Value path) {
      return field == "path" ? read_path(fields, path, "spec.volumes.hostPath.path", volume.host_path) : true;
    });
  });
}

// More GPUs than any cluster has: the requests of all pods of a node can be added up.
constexpr std::int64_t kMostRequested = 1'000'000'000'000;

void add(ResourceCounts& sum, const ResourceCounts& counts) {
  for (const auto& [resource, count] : counts) {
    if (sum.size() < json::kMostEntries || sum.contains(resource))
      sum[resource] = std::min(sum[resource] + std::min(count, kMostRequested), kMostRequested);
  }
}

// As the scheduler counts (k8s.io/component-helpers, resource.PodRequests): a sidecar runs beside everything that
// starts after it, and other init containers run one after the other before the main containers.
ResourceCounts requests_of(const std::vector<ContainerUse>& init_containers,
                           const std::vector<ContainerUse>& containers) {
  ResourceCounts sidecars;
  ResourceCounts largest_step;
  for (const ContainerUse& use : init_containers) {
    ResourceCounts step = sidecars;
    add(step, use.limits);
    if (use.sidecar) sidecars = step;
    for (const auto& [resource, count] : step) {
      if (largest_step.size() >= json::kMostEntries && !largest_step.contains(resource)) continue;
      largest_step[resource] = std::max(largest_step[resource], count);
    }
  }
  ResourceCounts out = std::move(sidecars);
  for (const ContainerUse& use : containers) add(out, use.limits);
  for (const auto& [resource, count] : largest_step) out[resource] = std::max(out[resource], count);
  return out;
}

// Whether the mount shows the directory to the container: any volume is mounted at the directory, or one that other
// pods can share is mounted above it (an emptyDir above it belongs to the pod).
bool shows(const Mount& mount, const Volume* volume, std::string_view directory) {
  if (mount.path == directory) return true;
  return volume != nullptr && !volume->of_pod && !mount.path.empty() && is_at_or_below(directory, mount.path);
}

// Pipe directories that containers of one pod can name before nobody looks which of them a mount shows.
constexpr std::size_t kMostDirectories = 16;

// A client of an MPS daemon outside of the pod. A directory that one container names also counts for the mounts of the
// others: the pod does not show which of them is the client.
bool uses_mps_pipe(const std::vector<const ContainerUse*>& uses, const std::vector<Volume>& volumes) {
  if (std::ranges::any_of(volumes, [](const Volume& volume) { return is_usual_pipe_directory(volume.host_path); }))
    return true;
  if (std::ranges::any_of(uses, [](const ContainerUse* use) { return use->other_pipe; })) return true;
  std::set<std::string_view> directories;
  for (const ContainerUse* use : uses) {
    if (!use->pipe_directory.empty()) directories.emplace(use->pipe_directory);
  }
  if (directories.size() > kMostDirectories) return true;  // In doubt it is one.
  std::map<std::string_view, const Volume*> by_name;
  for (const Volume& volume : volumes) by_name.try_emplace(volume.name, &volume);
  return std::ranges::any_of(uses, [&](const ContainerUse* use) {
    return std::ranges::any_of(use->mounts, [&](const Mount& mount) {
      const auto volume = by_name.find(mount.volume);
      const Volume* found = volume == by_name.end() ? nullptr : volume->second;
      if (found != nullptr && !mount.sub_path.empty() && !found->host_path.empty() &&
          is_usual_pipe_directory(clean_path(found->host_path + "/" + with_variables(mount.sub_path, use->variables))))
        return true;
      return std::ranges::any_of(directories,
                                 [&](std::string_view directory) { return shows(mount, found, directory); });
    });
  });
}

bool read_pod_spec(Fields& fields, Value value, std::string_view path, Pod& pod) {
  std::vector<ContainerUse> containers;
  std::vector<ContainerUse> init_containers;
  std::vector<ContainerUse> ephemeral_containers;  // Of `kubectl debug`: they request nothing, and use what they see.
  std::vector<Volume> volumes;
  std::size_t room = kMostVariables;
  const bool read = fields.object(value, path, [&](std::string_view key, Value inner) {
    auto uses = [&](std::vector<ContainerUse>& into) {
      return fields.array(inner, "spec.containers",
                          [&](Value item) { return read_container_use(fields, item, into.emplace_back(), room); });
    };
    if (key == "nodeName") return fields.text(inner, "spec.nodeName", pod.node_name);
    if (key == "schedulerName") return fields.name(inner, "spec.schedulerName", pod.scheduler_name);
    if (key == "runtimeClassName") return fields.name(inner, "spec.runtimeClassName", pod.runtime_class);
    if (key == "priority") return fields.number(inner, "spec.priority", pod.priority);
    if (key == "containers") return uses(containers);
    if (key == "initContainers") return uses(init_containers);
    if (key == "ephemeralContainers") return uses(ephemeral_containers);
    if (key == "volumes") {
      return fields.array(inner, "spec.volumes",
                          [&](Value item) { return read_pod_volume(fields, item, volumes.emplace_back()); });
    }
    if (key == "resourceClaims") {
      return fields.array(inner, "spec.resourceClaims", [&](Value) { return pod.dra_gpu_claim = true; });
    }
    return true;
  });
  pod.gpu_requests = requests_of(init_containers, containers);
  std::vector<const ContainerUse*> uses;
  for (const auto* list : {&containers, &init_containers, &ephemeral_containers}) {
    for (const ContainerUse& use : *list) uses.push_back(&use);
  }
  pod.uses_mps_pipe = uses_mps_pipe(uses, volumes);
  std::vector<Interned> host_paths;
  for (const Volume& volume : volumes) {
    if (!volume.host_path.empty() && host_paths.size() < json::kMostEntries)
      host_paths.emplace_back(first_bytes(volume.host_path, json::kMostBytes));
  }
  pod.host_paths = std::move(host_paths);
  auto visible = [](const ContainerUse* use) { return use->visible_devices && use->limits.empty(); };
  pod.nvidia_visible_devices = std::ranges::any_of(uses, visible);
  return read;
}

bool read_end_message(Fields& fields, Value value, std::string_view path, Interned& out) {
  constexpr std::size_t kMessageBytes = 256;
  std::string_view message;
  if (!fields.view(value, path, message)) return false;
  out = Interned(message.substr(0, kMessageBytes));
  return true;
}

constexpr json::Row<Termination> kTermination[] = {
    json::row<&Termination::exit_code>("state.terminated.exitCode"),
    json::row<&Termination::reason>("state.terminated.reason"),
    json::row_by<read_end_message, &Termination::message>("state.terminated.message"),
};

bool read_termination(Fields& fields, Value value, std::string_view /*path*/, Rare<Termination>& out) {
  if (Fields::is_null(value)) return true;
  Termination ended;
  const bool read = json::read_rows(fields, value, "state.terminated.", kTermination, ended);
  out = Rare(std::move(ended));
  return read;
}

constexpr json::Row<ContainerStatus> kContainerStatus[] = {
    json::row<&ContainerStatus::name>("status.containerStatuses[].name"),
    json::row<&ContainerStatus::ready>("status.containerStatuses[].ready"),
    json::row<&ContainerStatus::restarts>("status.containerStatuses[].restartCount"),
    {"status.containerStatuses[].state.running", nullptr, [](ContainerStatus& status) { status.running = true; }},
    json::row<&ContainerStatus::started_at>("status.containerStatuses[].state.running.startedAt"),
    json::row<&ContainerStatus::waiting_reason>("status.containerStatuses[].state.waiting.reason"),
    json::row_by<read_termination, &ContainerStatus::terminated>("status.containerStatuses[].state.terminated"),
    json::row_by<read_termination, &ContainerStatus::last_terminated>(
        "status.containerStatuses[].lastState.terminated"),
};

bool read_statuses(Fields& fields, Value value, std::string_view path, std::vector<ContainerStatus>& out) {
  return fields.array(value, path, [&](Value item) {
    return json::read_rows(fields, item, "status.containerStatuses[].", kContainerStatus, out.emplace_back());
  });
}

// The kubelet's clock can be ahead of the API server's. It cannot see the pod before the API server creates it, so its
// clock is ahead by at most the difference of the two times: this difference is subtracted from the kubelet's times of
// containers. A pod without the kubelet's time has no times of containers that prove anything.
void correct_start_times(Pod& pod, std::optional<WallTime> seen_by_kubelet) {
  if (!seen_by_kubelet) {
    for (ContainerStatus& status : pod.containers) status.started_at.reset();
    return;
  }
  if (*seen_by_kubelet <= pod.meta.creation_timestamp) return;
  const auto ahead = *seen_by_kubelet - pod.meta.creation_timestamp;
  for (ContainerStatus& status : pod.containers) {
    if (status.started_at) *status.started_at -= ahead;
  }
}

// The init container has done its work and nothing of it is read any more. What the check of a standalone MPS daemon
// reports is read for as long as the pod runs.
bool is_finished(const ContainerStatus& status) {
  const bool reports = status.name == kStandaloneMpsCheck && status.terminated &&
                       !reported_pipe_directory(status.terminated->message.view()).empty();
  return status.ready && !reports;
}

bool read_init_statuses(Fields& fields, Value value, std::string_view path, RareList<ContainerStatus>& out) {
  std::vector<ContainerStatus> kept;
  if (!read_statuses(fields, value, path, kept)) return false;
  // A fleet has tens of thousands of those that have finished.
  std::erase_if(kept, is_finished);
  out = std::move(kept);
  return true;
}

struct ReadPod {
  Pod pod;
  std::optional<WallTime> seen_by_kubelet;
};

constexpr json::Row<ReadPod> kPod[] = {
    json::row_by<read_pod_spec, &ReadPod::pod>("spec"),
    json::row<&ReadPod::seen_by_kubelet>("status.startTime"),
    json::row<&ReadPod::pod, &Pod::phase>("status.phase"),
    json::row<&ReadPod::pod, &Pod::reason>("status.reason"),
    json::row_by<read_statuses, &ReadPod::pod, &Pod::containers>("status.containerStatuses"),
    json::row_by<read_init_statuses, &ReadPod::pod, &Pod::init_containers>("status.initContainerStatuses"),
    json::row_by<json::read_ready, &ReadPod::pod, &Pod::ready>("status.conditions"),
};

}  // namespace

k8s::Result<Pod> project_pod(std::string_view text) {
  ReadPod out;
  const json::MetaFilter filter{true, keeps_pod_annotation, true, nullptr, json::kMostName};
  if (auto read = json::read_object("Pod", text, filter, kPod, out.pod.meta, out); !read)
    return std::unexpected(read.error());
  correct_start_times(out.pod, out.seen_by_kubelet);
  return std::move(out.pod);
}

k8s::Result<Pod> project_operand_pod(std::string_view text) {
  k8s::Result<Pod> pod = project_pod(text);
  if (!pod) return pod;
  k8s::StringMap kept;
  if (const auto hash = pod->meta.labels.get(kRevisionHashLabel)) kept.set(kRevisionHashLabel, *hash);
  kept.shrink_to_fit();
  pod->meta.labels = std::move(kept);
  pod->meta.annotations = {};
  pod->host_paths = {};
  return pod;
}

}  // namespace gso
