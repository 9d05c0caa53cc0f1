// Counts and percentages of rollout_spec.h, and what policy.h reads in policies and statuses.
#include "reconcilers/model/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <ranges>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

std::int64_t IntOrPercent::of(std::int64_t total) const {
  if (value <= 0 || total <= 0) return 0;
  if (!percent) return value;
  // Rounds up; split so that a percentage of a huge set cannot overflow.
  return total / 100 * value + (total % 100 * value + 99) / 100;
}

std::optional<IntOrPercent> IntOrPercent::parse(std::string_view text) {
  IntOrPercent out{.percent = text.ends_with('%')};
  if (out.percent) text.remove_suffix(1);
  out.value = whole_number(text).value_or(-1);
  return out.value >= 0 && (!out.percent || out.value <= 100) ? std::optional(out) : std::nullopt;
}

std::string IntOrPercent::to_string() const {
  return fmt::format("{}{}", value, percent ? "%" : "");
}

PolicyMode PlannerSettings::mode_of(const SharingPolicy& policy) const {
  return std::max(policy.mode, rollouts);
}

bool has_stop(const SharingPolicy& policy) {
  return policy.mode != PolicyMode::enforce || policy.rollout.paused || !policy.rollout.windows.empty();
}

std::string stops_of(const SharingPolicy& policy) {
  std::vector<std::string_view> out;
  if (policy.mode == PolicyMode::observe) out.emplace_back("mode Observe");
  if (policy.mode == PolicyMode::approve) out.emplace_back("mode Approve");
  if (policy.rollout.paused) out.emplace_back("paused");
  if (!policy.rollout.windows.empty()) out.emplace_back("maintenance windows");
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string_view retry_of(const SharingPolicy& policy) {
  return policy.meta.annotations.get(kRetryAnnotation).value_or("");
}

bool is_undone(const SharingRollout& rollout) {
  return rollout.meta.annotations.get(kUndoAnnotation) == "true";
}

bool is_retried(const SharingRollout& rollout, const SharingPolicy& policy) {
  const std::string uid = rollout.meta.uid;
  if (!(rollout.aborted || is_undone(rollout)) || uid.empty()) return false;
  const std::string_view retried = policy.meta.annotations.get(kRetriedRolloutsAnnotation).value_or("");
  return std::ranges::any_of(std::views::split(retried, ','),
                             [&](auto one) { return std::string_view(one.begin(), one.end()) == uid; });
}

bool has_ended(std::string_view phase) {
  return phase == "Completed" || phase == "Superseded" || phase == "Failed" || phase == "RolledBack";
}

using Json = nlohmann::json;

Json parse_status(std::string_view text) {
  Json status = Json::parse(text, nullptr, false);
  return status.is_object() ? std::move(status) : Json::object();
}

Json condition_in(const Json& status, std::string_view type) {
  const Json* list = member_at(status, "conditions");
  if (list == nullptr || !list->is_array()) return {};
  const auto known =
      std::ranges::find_if(*list, [&](const Json& condition) { return text_at(condition, "type") == type; });
  return known == list->end() ? Json() : *known;
}

std::string since_when(const Json& status, std::string_view type) {
  return text_at(condition_in(status, type), "lastTransitionTime");
}

std::string false_condition(const Json& status, std::string_view type) {
  const Json known = condition_in(status, type);
  if (known.is_null() || text_at(known, "status") == "True") return {};
  return text_at(known, "reason") + ": " + text_at(known, "message");
}

bool says_no(std::string_view value) {
  std::string lower(value);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower == "false" || lower == "0" || lower == "no" || lower == "off";
}

bool is_switched_on(std::optional<std::string_view> value) {
  return value && !value->empty() && !says_no(*value);
}

}  // namespace gso
