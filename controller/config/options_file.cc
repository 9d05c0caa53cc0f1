// Settings as texts: the --config file (one YAML mapping of the names in option_specs()), the record of those that the
// operator plans by, and names that are none.
#include "controller/config/options.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

std::string unknown_key(std::string_view name) {
  std::vector<std::string> words;
  for (const OptionSpec& spec : option_specs()) words.push_back(spec.name);
  return fmt::format("unknown setting '{}'{}", name, did_you_mean(name, words));
}

bool is_of_a_service(std::string_view variable) {
  return variable.ends_with("_SERVICE_HOST") || variable.find("_SERVICE_PORT") != std::string_view::npos ||
         variable.ends_with("_PORT") || variable.find("_PORT_") != std::string_view::npos;
}

std::string apply_entry(Options& options, const YAML::Node& key, const YAML::Node& value,
                        const std::vector<std::string>& keep) {
  if (!key.IsScalar()) return "a setting's name must be a word";
  const std::string& name = key.Scalar();
  const OptionSpec* spec = find_option(name);
  if (spec == nullptr) return unknown_key(name);
  if (!value.IsScalar()) return fmt::format("{}: expected a single value ({})", name, spec->type);
  Options unused;
  const bool kept = std::find(keep.begin(), keep.end(), name) != keep.end();
  const std::string wrong = spec->set(kept ? unused : options, value.Scalar());
  return wrong.empty() ? wrong : fmt::format("{}: {}", name, wrong);
}

}  // namespace

std::vector<std::string> unknown_variables(const std::vector<std::string>& environment) {
  std::vector<std::string> known{"GSO_CONFIG"};
  for (const OptionSpec& spec : option_specs()) known.push_back(spec.environment());
  std::vector<std::string> out;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (!name.starts_with("GSO_") || is_of_a_service(name) || std::ranges::find(known, name) != known.end()) continue;
    out.push_back(
        fmt::format("{} in the environment is not a setting and is ignored{}", name, did_you_mean(name, known)));
  }
  return out;
}

k8s::Result<void> apply_config_file(Options& options, std::string_view file_name, std::string_view text,
                                    const std::vector<std::string>& keep) {
  const auto fail = [&](const YAML::Mark& mark, const std::string& what) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}:{}:{}: {}", file_name, std::max(mark.line, -1) + 1,
                                                       std::max(mark.column, -1) + 1, what));
  };
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return {};
    if (!root.IsMap()) return fail(root.Mark(), "expected a mapping of settings, such as 'settle-period: 10s'");
    std::vector<std::string> seen;
    for (const auto& entry : root) {
      std::string wrong = apply_entry(options, entry.first, entry.second, keep);
      if (wrong.empty() && std::find(seen.begin(), seen.end(), entry.first.Scalar()) != seen.end())
        wrong = fmt::format("'{}' is set twice", entry.first.Scalar());
      if (!wrong.empty()) return fail(entry.first.Mark(), wrong);
      seen.push_back(entry.first.Scalar());
    }
  } catch (const YAML::Exception& e) {
    return fail(e.mark, e.msg);
  }
  return {};
}

std::string print_operator_options(const Options& options) {
  const Options defaults;
  nlohmann::json out = nlohmann::json::object();
  for (const OptionSpec& spec : option_specs()) {
    if (!spec.planned_by) continue;
    std::string value = spec.get(options);
    if (value != spec.get(defaults)) out[spec.name] = std::move(value);
  }
  return out.empty() ? std::string() : out.dump();
}

PlannerSettings settings_of_operator(const World& world, const PlannerSettings& own) {
  const ConfigMap* state = world.configmaps.find(state_key(own));
  const auto text = key_text(state, kOptionsKey);
  if (!text || text->empty()) return own;
  const nlohmann::json given = nlohmann::json::parse(*text, nullptr, false);
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
