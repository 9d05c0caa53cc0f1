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
#include <map>
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

std::size_t texts(const std::map<std::string, std::string>& map) {
  std::size_t out = 0;
  for (const auto& [key, value] : map) out += kTreeNode + 2 * sizeof(std::string) + text(key) + text(value);
  return out;
}

std::size_t containers(const std::vector<ContainerSpec>& list) {
  std::size_t out = 0;
  for (const ContainerSpec& spec : list) {
    out += sizeof(spec) + text(spec.name) + text(spec.image) + texts(spec.env) + texts(spec.volume_mounts);
    for (const std::string& word : spec.command) out += sizeof(word) + text(word);
  }
  return out;
}

// What an object owns beside its metadata: of most kinds nothing.
template <class T>
std::size_t owned_by(const T& /*object*/) {
  return 0;
}

std::size_t owned_by(const Node& node) {
  return node.taints.capacity() * sizeof(Taint) +
         (node.capacity.size() + node.allocatable.size()) * sizeof(ResourceCounts::Entry);
}

std::size_t owned_by(const Pod& pod) {
  return pod.containers.capacity() * sizeof(ContainerStatus) + pod.init_containers.size() * sizeof(ContainerStatus) +
         pod.gpu_requests.size() * sizeof(ResourceCounts::Entry);
}

std::size_t owned_by(const ConfigMap& config_map) {
  std::size_t out = 0;
  for (const auto& [key, value] : config_map.data)
    out += kTreeNode + sizeof(std::string) + text(key) + (value == nullptr ? 0 : sizeof(std::string) + text(*value));
  return out;
}

std::size_t owned_by(const DaemonSet& daemonset) {
  return texts(daemonset.match_labels) + texts(daemonset.node_selector) + texts(daemonset.configmap_volumes) +
         containers(daemonset.containers) + containers(daemonset.init_containers);
}

std::size_t owned_by(const ClusterPolicy& policy) {
  return text(policy.config_name) + text(policy.config_default);
}

std::size_t owned_by(const SharingPolicy& policy) {
  return text(policy.status_json);
}

std::size_t owned_by(const SharingRollout& rollout) {
  return text(rollout.profile) + text(rollout.status_json) + text(rollout.config_map) + text(rollout.to_revision);
}

std::size_t owned_by(const KaiPod& pod) {
  return pod.tolerations.capacity() * sizeof(Toleration);
}

std::size_t owned_by(const KaiConfig& config) {
  return texts(config.managers);
}

std::size_t owned_by(const BindRequest& request) {
  return text(request.pod_name) + request.groups.capacity() * sizeof(Interned);
}

template <class T>
StoreSize size_of(const char* resource, const k8s::Store<T>& store) {
  constexpr std::size_t kSampled = 200;
  constexpr std::size_t kEntry = sizeof(typename k8s::Store<T>::Ptr) + kTreeNode;
  std::size_t sampled = 0;
  std::size_t bytes = 0;
  for (const auto& [key, object] : store.all()) {
    bytes += sizeof(T) + meta(object->meta) + owned_by(*object) + kEntry;
    if (++sampled == kSampled) break;
  }
  return {resource, store.size(), sampled == 0 ? 0 : bytes / sampled * store.size()};
}

}  // namespace

std::vector<StoreSize> store_sizes(const World& world) {
  return {size_of("nodes", world.nodes),
          size_of("pods", world.operand_pods),
          size_of("configmaps", world.configmaps),
          size_of("daemonsets", world.daemonsets),
          size_of("controllerrevisions", world.revisions),
          size_of("clusterpolicies", world.clusterpolicies),
          size_of("deviceclasses", world.device_classes),
          size_of("resourceslices", world.resource_slices),
          size_of("sharingpolicies", world.policies),
          size_of("sharingrollouts", world.rollouts),
          size_of("kai-pods", world.kai.pods),
          size_of("configs", world.kai.configs),
          size_of("bindrequests", world.kai.bind_requests)};
}

}  // namespace gso
