// Metrics of the process: what the kernel counts, and how large the stores are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/serving/metrics.h"
#include "k8sclient/watch/store.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- The metrics of the operator's own process, named as the Prometheus client libraries name them.

// process_*: resident memory, CPU time, start time and open files of this process, read from /proc.
void fill_process_metrics(Metrics& metrics);
// The memory limit in the texts of a control group's memory.max and memory.limit_in_bytes (versions 2 and 1; empty:
// not there), in bytes. Empty: no limit.
[[nodiscard]] std::optional<std::size_t> memory_limit(std::string_view version_2, std::string_view version_1);
// The most bytes that one answer of the API server may have: an eighth of this process's memory limit, 32 MiB at most
// and without a limit.
[[nodiscard]] std::size_t largest_answer();
// Resident set in bytes; 0 where /proc is not readable.
[[nodiscard]] std::size_t resident_bytes();
// When a process was started, in seconds since the Unix epoch, from its /proc/<pid>/stat and the system's /proc/stat
// (proc(5)). 0: one of them cannot be read.
[[nodiscard]] double start_time(std::string_view process_stat, std::string_view system_stat, double ticks_per_second);

// --- About how much memory the objects of a store use: for metrics and /debug/cache.

// One object with what it holds; interned texts are counted elsewhere (gpusharing_interned_bytes).
[[nodiscard]] std::size_t bytes_of(const Node& node);
[[nodiscard]] std::size_t bytes_of(const Pod& pod);
[[nodiscard]] std::size_t bytes_of(const ConfigMap& config_map);
[[nodiscard]] std::size_t bytes_of(const DaemonSet& daemonset);
[[nodiscard]] std::size_t bytes_of(const ControllerRevision& revision);
[[nodiscard]] std::size_t bytes_of(const ClusterPolicy& policy);
[[nodiscard]] std::size_t bytes_of(const DeviceClass& device_class);
[[nodiscard]] std::size_t bytes_of(const ResourceSlice& slice);
[[nodiscard]] std::size_t bytes_of(const SharingPolicy& policy);
[[nodiscard]] std::size_t bytes_of(const SharingRollout& rollout);
[[nodiscard]] std::size_t bytes_of(const KaiPod& pod);
[[nodiscard]] std::size_t bytes_of(const KaiConfig& config);
[[nodiscard]] std::size_t bytes_of(const BindRequest& request);

// Of a whole store, by the mean of a few of its objects: the cost does not grow with the fleet.
template <class T>
[[nodiscard]] std::size_t bytes_of(const k8s::Store<T>& store) {
  constexpr std::size_t kSampled = 200;
  constexpr std::size_t kEntry = sizeof(typename k8s::Store<T>::Ptr) + 4 * sizeof(void*);
  std::size_t sampled = 0;
  std::size_t bytes = 0;
  for (const auto& [key, object] : store.all()) {
    bytes += bytes_of(*object) + kEntry;
    if (++sampled == kSampled) break;
  }
  return sampled == 0 ? 0 : bytes / sampled * store.size();
}

struct StoreSize {
  const char* resource;
  std::size_t objects = 0;
  std::size_t bytes = 0;
};
// Of each store that can grow with the cluster.
[[nodiscard]] std::vector<StoreSize> store_sizes(const World& world);

}  // namespace gso
