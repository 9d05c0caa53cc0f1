// The metrics of the operator's own process: memory, CPU time, start time, open files.
#include "controller/serving/process_metrics.h"

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

}  // namespace gso
