// Phases and conditions in status texts.
#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/status/status.h"

namespace gso {

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

bool has_ended(std::string_view phase) {
  return phase == "Completed" || phase == "Superseded" || phase == "Failed" || phase == "RolledBack";
}

std::string_view mode_name(PolicyMode mode) {
  return mode == PolicyMode::observe ? "Observe" : mode == PolicyMode::approve ? "Approve" : "Enforce";
}

void close_counts(Json& status) {
  if (const auto counts = status.find("counts"); counts != status.end() && counts->is_object()) {
    for (const char* field : {"inFlight", "pending", "blocked"}) (*counts)[field] = 0;
  }
  const auto nodes = status.find("nodes");
  if (nodes == status.end() || !nodes->is_array()) return;
  Json failed = Json::array();
  for (Json& node : *nodes) {
    if (text_at(node, "state") == kStateFailed) failed.push_back(std::move(node));
  }
  if (failed.empty()) {
    status.erase("nodes");
  } else {
    *nodes = std::move(failed);
  }
}

Json condition_list(const std::vector<StatusCondition>& conditions, std::string_view before, std::int64_t generation,
                    WallTime now) {
  const Json old = Json::parse(before, nullptr, false);
  Json out = Json::array();
  for (const StatusCondition& condition : conditions) {
    const std::string status = condition.unknown ? "Unknown" : condition.holds ? "True" : "False";
    std::string since = k8s::format_time(now);
    const Json* known = old.is_object() ? find_condition(old, condition.type) : nullptr;
    if (known && text_at(*known, "status") == status) since = text_at(*known, "lastTransitionTime", since);
    Json entry = {{"type", condition.type},
                  {"status", status},
                  {"reason", condition.reason},
                  {"message", cut_message(condition.message)},
                  {"lastTransitionTime", since}};
    if (generation > 0) entry["observedGeneration"] = generation;
    out.push_back(std::move(entry));
  }
  return out;
}

Json condition_in(const Json& status, std::string_view type) {
  const Json* known = status.is_object() ? find_condition(status, type) : nullptr;
  return known == nullptr ? Json() : *known;
}

std::string since_when(const Json& status, std::string_view type) {
  const Json* known = find_condition(status, type);
  return known == nullptr ? std::string() : text_at(*known, "lastTransitionTime");
}

std::string false_condition(std::string_view status, std::string_view type) {
  const Json old = Json::parse(status, nullptr, false);
  const Json* known = old.is_object() ? find_condition(old, type) : nullptr;
  if (known == nullptr || text_at(*known, "status") == "True") return {};
  return text_at(*known, "reason") + ": " + text_at(*known, "message");
}

}  // namespace gso
