#include "controller/config/operator_options.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"

namespace gso {

using Json = nlohmann::json;

std::string print_operator_options(const Options& options) {
  const Options defaults;
  Json out = Json::object();
  for (const OptionSpec& spec : option_specs()) {
    if (!spec.planned_by) continue;
    std::string value = spec.get(options);
    if (value != spec.get(defaults)) out[spec.name] = std::move(value);
  }
  return out.empty() ? std::string() : out.dump();
}

PlannerSettings settings_of_operator(const World& world, const PlannerSettings& own) {
  const ConfigMap* state = world.configmaps.find(state_key(own));
  if (state == nullptr) return own;
  const auto text = state->data.find(std::string(kOptionsKey));
  if (text == state->data.end() || !text->second || text->second->empty()) return own;
  const Json given = Json::parse(*text->second, nullptr, false);
  if (!given.is_object()) return own;
  Options options;
  for (const OptionSpec& spec : option_specs()) {
    const auto value = given.find(spec.name);
    if (!spec.planned_by || value == given.end() || !value->is_string()) continue;
    Options tried = options;
    if (spec.set(tried, value->get<std::string>()).empty()) options = std::move(tried);
  }
  PlannerSettings out = options.planner_settings();
  out.operator_namespace = own.operator_namespace;
  out.state_config_map = own.state_config_map;
  out.adopt_drift = own.adopt_drift;
  out.kai.explain_all = own.kai.explain_all;
  return out;
}

}  // namespace gso
