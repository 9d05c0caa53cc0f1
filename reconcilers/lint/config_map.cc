// ConfigMaps that hold profiles.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "k8sclient/value/encoding.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

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

class ConfigMapCheck {
 public:
  ConfigMapCheck(const DocumentValue& config_map, std::vector<Diagnostic>& diagnostics)
      : config_map_(config_map), diagnostics_(diagnostics) {}

  void run() {
    const bool mappings = are_mappings();
    const std::vector<ConfigMapEntry> entries = entries_of(config_map_);
    if (entries.empty() && mappings) add(Severity::warning, "NoProfiles", "data", config_map_.at, std::string(kNoKeys));
    size(entries);
    for (const ConfigMapEntry& each : entries) entry(each);
    name();
  }

 private:
  void add(Severity severity, std::string code, std::string path, Position at, std::string message) {
    diagnostics_.push_back({severity, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  }

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
    if (std::string problem = config_map_key_problem(key); !problem.empty()) {
      add(Severity::error, "KeyRefused", path, entry.member->key_at, std::move(problem));
    } else if (problem = key_label_problem(key); !problem.empty()) {
      add(Severity::warning, "KeyNoLabelValue", path, entry.member->key_at, std::move(problem));
    }
  }

  void name() {
    const DocumentValue* metadata = config_map_.find("metadata");
    const std::string_view name = metadata != nullptr ? metadata->string_at("name") : std::string_view();
    if (const std::string problem = volume_name_problem(name); !name.empty() && !problem.empty()) {
      add(Severity::info, "NameNoVolumeName", "metadata.name", metadata->find("name")->at,
          fmt::format("the GPU Operator names a volume after the ConfigMap, and {}", problem));
    }
  }

  const DocumentValue& config_map_;
  std::vector<Diagnostic>& diagnostics_;
};

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
  ConfigMapCheck(config_map, diagnostics).run();
}

}  // namespace gso
