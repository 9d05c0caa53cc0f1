// Metrics of the process: what the kernel counts, and how large the stores are.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "controller/serving/metrics.h"
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

// --- About how much memory the objects of each store use, for metrics and /debug/cache.

struct StoreSize {
  const char* resource;
  std::size_t objects = 0;
  std::size_t bytes = 0;
};
// Of each store that can grow with the cluster, by the mean of a few of its objects: the cost does not grow with the
// fleet. Interned texts are counted elsewhere (gpusharing_interned_bytes).
[[nodiscard]] std::vector<StoreSize> store_sizes(const World& world);

}  // namespace gso
