// See label_owners.h.
#include "reconcilers/cluster/label_owners.h"

#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"

namespace gso {

std::set<std::string> nfd_owned(const Node& node) {
  std::set<std::string> out;
  for (const auto& entry : node.meta.annotations) {
    if (!entry.key.view().ends_with(kFeatureLabels)) continue;
    std::string_view rest = entry.value.view();
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      std::string item(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      if (item.empty()) continue;
      out.insert(item.find('/') == std::string::npos ? "feature.node.kubernetes.io/" + item : std::move(item));
    }
  }
  return out;
}

bool labels_are_ours(bool labeller, const PlannerSettings& settings) {
  using LabelMode = PlannerSettings::LabelMode;
  return settings.label_mode == LabelMode::enforce || (settings.label_mode == LabelMode::automatic && !labeller);
}

std::map<std::string, std::optional<std::string>> owned_labels(const Node& node) {
  std::map<std::string, std::optional<std::string>> out;
  const auto text = node.meta.annotations.get(kOwnedAnnotation);
  if (!text) return out;
  const auto owned = nlohmann::json::parse(*text, nullptr, false);
  if (!owned.is_object()) return out;
  for (const auto& [key, before] : owned.items()) {
    out[key] = before.is_string() ? std::optional(before.get<std::string>()) : std::nullopt;
  }
  return out;
}

std::optional<std::string_view> label_writer(const Node& node, std::string_view label) {
  const auto now = node.meta.labels.get(label).value_or("");
  if (now.empty() || !owned_labels(node).contains(std::string(label))) return std::nullopt;
  const auto by = node.meta.annotations.get(kLabelByAnnotation);
  if (!by) return std::string_view();
  const auto equals = by->rfind('=');
  if (equals == std::string_view::npos || by->substr(equals + 1) != now) return std::nullopt;
  return by->substr(0, equals);
}

bool is_label_of_others(const Node& node, std::string_view label) {
  return !node.meta.labels.get(label).value_or("").empty() && !label_writer(node, label);
}

}  // namespace gso
