#include "reconcilers/model/conditions.h"

#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"

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

}  // namespace gso
