// ConfigMaps that hold profiles.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "reconcilers/lint/checks.h"
#include "reconcilers/profile/expected.h"

namespace gso {

bool holds_profiles(const DocumentValue& config_map) {
  static constexpr std::array<std::string_view, 5> kSigns{"timeSlicing", "migStrategy", "mps:", "\"mps\"", "sharing:"};
  const DocumentValue* data = config_map.find("data");
  return data != nullptr && std::any_of(data->members.begin(), data->members.end(), [](const DocumentMember& member) {
           return std::any_of(kSigns.begin(), kSigns.end(),
                              [&](std::string_view sign) { return member.value.text.find(sign) != std::string::npos; });
         });
}

void check_config_map(const DocumentValue& config_map, std::vector<Diagnostic>& diagnostics) {
  const auto add = [&](Diagnostic::Severity severity, std::string code, std::string path, Position at,
                       std::string message) {
    diagnostics.push_back({severity, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  };
  const DocumentValue* data = config_map.find("data");
  if (data != nullptr && !data->is_object() && !data->is_null()) {
    add(Diagnostic::Severity::error, "WrongType", "data", data->at,
        fmt::format("{} stands where a mapping from keys to profiles must stand", kind_name(data->kind)));
  } else if (data == nullptr || data->members.empty()) {
    add(Diagnostic::Severity::warning, "NoProfiles", "data", config_map.at,
        "there is no key here: config-manager exits when the ConfigMap it mounts is empty");
  } else {
    for (const DocumentMember& member : data->members) {
      if (!is_label_value(member.key)) {
        add(Diagnostic::Severity::warning, "KeyNoLabelValue", "data." + member.key, member.key_at,
            fmt::format("the key \"{}\" cannot be chosen by a node label: at most 63 letters, digits, '-', '_' and "
                        "'.', a letter "
                        "or digit at both ends",
                        member.key));
      }
    }
  }
  const DocumentValue* metadata = config_map.find("metadata");
  const std::string_view name = metadata != nullptr ? metadata->string_at("name") : std::string_view();
  if (name.size() > 63 || name.find('.') != std::string_view::npos) {
    add(Diagnostic::Severity::info, "NameNoVolumeName", "metadata.name", metadata->find("name")->at,
        "a ConfigMap with a '.' or more than 63 characters in its name cannot name a volume, as some tools assume it "
        "can");
  }
}

}  // namespace gso
