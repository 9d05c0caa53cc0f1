// Phases and conditions in status texts.
#include <nlohmann/json.hpp>

#include "reconcilers/rollout/status.h"

namespace gso {

using Json = nlohmann::json;

namespace {

const Json* find_condition(const Json& status, std::string_view type) {
  auto list = status.find("conditions");
  if (list == status.end() || !list->is_array()) return nullptr;
  for (const Json& condition : *list) {
    if (condition.is_object() && condition.value("type", "") == type) return &condition;
  }
  return nullptr;
}

}  // namespace

bool has_ended(std::string_view phase) {
  return phase == "Completed" || phase == "Superseded" || phase == "Failed" || phase == "RolledBack";
}

Json condition_list(const std::vector<StatusCondition>& conditions, std::string_view before, std::int64_t generation,
                    WallTime now) {
  const Json old = Json::parse(before, nullptr, false);
  Json out = Json::array();
  for (const StatusCondition& condition : conditions) {
    const std::string status = condition.holds ? "True" : "False";
    std::string since = k8s::format_time(now);
    const Json* known = old.is_object() ? find_condition(old, condition.type) : nullptr;
    if (known && known->value("status", "") == status) since = known->value("lastTransitionTime", since);
    Json entry = {{"type", condition.type},
                  {"status", status},
                  {"reason", condition.reason},
                  {"message", condition.message},
                  {"lastTransitionTime", since}};
    if (generation > 0) entry["observedGeneration"] = generation;
    out.push_back(std::move(entry));
  }
  return out;
}

std::string since_when(const Json& status, std::string_view type) {
  const Json* known = find_condition(status, type);
  return known == nullptr ? std::string() : known->value("lastTransitionTime", "");
}

std::string false_condition(std::string_view status, std::string_view type) {
  const Json old = Json::parse(status, nullptr, false);
  const Json* known = old.is_object() ? find_condition(old, type) : nullptr;
  if (known == nullptr || known->value("status", "") == "True") return {};
  return known->value("reason", "") + ": " + known->value("message", "");
}

}  // namespace gso
