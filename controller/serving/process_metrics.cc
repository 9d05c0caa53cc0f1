// The metrics of the operator's own process: memory, CPU time, start time, open files.
#include "controller/serving/process_metrics.h"
#include "reconcilers/model/policy.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace gso {

namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number at the beginning of a text; 0: none.
double leading_number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double own_start_time() {
  return start_time(text_of("/proc/self/stat"), text_of("/proc/stat"), static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace

double start_time(std::string_view process_stat, std::string_view system_stat, double ticks_per_second) {
  constexpr std::string_view kBootTime = "\nbtime ";
  // The second field is the command in parentheses, which can contain spaces and parentheses. The start time is
  // field 22.
  const std::size_t command_end = process_stat.rfind(')');
  const std::size_t boot = system_stat.find(kBootTime);
  if (command_end == std::string_view::npos || boot == std::string_view::npos || ticks_per_second <= 0) return 0;
  std::string_view fields = process_stat.substr(command_end + 1);
  for (int field = 2; field < 22; ++field) {
    const std::size_t space = fields.find(' ');
    if (space == std::string_view::npos) return 0;
    fields.remove_prefix(space + 1);
  }
  return leading_number(system_stat.substr(boot + kBootTime.size())) + leading_number(fields) / ticks_per_second;
}

std::optional<std::size_t> memory_limit(std::string_view version_2, std::string_view version_1) {
  constexpr std::size_t kUnlimited = std::size_t{1} << 60U;  // Version 1 has no word for it, but a number beyond.
  std::optional<std::size_t> least;
  for (const std::string_view text : {version_2, version_1}) {  // "max" is no number.
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error == std::errc() && bytes > 0 && bytes < kUnlimited) least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}

std::size_t largest_answer() {
  constexpr std::size_t kMost = std::size_t{32} << 20U;
  static const std::optional<std::size_t> limit =
      memory_limit(text_of("/sys/fs/cgroup/memory.max"), text_of("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return limit ? std::min(kMost, *limit / 8) : kMost;
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void fill_process_metrics(Metrics& metrics) {
  static const double start = own_start_time();
  metrics.set("process_resident_memory_bytes", {}, static_cast<double>(resident_bytes()));
  metrics.set("process_start_time_seconds", {}, start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  const double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  metrics.add("process_cpu_seconds_total", {}, cpu - metrics.value("process_cpu_seconds_total"));
  std::error_code ec;
  std::size_t open = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", ec), end; !ec && it != end; it.increment(ec)) ++open;
  metrics.set("process_open_fds", {}, static_cast<double>(open));
}

// --- sizeof, and the heap memory that an object owns.

namespace {

constexpr std::size_t kTreeNode = 4 * sizeof(void*);  // What std::map and std::set put around an entry.

std::size_t text(const std::string& value) {
  return value.capacity() >= sizeof(std::string) / 2 ? value.capacity() + 1 : 0;  // Short ones are inside.
}

std::size_t meta(const ObjectMeta& meta) {
  return text(meta.name) + text(meta.resource_version) + meta.labels.own_bytes() + meta.annotations.own_bytes() +
         meta.owners.capacity() * sizeof(k8s::OwnerReference);
}

std::size_t statuses(const std::vector<ContainerStatus>& list) {
  return list.capacity() * sizeof(ContainerStatus);
}

std::size_t texts(const std::map<std::string, std::string>& map) {
  std::size_t out = 0;
  for (const auto& [key, value] : map) out += kTreeNode + 2 * sizeof(std::string) + text(key) + text(value);
  return out;
}

std::size_t container(const ContainerSpec& spec) {
  std::size_t out = sizeof(spec) + text(spec.name) + text(spec.image) + texts(spec.env) + texts(spec.volume_mounts);
  for (const std::string& word : spec.command) out += sizeof(word) + text(word);
  return out;
}

}  // namespace

std::size_t bytes_of(const Node& node) {
  return sizeof(node) + meta(node.meta) + node.taints.capacity() * sizeof(Taint) +
         (node.capacity.size() + node.allocatable.size()) * sizeof(ResourceCounts::Entry);
}

std::size_t bytes_of(const Pod& pod) {
  return sizeof(pod) + meta(pod.meta) + statuses(pod.containers) +
         pod.init_containers.size() * sizeof(ContainerStatus) + pod.gpu_requests.size() * sizeof(ResourceCounts::Entry);
}

std::size_t bytes_of(const ConfigMap& config_map) {
  std::size_t out = sizeof(config_map) + meta(config_map.meta);
  for (const auto& [key, value] : config_map.data) {
    out += kTreeNode + sizeof(std::string) + text(key) + (value == nullptr ? 0 : sizeof(std::string) + text(*value));
  }
  return out;
}

std::size_t bytes_of(const DaemonSet& daemonset) {
  std::size_t out = sizeof(daemonset) + meta(daemonset.meta) + texts(daemonset.match_labels) +
                    texts(daemonset.node_selector) + texts(daemonset.configmap_volumes);
  for (const ContainerSpec& spec : daemonset.containers) out += container(spec);
  for (const ContainerSpec& spec : daemonset.init_containers) out += container(spec);
  return out;
}

std::size_t bytes_of(const ControllerRevision& revision) {
  return sizeof(revision) + meta(revision.meta);
}

std::size_t bytes_of(const ClusterPolicy& policy) {
  return sizeof(policy) + meta(policy.meta) + text(policy.config_name) + text(policy.config_default);
}

std::size_t bytes_of(const DeviceClass& device_class) {
  return sizeof(device_class) + meta(device_class.meta);
}

std::size_t bytes_of(const ResourceSlice& slice) {
  return sizeof(slice) + meta(slice.meta);
}

std::size_t bytes_of(const SharingPolicy& policy) {
  return sizeof(policy) + meta(policy.meta) + text(policy.status_json);
}

std::size_t bytes_of(const SharingRollout& rollout) {
  return sizeof(rollout) + meta(rollout.meta) + text(rollout.profile) + text(rollout.status_json) +
         text(rollout.config_map) + text(rollout.to_revision);
}

std::size_t bytes_of(const KaiPod& pod) {
  return sizeof(pod) + meta(pod.meta) + pod.tolerations.capacity() * sizeof(Toleration);
}

std::size_t bytes_of(const KaiConfig& config) {
  return sizeof(config) + meta(config.meta) + texts(config.managers);
}

std::size_t bytes_of(const BindRequest& request) {
  return sizeof(request) + meta(request.meta) + text(request.pod_name) + request.groups.capacity() * sizeof(Interned);
}

std::vector<StoreSize> store_sizes(const World& world) {
  const KaiWorld& kai = world.kai;
  return {{"nodes", world.nodes.size(), bytes_of(world.nodes)},
          {"pods", world.operand_pods.size(), bytes_of(world.operand_pods)},
          {"configmaps", world.configmaps.size(), bytes_of(world.configmaps)},
          {"daemonsets", world.daemonsets.size(), bytes_of(world.daemonsets)},
          {"controllerrevisions", world.revisions.size(), bytes_of(world.revisions)},
          {"clusterpolicies", world.clusterpolicies.size(), bytes_of(world.clusterpolicies)},
          {"deviceclasses", world.device_classes.size(), bytes_of(world.device_classes)},
          {"resourceslices", world.resource_slices.size(), bytes_of(world.resource_slices)},
          {"sharingpolicies", world.policies.size(), bytes_of(world.policies)},
          {"sharingrollouts", world.rollouts.size(), bytes_of(world.rollouts)},
          {"kai-pods", kai.pods.size(), bytes_of(kai.pods)},
          {"configs", kai.configs.size(), bytes_of(kai.configs)},
          {"bindrequests", kai.bind_requests.size(), bytes_of(kai.bind_requests)}};
}

}  // namespace gso
