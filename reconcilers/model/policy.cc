// Counts and percentages of policy.h.
#include "reconcilers/model/policy.h"

#include <fmt/format.h>

#include <charconv>

#include "reconcilers/model/labels.h"

namespace gso {

std::int64_t IntOrPercent::of(std::int64_t total) const {
  if (value <= 0 || total <= 0) return 0;
  if (!percent) return value;
  // Rounds up; split so that a percentage of a huge set cannot overflow.
  return total / 100 * value + (total % 100 * value + 99) / 100;
}

std::optional<IntOrPercent> IntOrPercent::parse(std::string_view text) {
  IntOrPercent out;
  out.percent = text.ends_with('%');
  if (out.percent) text.remove_suffix(1);
  const char* end = text.data() + text.size();
  auto [rest, code] = std::from_chars(text.data(), end, out.value);
  if (code != std::errc{} || rest != end || out.value < 0 || (out.percent && out.value > 100)) return std::nullopt;
  return out;
}

std::string IntOrPercent::to_string() const {
  return fmt::format("{}{}", value, percent ? "%" : "");
}

bool has_stop(const SharingPolicy& policy) {
  return policy.mode != PolicyMode::enforce || policy.rollout.paused || !policy.rollout.windows.empty();
}

std::string stops_of(const SharingPolicy& policy) {
  std::string out;
  const auto add = [&](std::string_view stop) { out += fmt::format("{}{}", out.empty() ? "" : ", ", stop); };
  if (policy.mode == PolicyMode::observe) add("mode Observe");
  if (policy.mode == PolicyMode::approve) add("mode Approve");
  if (policy.rollout.paused) add("paused");
  if (!policy.rollout.windows.empty()) add("maintenance windows");
  return out;
}

std::string_view retry_of(const SharingPolicy& policy) {
  return policy.meta.annotations.get(kRetryAnnotation).value_or("");
}

bool is_undone(const SharingRollout& rollout) {
  return rollout.meta.annotations.get(kUndoAnnotation) == "true";
}

bool has_ended(std::string_view phase) {
  return phase == "Completed" || phase == "Superseded" || phase == "Failed" || phase == "RolledBack";
}

}  // namespace gso
