// ConfigMaps that hold profiles.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "k8sclient/value/base64.h"
#include "reconcilers/checks/config_map_checks.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"

namespace gso {

namespace {

// k8s.io/apimachinery/pkg/util/validation, IsConfigMapKey. Empty: the API server accepts the key.
std::string config_map_key_problem(std::string_view key) {
  constexpr std::size_t kMostCharacters = 253;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  if (!key.empty() && key.size() <= kMostCharacters && std::ranges::all_of(key, allowed) && key != "." &&
      !key.starts_with("..")) {
    return {};
  }
  return fmt::format(
      "the API server refuses the key \"{}\": a key of a ConfigMap has at most {} letters, digits, '-', '_' and '.', "
      "is not '.', and does not begin with '..'",
      shown_value(key), kMostCharacters);
}

}  // namespace

bool is_record(const DocumentValue& config_map) {
  const DocumentValue* data = config_map.find("data");
  return data != nullptr && (data->find(kRecordKey) != nullptr || data->find(kShardKey) != nullptr);
}

bool holds_profiles(const DocumentValue& config_map) {
  const std::vector<ConfigMapEntry> entries = entries_of(config_map);
  return std::any_of(entries.begin(), entries.end(),
                     [](const ConfigMapEntry& entry) { return reads_like_profile(entry.text); });
}

std::vector<ConfigMapEntry> entries_of(const DocumentValue& config_map) {
  std::vector<ConfigMapEntry> out;
  for (const bool binary : {false, true}) {
    const DocumentValue* data = config_map.find(binary ? "binaryData" : "data");
    if (data == nullptr) {
      continue;
    }
    for (const DocumentMember& member : data->members) {
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
  const auto add = [&](Diagnostic::Severity severity, std::string code, std::string path, Position at,
                       std::string message) {
    diagnostics.push_back({severity, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  };
  bool mappings = true;
  for (const std::string_view field : {"data", "binaryData"}) {
    const DocumentValue* data = config_map.find(field);
    if (data != nullptr && !data->is_object() && !data->is_null()) {
      mappings = false;
      add(Diagnostic::Severity::error, "WrongType", std::string(field), data->at,
          fmt::format("expected a mapping from keys to profiles, found {}", kind_name(data->kind)));
    }
  }
  const std::vector<ConfigMapEntry> entries = entries_of(config_map);
  if (entries.empty() && mappings) {
    add(Diagnostic::Severity::warning, "NoProfiles", "data", config_map.at, std::string(kNoKeys));
  }
  const DocumentValue* data = config_map.find("data");
  for (const ConfigMapEntry& entry : entries) {
    const std::string& key = entry.member->key;
    if (entry.binary && data != nullptr && data->find(key) != nullptr) {
      add(Diagnostic::Severity::error, "KeyTwice", "binaryData." + key, entry.member->key_at,
          fmt::format("data also has the key \"{}\", and the API server refuses the ConfigMap; keep one of the two",
                      shown_value(key)));
    }
    if (std::string problem = config_map_key_problem(key); !problem.empty()) {
      add(Diagnostic::Severity::error, "KeyRefused", (entry.binary ? "binaryData." : "data.") + key,
          entry.member->key_at, std::move(problem));
    } else if (problem = key_label_problem(key); !problem.empty()) {
      add(Diagnostic::Severity::warning, "KeyNoLabelValue", (entry.binary ? "binaryData." : "data.") + key,
          entry.member->key_at, std::move(problem));
    }
  }
  const DocumentValue* metadata = config_map.find("metadata");
  const std::string_view name = metadata != nullptr ? metadata->string_at("name") : std::string_view();
  if (const std::string problem = volume_name_problem(name); !name.empty() && !problem.empty()) {
    add(Diagnostic::Severity::info, "NameNoVolumeName", "metadata.name", metadata->find("name")->at,
        fmt::format("the GPU Operator names a volume after the ConfigMap, and {}", problem));
  }
}

}  // namespace gso
