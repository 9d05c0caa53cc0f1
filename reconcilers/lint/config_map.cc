// ConfigMaps that hold profiles.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"

namespace gso {

namespace {

// k8s.io/apimachinery/pkg/util/validation, IsConfigMapKey. Empty: the API server accepts the key.
std::string config_map_key_problem(std::string_view key) {
  constexpr std::size_t kMostKeyCharacters = 253;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  if (!key.empty() && key.size() <= kMostKeyCharacters && std::ranges::all_of(key, allowed) && key != "." &&
      !key.starts_with("..")) {
    return {};
  }
  return fmt::format(
      "the API server refuses the key \"{}\": a key of a ConfigMap has at most {} letters, digits, '-', '_' and '.', "
      "is not '.', and does not begin with '..'",
      shown_value(key), kMostKeyCharacters);
}

class ConfigMapCheck : DocumentCheck {
 public:
  ConfigMapCheck(const DocumentValue& config_map, std::vector<Diagnostic>& diagnostics)
      : DocumentCheck(diagnostics), config_map_(config_map) {}

  void run() {
    const bool mappings = are_mappings();
    const std::vector<ConfigMapEntry> entries = entries_of(config_map_);
    if (entries.empty() && mappings) add(Severity::warning, "NoProfiles", "data", config_map_.at, std::string(kNoKeys));
    size(entries);
    for (const ConfigMapEntry& each : entries) entry(each);
    name();
  }

 private:
  bool are_mappings() {
    bool mappings = true;
    for (const std::string_view field : {"data", "binaryData"}) {
      const DocumentValue* data = config_map_.find(field);
      if (data == nullptr || data->is_object() || data->is_null()) continue;
      mappings = false;
      add(Severity::error, "WrongType", std::string(field), data->at,
          fmt::format("expected a mapping from keys to profiles, found {}", kind_name(data->kind)));
    }
    return mappings;
  }

  // A single value that is too large is reported as a profile.
  void size(const std::vector<ConfigMapEntry>& entries) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 20;
    std::size_t bytes = 0;
    std::size_t most = 0;
    for (const ConfigMapEntry& each : entries) {
      bytes += each.text.size();
      most = std::max(most, each.text.size());
    }
    if (bytes <= kMostBytes || most > kMostBytes) return;
    add(Severity::error, "TooLarge", "data", config_map_.at,
        fmt::format("the values have {} bytes together, and the API server accepts at most {}", bytes, kMostBytes));
  }

  void entry(const ConfigMapEntry& entry) {
    const DocumentValue* data = config_map_.find("data");
    const std::string& key = entry.member->key;
    const std::string path = (entry.binary ? "binaryData." : "data.") + key;
    if (entry.binary && data != nullptr && data->find(key) != nullptr) {
      add(Severity::error, "KeyTwice", path, entry.member->key_at,
          fmt::format("data also has the key \"{}\", and the API server refuses the ConfigMap; keep one of the two",
                      shown_value(key)));
    }
    if (std::string problem = config_map_key_problem(key); !problem.empty())
      add(Severity::error, "KeyRefused", path, entry.member->key_at, std::move(problem));
    else if (problem = key_label_problem(key); !problem.empty())
      add(Severity::warning, "KeyNoLabelValue", path, entry.member->key_at, std::move(problem));
  }

  void name() {
    const DocumentValue* name = find_path(config_map_, {"metadata", "name"});
    if (name == nullptr || name->text.empty()) return;
    if (const std::string problem = volume_name_problem(name->text); !problem.empty()) {
      add(Severity::info, "NameNoVolumeName", "metadata.name", name->at,
          fmt::format("the GPU Operator names a volume after the ConfigMap, and {}", problem));
    }
  }

  const DocumentValue& config_map_;
};

}  // namespace

bool is_record(const DocumentValue& config_map) {
  const DocumentValue* data = config_map.find("data");
  return data != nullptr && (data->find(kRecordKey) != nullptr || data->find(kShardKey) != nullptr);
}

bool holds_profiles(const DocumentValue& config_map) {
  return std::ranges::any_of(entries_of(config_map), reads_like_profile, &ConfigMapEntry::text);
}

std::vector<ConfigMapEntry> entries_of(const DocumentValue& config_map) {
  std::vector<ConfigMapEntry> out;
  for (const bool binary : {false, true}) {
    for (const DocumentMember& member : members_of(config_map.find(binary ? "binaryData" : "data"))) {
      ConfigMapEntry& entry = out.emplace_back();
      entry.member = &member;
      entry.binary = binary;
      entry.text = member.value.text;
      if (binary) {
        auto decoded = k8s::base64_decode(entry.text);
        entry.readable = decoded.has_value();
        entry.text = decoded ? std::move(*decoded) : std::string();
      }
    }
  }
  return out;
}

void check_config_map(const DocumentValue& config_map, std::vector<Diagnostic>& diagnostics) {
  ConfigMapCheck(config_map, diagnostics).run();
}

// --- Profiles in the values of a Helm chart.

namespace {

enum class Chart { device_plugin, gpu_operator };

bool is_profile(const DocumentMember& member) {
  const DocumentValue& value = member.value;
  if (value.is_string()) return reads_like_profile(value.text);
  return value.find("sharing") != nullptr || value.find("flags") != nullptr;  // Without the "|" after its key.
}

// The `config` of a chart's values.
class ConfigValues : DocumentCheck {
 public:
  // `found` has no content yet.
  ConfigValues(const DocumentValue& config, std::string path, Chart chart, ChartProfiles& found)
      : DocumentCheck(found.diagnostics, std::move(path)), config_(config), chart_(chart), found_(found) {}

  // False: it has no profiles, and names no ConfigMap.
  bool run() {
    const std::string_view field = chart_ == Chart::device_plugin ? "map" : "data";
    const DocumentValue* given = config_.find(field);
    if (given != nullptr && given->is_object()) keys_ = *given;
    std::erase_if(keys_.members, [](const DocumentMember& member) { return member.value.is_null(); });  // As Helm does.
    if (std::ranges::none_of(keys_.members, is_profile)) return names_config_map();
    found_.path = fmt::format("{}.{}", path_, field);
    said_what_is_checked();
    bool is_made = true;
    if (chart_ == Chart::device_plugin) {
      only_one_config_map();
    } else {
      found_.config_map_name = config_.string_at("name");
      is_made = config_map_is_made();
    }
    default_key(is_made);
    check_keys();
    return true;
  }

 private:
  // The key of the default is checked against the ConfigMap, if that is among the objects (lint_cluster).
  bool names_config_map() {
    static constexpr std::string_view kOfOperator[] = {"name", "default", "create", "data"};
    static constexpr std::string_view kOfPlugin[] = {"name", "default", "map", "fallbackStrategies"};
    const bool of_operator = chart_ == Chart::gpu_operator;
    const std::span<const std::string_view> members = of_operator ? std::span(kOfOperator) : std::span(kOfPlugin);
    const auto is_known = [&](const DocumentMember& member) {
      return std::ranges::find(members, member.key) != members.end();
    };
    const std::string_view name = config_.string_at("name");
    const std::string_view key = config_.string_at("default");
    // Every other chart can have a `config` as well.
    const bool of_another = !of_operator && (path_ != "config" || !std::ranges::all_of(config_.members, is_known));
    if ((name.empty() && key.empty()) || of_another) return false;
    found_.config = &config_;
    add(Severity::info, "HelmValues", path_, config_.at,
        fmt::format(
            "these are values of the {} chart: the device plugin will read ConfigMap {} with default key {}. The "
            "ConfigMap must be in the chart's namespace before, and has no effect until the chart is installed; no "
            "other value is checked",
            name_of_chart(), or_none(shown_value(name)), or_none(shown_value(key))));
    if (name.empty())
      add(Severity::warning, "HelmValuesIncomplete", path_ + ".default", config_.find("default")->at,
          fmt::format(
              "{0}.default has no effect without {0}.name: the device plugin reads no ConfigMap then, and shares "
              "no GPU; name the ConfigMap that has key \"{1}\"",
              path_, shown_value(key)));
    for (const DocumentMember& member : config_.members)
      if (!is_known(member))
        report_unknown_field(member, fmt::format("{}.{}", path_, member.key), members, found_.diagnostics);
    return true;
  }

  [[nodiscard]] std::string_view name_of_chart() const {
    return chart_ == Chart::device_plugin ? "device plugin's" : "GPU Operator's";
  }

  void said_what_is_checked() {
    std::vector<std::string> names;
    for (const DocumentMember& member : keys_.members) names.push_back(shown_value(member.key));
    add(Severity::info, "HelmValues", found_.path, keys_.at,
        fmt::format("these are values of the {} chart: {} here ({}) {} checked like {} of a ConfigMap, and no other "
                    "value is checked",
                    name_of_chart(), counted(names.size(), "profile"), first_names(names),
                    names.size() == 1 ? "is" : "are", names.size() == 1 ? "a key" : "keys"));
  }

  void only_one_config_map() {
    const DocumentValue* name = config_.find("name");
    if (name == nullptr || !name->is_string() || name->text.empty()) return;
    add(Severity::error, "HelmValuesRefused", path_ + ".name", name->at,
        fmt::format("{0}.name and {1} are both set, and the chart refuses that; remove {0}.name to use these "
                    "profiles, or {1} to use the ConfigMap \"{2}\"",
                    path_, found_.path, shown_value(name->text)));
  }

  // The chart makes the ConfigMap of these values.
  bool config_map_is_made() {
    const DocumentValue* create = config_.find("create");
    if (create != nullptr && create->boolean) return true;
    add(Severity::warning, "HelmValuesIncomplete", path_ + ".create", create != nullptr ? create->at : config_.at,
        fmt::format("{0}.create is not true here: unless it is set elsewhere, the chart ignores {1}; write create: "
                    "true under {0}",
                    path_, found_.path));
    return false;
  }

  void default_key(bool is_made) {
    const DocumentValue* key = config_.find("default");
    if (key == nullptr || !key->is_string() || key->text.empty() || keys_.find(key->text) != nullptr) return;
    std::vector<std::string_view> names;
    for (const DocumentMember& member : keys_.members) names.emplace_back(member.key);
    const std::string_view near = nearest_word(key->text, names);
    add(is_made ? Severity::error : Severity::warning, is_made ? "DefaultKeyNotFound" : "HelmValuesIncomplete",
        path_ + ".default", key->at,
        fmt::format("{} has no key \"{}\" here: unless it is added elsewhere, the plugin cannot start; {}", found_.path,
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
      if (d.path.starts_with(kData)) d.path.replace(0, kData.size(), found_.path);
      diagnostics_.push_back(std::move(d));
    }
    sort_and_limit(diagnostics_);
  }

  const DocumentValue& config_;
  const Chart chart_;
  DocumentValue keys_;
  ChartProfiles& found_;
};

// `before`: the path of the values, with its dot.
void add_values(const DocumentValue& values, const std::string& before, std::vector<ChartProfiles>& out) {
  const auto add = [&](const DocumentValue* config, std::string_view path, Chart chart) {
    ChartProfiles found;
    if (config != nullptr && ConfigValues(*config, fmt::format("{}{}", before, path), chart, found).run())
      out.push_back(std::move(found));
  };
  add(values.find("config"), "config", Chart::device_plugin);
  add(find_path(values, {"devicePlugin", "config"}), "devicePlugin.config", Chart::gpu_operator);
}

void add_with_subcharts(const DocumentValue& values, const std::string& before, std::vector<ChartProfiles>& out) {
  add_values(values, before, out);
  for (const DocumentMember& member : values.members)
    add_values(member.value, fmt::format("{}{}.", before, member.key), out);
}

void add_at(const DocumentValue* values, std::string_view path, std::vector<ChartProfiles>& out) {
  if (values != nullptr) add_with_subcharts(*values, fmt::format("{}.", path), out);
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
  if (kind == "HelmRelease") add_at(find_path(object, {"spec", "values"}), "spec.values", out);
  if (kind != "Application") return out;
  add_at(find_path(object, {"spec", "source", "helm", "valuesObject"}), "spec.source.helm.valuesObject", out);
  const std::span<const DocumentValue> sources = items_of(find_path(object, {"spec", "sources"}));
  for (std::size_t i = 0; i < sources.size(); ++i)
    add_at(find_path(sources[i], {"helm", "valuesObject"}), fmt::format("spec.sources[{}].helm.valuesObject", i), out);
  return out;
}

}  // namespace gso
