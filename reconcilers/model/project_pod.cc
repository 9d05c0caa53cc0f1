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
  ResourceCounts requests;
  Variables variables;
  std::vector<json::Mount> mounts;  // Their paths clean.
  std::string pipe_directory;       // CUDA_MPS_PIPE_DIRECTORY, clean.
  bool other_pipe = false;          // The same, with a value that the pod does not contain (valueFrom).
  bool visible_devices = false;     // NVIDIA_VISIBLE_DEVICES names devices.
  bool sidecar = false;             // Of an init container: restartPolicy Always.
};

// `use` and the `room` for variables that is left, in bytes.
struct ReadContainer {
  ContainerUse& use;
  std::size_t& room;
};

// Extended resources have equal requests and limits; limits alone is enough for the API server.
bool read_amounts(Fields& fields, Value value, std::string_view /*path*/, ReadContainer& out) {
  return fields.object(value, "resources.limits", [&](std::string_view resource, Value count) {
    if (!resource.starts_with("nvidia.com/")) return true;
    ResourceCounts& requests = out.use.requests;
    const Interned name(resource);
    if (requests.size() >= json::kMostEntries && !requests.contains(name)) return true;
    // Anybody can request any amount.
    return fields.quantity(count, "resources.limits", requests[name], 1, Fields::Beyond::is_the_most);
  });
}

bool read_variables(Fields& fields, Value value, std::string_view /*path*/, ReadContainer& out) {
  ContainerUse& use = out.use;
  return json::read_each<json::Variable>(fields, value, "env[].", json::kVariable, [&](json::Variable& variable) {
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
    if (text.empty() || text.size() > kLongestExpansion || bytes > out.room) return;
    if (use.variables.try_emplace(std::move(variable.name), std::move(text)).second) out.room -= bytes;
  });
}

bool read_mounts(Fields& fields, Value value, std::string_view /*path*/, ReadContainer& out) {
  return json::read_each<json::Mount>(fields, value, "volumeMounts[].", json::kMount, [&](json::Mount& mount) {
    mount.path = clean_path(mount.path);
    out.use.mounts.push_back(std::move(mount));
  });
}

bool read_use_sidecar(Fields& fields, Value value, std::string_view path, ReadContainer& out) {
  return json::read_sidecar(fields, value, path, out.use.sidecar);
}

constexpr json::Row<ReadContainer> kContainerUse[] = {
    {"containers[].resources.limits", read_amounts},
    {"containers[].resources.requests", read_amounts},
    {"containers[].env", read_variables},
    {"containers[].volumeMounts", read_mounts},
    {"containers[].restartPolicy", read_use_sidecar},
};

// More GPUs than any cluster has: the requests of all pods of a node can be added up.
constexpr std::int64_t kMostRequested = 1'000'000'000'000;

void add_counts(ResourceCounts& sum, const ResourceCounts& more) {
  for (const auto& [resource, count] : more)
    if (sum.size() < json::kMostEntries || sum.contains(resource))
      sum[resource] = std::min(sum[resource] + std::min(count, kMostRequested), kMostRequested);
}

// Of all steps beside the sum of the containers, which has half of the entries at most.
void raise_counts(ResourceCounts& out, const ResourceCounts& least) {
  for (const auto& [resource, count] : least)
    if (out.size() < 2 * json::kMostEntries || out.contains(resource)) out[resource] = std::max(out[resource], count);
}

// Whether the mount shows the directory to the container: any volume is mounted at the directory, or one that other
// pods can share is mounted above it (an emptyDir above it belongs to the pod).
bool shows(const json::Mount& mount, const json::Volume* volume, std::string_view directory) {
  if (mount.path == directory) return true;
  return volume != nullptr && !volume->of_pod && !mount.path.empty() && is_at_or_below(directory, mount.path);
}

// Pipe directories that containers of one pod can name before nobody looks which of them a mount shows.
constexpr std::size_t kMostDirectories = 16;

// A client of an MPS daemon outside of the pod. A directory that one container names also counts for the mounts of the
// others: the pod does not show which of them is the client.
bool uses_mps_pipe(const std::vector<const ContainerUse*>& uses, const std::vector<json::Volume>& volumes) {
  if (std::ranges::any_of(volumes,
                          [](const json::Volume& volume) { return is_usual_pipe_directory(volume.host_path); }))
    return true;
  if (std::ranges::any_of(uses, [](const ContainerUse* use) { return use->other_pipe; })) return true;
  std::set<std::string_view> directories;
  for (const ContainerUse* use : uses)
    if (!use->pipe_directory.empty()) directories.emplace(use->pipe_directory);
  if (directories.size() > kMostDirectories) return true;  // In doubt it is one.
  std::map<std::string_view, const json::Volume*> by_name;
  for (const json::Volume& volume : volumes) by_name.try_emplace(volume.name, &volume);
  return std::ranges::any_of(uses, [&](const ContainerUse* use) {
    return std::ranges::any_of(use->mounts, [&](const json::Mount& mount) {
      const auto volume = by_name.find(mount.volume);
      const json::Volume* found = volume == by_name.end() ? nullptr : volume->second;
      if (found != nullptr && !mount.sub_path.empty() && !found->host_path.empty() &&
          is_usual_pipe_directory(clean_path(found->host_path + "/" + with_variables(mount.sub_path, use->variables))))
        return true;
      return std::ranges::any_of(directories,
                                 [&](std::string_view directory) { return shows(mount, found, directory); });
    });
  });
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
  for (ContainerStatus& status : pod.containers)
    if (status.started_at) *status.started_at -= ahead;
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

// With what decides about its use of GPUs, and about its times, once all is read.
struct ReadPod {
  Pod pod;
  std::vector<ContainerUse> containers;
  std::vector<ContainerUse> init_containers;
  std::vector<ContainerUse> ephemeral_containers;  // Of `kubectl debug`: they request nothing, and use what they see.
  std::vector<json::Volume> volumes;
  std::size_t room = kMostVariables;
  std::optional<WallTime> seen_by_kubelet;
};

template <auto kList>
bool read_uses(Fields& fields, Value value, std::string_view path, ReadPod& out) {
  return fields.array(value, path, [&](Value item) {
    ReadContainer container{(out.*kList).emplace_back(), out.room};
    return json::read_rows(fields, item, "containers[].", kContainerUse, container);
  });
}

bool read_pod_volumes(Fields& fields, Value value, std::string_view path, ReadPod& out) {
  return fields.array(value, path, [&](Value item) {
    json::Volume& volume = out.volumes.emplace_back();
    const bool read = json::read_volume(fields, item, volume);
    volume.host_path = clean_path(volume.host_path);
    return read;
  });
}

constexpr auto kOfPod = &ReadPod::pod;
constexpr json::Row<ReadPod> kPod[] = {
    json::row<kOfPod, &Pod::node_name>("spec.nodeName"),
    json::row_by<json::read_name, kOfPod, &Pod::scheduler_name>("spec.schedulerName"),
    json::row_by<json::read_name, kOfPod, &Pod::runtime_class>("spec.runtimeClassName"),
    json::row<kOfPod, &Pod::priority>("spec.priority"),
    {"spec.containers", read_uses<&ReadPod::containers>},
    {"spec.initContainers", read_uses<&ReadPod::init_containers>},
    {"spec.ephemeralContainers", read_uses<&ReadPod::ephemeral_containers>},
    {"spec.volumes", read_pod_volumes},
    json::row_by<json::read_has_items, kOfPod, &Pod::dra_gpu_claim>("spec.resourceClaims"),
    json::row<&ReadPod::seen_by_kubelet>("status.startTime"),
    json::row<kOfPod, &Pod::phase>("status.phase"),
    json::row<kOfPod, &Pod::reason>("status.reason"),
    json::row_by<read_statuses, kOfPod, &Pod::containers>("status.containerStatuses"),
    json::row_by<read_init_statuses, kOfPod, &Pod::init_containers>("status.initContainerStatuses"),
    json::row_by<json::read_ready, kOfPod, &Pod::ready>("status.conditions"),
};

void keep_use(const ReadPod& read, Pod& pod) {
  pod.gpu_requests = json::requests_of(read.init_containers, read.containers, add_counts, raise_counts);
  std::vector<const ContainerUse*> uses;
  for (const auto* list : {&read.containers, &read.init_containers, &read.ephemeral_containers})
    for (const ContainerUse& use : *list) uses.push_back(&use);
  pod.uses_mps_pipe = uses_mps_pipe(uses, read.volumes);
  std::vector<Interned> host_paths;
  for (const json::Volume& volume : read.volumes)
    if (!volume.host_path.empty() && host_paths.size() < json::kMostEntries)
      host_paths.emplace_back(first_bytes(volume.host_path, json::kMostBytes));
  pod.host_paths = std::move(host_paths);
  auto visible = [](const ContainerUse* use) { return use->visible_devices && use->requests.empty(); };
  pod.nvidia_visible_devices = std::ranges::any_of(uses, visible);
}

}  // namespace

k8s::Result<Pod> project_pod(std::string_view text) {
  ReadPod out;
  const json::MetaFilter filter{true, keeps_pod_annotation, true, nullptr, json::kMostName};
  if (auto read = json::read_object("Pod", text, filter, kPod, out.pod.meta, out); !read)
    return std::unexpected(read.error());
  keep_use(out, out.pod);
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
