// The metrics of the operator's own process, named as the Prometheus client libraries name them.
#pragma once

#include <cstddef>
#include <string_view>

#include "controller/serving/metrics.h"

namespace gso {

// process_*: resident memory, CPU time, start time and open files of this process, read from /proc.
void fill_process_metrics(Metrics& metrics);
// Resident set in bytes; 0 where /proc is not readable.
[[nodiscard]] std::size_t resident_bytes();
// When a process was started, in seconds since the Unix epoch, from its /proc/<pid>/stat and the system's /proc/stat
// (proc(5)). 0: one of them cannot be read.
[[nodiscard]] double start_time(std::string_view process_stat, std::string_view system_stat, double ticks_per_second);

}  // namespace gso
