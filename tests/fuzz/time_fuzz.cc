// Any bytes as a timestamp and as a duration: no crash, and what is accepted stays the same when it is written and read
// again, except that Kubernetes' timestamps have no milliseconds.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "k8sclient/value/time.h"

namespace {

void read_time(std::string_view text) {
  const std::optional<k8s::WallTime> time = k8s::parse_rfc3339(text);
  if (!time) return;
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(*time));
  if (date.year() < std::chrono::year(0) || date.year() > std::chrono::year(9999)) return;  // By its offset.
  if (k8s::parse_rfc3339(k8s::format_micro_time(*time)) != *time) std::abort();
  if (k8s::parse_rfc3339(k8s::format_time(*time)) != std::chrono::floor<std::chrono::seconds>(*time)) std::abort();
}

void read_duration(std::string_view text) {
  const std::optional<k8s::Duration> duration = k8s::parse_go_duration(text);
  if (duration && k8s::parse_go_duration(k8s::format_go_duration(*duration)) != *duration) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_time(text);
  read_duration(text);
  return 0;
}
