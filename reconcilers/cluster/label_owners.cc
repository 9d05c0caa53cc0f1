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

bool operator_owns_labels(bool labeller, const PlannerSettings& settings) {
  using LabelMode = PlannerSettings::LabelMode;
  return settings.label_mode == LabelMode::enforce || (settings.label_mode == LabelMode::automatic && !labeller);
}

namespace {

using Json = nlohmann::json;

std::optional<std::string> text_or_nothing(const Json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

OwnedLabel owned_label(const Json& entry) {
  if (!entry.is_object()) return {text_or_nothing(entry), {}, {}};
  const auto member = [&](const char* name) {
    const auto found = entry.find(name);
    return found == entry.end() ? std::nullopt : text_or_nothing(*found);
  };
  return {member("before"), member("policy").value_or(""), member("value").value_or("")};
}

}  // namespace

OwnedLabels owned_labels(const Node& node) {
  OwnedLabels out;
  const auto text = node.meta.annotations.get(kOwnedAnnotation);
  if (!text) return out;
  const auto owned = Json::parse(*text, nullptr, false);
  if (!owned.is_object()) return out;
  for (const auto& [label, entry] : owned.items()) out[label] = owned_label(entry);
  return out;
}

std::string print_owned(const OwnedLabels& labels) {
  if (labels.empty()) return {};
  Json out = Json::object();
  for (const auto& [label, owned] : labels) {
    const Json before = owned.before ? Json(*owned.before) : Json(nullptr);
    out[label] =
        owned.policy.empty() ? before : Json{{"before", before}, {"policy", owned.policy}, {"value", owned.value}};
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> label_writer(const Node& node, std::string_view label) {
  const auto now = node.meta.labels.get(label).value_or("");
  const OwnedLabels owned = now.empty() ? OwnedLabels() : owned_labels(node);
  const auto entry = owned.find(std::string(label));
  if (entry == owned.end() || entry->second.policy.empty() || entry->second.value != now) return std::nullopt;
  return entry->second.policy;
}

bool is_label_of_others(const Node& node, std::string_view label) {
  return !node.meta.labels.get(label).value_or("").empty() && !label_writer(node, label);
}

}  // namespace gso
