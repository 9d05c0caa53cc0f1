// Profiles in the values of a Helm chart.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"

namespace gso {
namespace {

enum class Chart { device_plugin, gpu_operator };

bool is_profile(const DocumentMember& member) {
  const DocumentValue& value = member.value;
  if (value.is_string()) return reads_like_profile(value.text);
  return value.find("sharing") != nullptr || value.find("flags") != nullptr;  // Without the "|" after its key.
}

// The `config` of a chart's values.
class ConfigValues {
 public:
  ConfigValues(const DocumentValue& config, std::string path, Chart chart)
      : config_(config), path_(std::move(path)), chart_(chart) {}

  void add_to(std::vector<ChartProfiles>& out) {
    const std::string_view field = chart_ == Chart::device_plugin ? "map" : "data";
    const DocumentValue* given = config_.find(field);
    if (given == nullptr || !given->is_object()) return;
    keys_ = *given;
    std::erase_if(keys_.members, [](const DocumentMember& member) { return member.value.is_null(); });  // As Helm does.
    if (std::ranges::none_of(keys_.members, is_profile)) return;
    map_path_ = fmt::format("{}.{}", path_, field);
    found_.path = map_path_;
    said_what_is_checked();
    if (chart_ == Chart::device_plugin) {
      only_one_config_map();
    } else {
      found_.config_map_name = config_.string_at("name");
      config_map_is_made();
    }
    default_key();
    check_keys();
    out.push_back(std::move(found_));
  }

 private:
  void add(Severity severity, std::string code, std::string path, Position at, std::string message) {
    found_.diagnostics.push_back({severity, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  }

  void said_what_is_checked() {
    std::vector<std::string> names;
    for (const DocumentMember& member : keys_.members) names.push_back(shown_value(member.key));
    add(Severity::info, "HelmValues", map_path_, keys_.at,
        fmt::format("these are values of the {} chart: {} here ({}) {} checked like {} of a ConfigMap, and no other "
                    "value is checked",
                    chart_ == Chart::device_plugin ? "device plugin's" : "GPU Operator's",
                    counted(names.size(), "profile"), first_names(names), names.size() == 1 ? "is" : "are",
                    names.size() == 1 ? "a key" : "keys"));
  }

  void only_one_config_map() {
    const DocumentValue* name = config_.find("name");
    if (name == nullptr || !name->is_string() || name->text.empty()) return;
    add(Severity::error, "HelmValuesRefused", path_ + ".name", name->at,
        fmt::format("{0}.name and {1} are both set, and the chart refuses that; remove {0}.name to use these "
                    "profiles, or {1} to use the ConfigMap \"{2}\"",
                    path_, map_path_, shown_value(name->text)));
  }

  void config_map_is_made() {
    const DocumentValue* create = config_.find("create");
    if (create != nullptr && create->boolean) return;
    add(Severity::warning, "HelmValuesIncomplete", path_ + ".create", create != nullptr ? create->at : config_.at,
        fmt::format("{0}.create is not true here: unless it is set elsewhere, the chart ignores {1}; write create: "
                    "true under {0}",
                    path_, map_path_));
  }

  void default_key() {
    const DocumentValue* key = config_.find("default");
    if (key == nullptr || !key->is_string() || key->text.empty() || keys_.find(key->text) != nullptr) return;
    std::vector<std::string_view> names;
    for (const DocumentMember& member : keys_.members) names.emplace_back(member.key);
    const std::string_view near = nearest_word(key->text, names);
    add(Severity::warning, "HelmValuesIncomplete", path_ + ".default", key->at,
        fmt::format("{} has no key \"{}\" here: unless it is added elsewhere, the plugin cannot start; {}", map_path_,
                    shown_value(key->text),
                    near.empty() ? "name a key that exists" : fmt::format("did you mean \"{}\"?", shown_value(near))));
  }

  // What the API server refuses, and keys that no label can name.
  void check_keys() {
    DocumentValue& config_map = found_.config_map;
    config_map.kind = DocumentValue::Kind::object;
    config_map.at = keys_.at;
    config_map.members.push_back({"data", keys_.at, keys_});
    std::vector<Diagnostic> of_config_map;
    check_config_map(config_map, of_config_map);
    constexpr std::string_view kData = "data";
    for (Diagnostic& d : of_config_map) {
      if (d.path.starts_with(kData)) d.path.replace(0, kData.size(), map_path_);
      found_.diagnostics.push_back(std::move(d));
    }
    sort_and_limit(found_.diagnostics);
  }

  const DocumentValue& config_;
  const std::string path_;
  const Chart chart_;
  std::string map_path_;
  DocumentValue keys_;
  ChartProfiles found_;
};

// `before`: the path of the values, with its dot.
void add_values(const DocumentValue& values, const std::string& before, std::vector<ChartProfiles>& out) {
  if (const DocumentValue* config = values.find("config"))
    ConfigValues(*config, before + "config", Chart::device_plugin).add_to(out);
  const DocumentValue* plugin = values.find("devicePlugin");
  const DocumentValue* config = plugin == nullptr ? nullptr : plugin->find("config");
  if (config != nullptr) ConfigValues(*config, before + "devicePlugin.config", Chart::gpu_operator).add_to(out);
}

void add_with_subcharts(const DocumentValue& values, const std::string& before, std::vector<ChartProfiles>& out) {
  add_values(values, before, out);
  for (const DocumentMember& member : values.members)
    add_values(member.value, fmt::format("{}{}.", before, member.key), out);
}

void add_at(const DocumentValue* values, std::string_view path, std::vector<ChartProfiles>& out) {
  if (values != nullptr) add_with_subcharts(*values, fmt::format("{}.", path), out);
}

// Of an Application of Argo CD.
void add_source(const DocumentValue& source, const std::string& path, std::vector<ChartProfiles>& out) {
  const DocumentValue* helm = source.find("helm");
  if (helm != nullptr) add_at(helm->find("valuesObject"), path + ".helm.valuesObject", out);
}

}  // namespace

std::vector<ChartProfiles> chart_profiles(const DocumentValue& document) {
  std::vector<ChartProfiles> out;
  // A profile, be it with fields that the plugin does not know.
  if (document.find("sharing") == nullptr && document.find("flags") == nullptr) add_with_subcharts(document, "", out);
  return out;
}

std::vector<ChartProfiles> release_profiles(const DocumentValue& object) {
  std::vector<ChartProfiles> out;
  const std::string_view kind = object.string_at("kind");
  const DocumentValue* spec = object.find("spec");
  if (spec == nullptr) return out;
  if (kind == "HelmRelease") add_at(spec->find("values"), "spec.values", out);
  if (kind != "Application") return out;
  if (const DocumentValue* source = spec->find("source")) add_source(*source, "spec.source", out);
  const DocumentValue* sources = spec->find("sources");
  for (std::size_t i = 0; sources != nullptr && i < sources->items.size(); ++i)
    add_source(sources->items[i], fmt::format("spec.sources[{}]", i), out);
  return out;
}

}  // namespace gso
