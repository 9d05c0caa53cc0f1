#include "reconcilers/reasons/reason.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "k8sclient/value/json_access.h"

namespace gso {

namespace {

// The fields of Facts, as statuses name them.
template <class FactsOrConst, class Visit>
void for_each_field(FactsOrConst& facts, Visit visit) {
  visit("budgets", facts.budgets);
  visit("holders", facts.holders);
  visit("nodes", facts.nodes);
  visit("until", facts.until);
  visit("podsWithoutController", facts.bare);
  visit("evictionForbiddenBy", facts.annotation);
  visit("podsStayOtherwise", facts.otherwise);
  visit("evictionRefused", facts.refused);
}

}  // namespace

void Facts::add(const Facts& other) {
  for (const std::string& budget : other.budgets)
    if (std::ranges::find(budgets, budget) == budgets.end()) budgets.push_back(budget);
  if (holders.empty()) holders = other.holders;
  if (nodes.empty()) nodes = other.nodes;
  if (until.empty()) until = other.until;
  if (annotation.empty()) annotation = other.annotation;
  bare = bare || other.bare;
  otherwise = otherwise || other.otherwise;
  refused = refused || other.refused;
}

Facts about_nodes(std::vector<std::string> names) {
  constexpr std::size_t kMost = 5;
  names.resize(std::min(names.size(), kMost));
  return {.nodes = std::move(names)};
}

void print_facts(const Facts& facts, nlohmann::json& entry) {
  for_each_field(facts, [&](const char* name, const auto& value) {
    if (value != std::decay_t<decltype(value)>()) entry[name] = value;
  });
}

Facts facts_in(const nlohmann::json& entry) {
  Facts out;
  for_each_field(out, [&]<class Value>(const char* name, Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      value = k8s::flag_at(entry, name);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = k8s::text_at(entry, name);
    } else {
      for (const nlohmann::json& item : k8s::list_at(entry, name))
        if (item.is_string()) value.push_back(item.get<std::string>());
    }
  });
  return out;
}

void erase_facts(nlohmann::json& entry) {
  if (!entry.is_object()) return;  // People can write into a status.
  Facts names;
  for_each_field(names, [&](const char* name, const auto&) { entry.erase(name); });
}

Facts facts_in_status(const nlohmann::json& status, std::string_view code) {
  const nlohmann::json reason = k8s::object_at(status, "reason");
  return k8s::text_at(reason, "code") == code ? facts_in(reason) : Facts();
}

const Facts& Reason::facts() const {
  static const Facts none;
  return facts_ == nullptr ? none : *facts_;
}

}  // namespace gso
