// Any bytes as a timestamp, as a duration and as a label selector: no crash, and what is accepted stays the same when
// it is written and read again, except that Kubernetes' timestamps have no milliseconds.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"
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

void read_labels(std::string_view text) {
  const k8s::Result<k8s::LabelSelector> selector = k8s::LabelSelector::parse(text);
  if (!selector) return;
  const std::string once = selector->to_string();
  const k8s::Result<k8s::LabelSelector> again = k8s::LabelSelector::parse(once);
  if (!again || again->to_string() != once) std::abort();
  // An object that has every label with the value that is asked for, and one that has none.
  k8s::StringMap labels;
  for (const auto& [key, value] : selector->match_labels) labels.set(key, value);
  for (const k8s::LabelRequirement& requirement : selector->match_expressions)
    if (!requirement.values.empty()) labels.set(requirement.key, requirement.values.front());
  if (selector->matches(labels) != again->matches(labels)) std::abort();
  if (selector->matches({}) != again->matches({})) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_time(text);
  read_duration(text);
  read_labels(text);
  return 0;
}
