// Counts and percentages of policy.h.
#include "reconcilers/model/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
  IntOrPercent out;
  out.percent = text.ends_with('%');
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

using Json = nlohmann::json;

namespace {

const Json* find_condition(const Json& status, std::string_view type) {
  auto list = status.find("conditions");
  if (list == status.end() || !list->is_array()) return nullptr;
  for (const Json& condition : *list) {
    if (text_at(condition, "type") == type) return &condition;
  }
  return nullptr;
}

}  // namespace

Json parse_status(std::string_view text) {
  Json status = Json::parse(text, nullptr, false);
  return status.is_object() ? std::move(status) : Json::object();
}

Json condition_in(const Json& status, std::string_view type) {
  const Json* known = status.is_object() ? find_condition(status, type) : nullptr;
  return known == nullptr ? Json() : *known;
}

std::string since_when(const Json& status, std::string_view type) {
  const Json* known = find_condition(status, type);
  return known == nullptr ? std::string() : text_at(*known, "lastTransitionTime");
}

std::string false_condition(const Json& status, std::string_view type) {
  const Json* known = status.is_object() ? find_condition(status, type) : nullptr;
  if (known == nullptr || text_at(*known, "status") == "True") return {};
  return text_at(*known, "reason") + ": " + text_at(*known, "message");
}

namespace {

// `word` is in lower case.
bool is_word(std::string_view value, std::string_view word) {
  return std::ranges::equal(value, word, [](char given, char wanted) {
    const bool upper = given >= 'A' && given <= 'Z';
    return (upper ? static_cast<char>(given - 'A' + 'a') : given) == wanted;
  });
}

}  // namespace

bool says_no(std::string_view value) {
  constexpr std::string_view kNo[] = {"false", "0", "no", "off"};
  return std::ranges::any_of(kNo, [&](std::string_view word) { return is_word(value, word); });
}

bool is_switched_on(std::optional<std::string_view> value) {
  return value && !value->empty() && !says_no(*value);
}

}  // namespace gso
