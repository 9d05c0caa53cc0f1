// See label_owners.h.
#include "reconcilers/cluster/label_owners.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/value/time.h"
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

namespace {

using LabelMode = PlannerSettings::LabelMode;

constexpr std::pair<std::string_view, LabelMode> kModes[] = {
    {"auto", LabelMode::automatic}, {"enforce", LabelMode::enforce}, {"verify", LabelMode::verify}};

// nullopt: it is no mode.
std::optional<LabelMode> mode_from(std::string_view text) {
  const auto* found = std::ranges::find(kModes, text, &std::pair<std::string_view, LabelMode>::first);
  return found == std::end(kModes) ? std::nullopt : std::optional(found->second);
}

}  // namespace

LabelMode label_mode_of(const Node& node, const PlannerSettings& settings) {
  const auto text = node.meta.annotations.get(kLabelModeAnnotation);
  if (!text || settings.label_mode == LabelMode::verify) return settings.label_mode;
  return mode_from(*text).value_or(LabelMode::verify);
}

std::string_view unknown_label_mode(const Node& node) {
  const auto text = node.meta.annotations.get(kLabelModeAnnotation);
  return text && !mode_from(*text) ? text->empty() ? "\"\"" : *text : std::string_view();
}

bool operator_owns_labels(const Node& node, bool labeller, const PlannerSettings& settings) {
  const LabelMode mode = label_mode_of(node, settings);
  return mode == LabelMode::enforce || (mode == LabelMode::automatic && !labeller);
}

WallTime OwnedLabel::next_rewrite() const {
  if (rewrites.size() < kMostRewrites) return WallTime::min();
  return rewrites[rewrites.size() - kMostRewrites] + std::chrono::duration_cast<WallTime::duration>(kRewriteWindow);
}

namespace {

using Json = nlohmann::json;

std::optional<std::string> text_or_nothing(const Json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

OwnedLabel owned_label(const Json& entry) {
  if (!entry.is_object()) return {text_or_nothing(entry), {}, {}, {}};
  const auto member = [&](const char* name) {
    const auto found = entry.find(name);
    return found == entry.end() ? std::nullopt : text_or_nothing(*found);
  };
  OwnedLabel out{member("before"), member("policy").value_or(""), member("value").value_or(""), {}};
  const auto rewrites = entry.find("rewrites");
  if (rewrites == entry.end() || !rewrites->is_array()) return out;
  for (const Json& time : *rewrites) {
    if (const auto parsed = k8s::parse_rfc3339(text_or_nothing(time).value_or(""))) out.rewrites.push_back(*parsed);
  }
  return out;
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
    if (owned.value.empty() && owned.policy.empty()) {
      out[label] = before;
      continue;
    }
    out[label] = {{"before", before}, {"value", owned.value}};
    if (!owned.policy.empty()) out[label]["policy"] = owned.policy;
    for (const WallTime time : owned.rewrites) out[label]["rewrites"].push_back(k8s::format_time(time));
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
