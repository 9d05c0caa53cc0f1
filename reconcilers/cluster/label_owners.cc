// See label_owners.h.
#include "reconcilers/cluster/label_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/stored_fields.h"

namespace gso {

namespace {

// Calls `use` with each label that NFD's annotations list, as its prefix and its name, until that returns true.
template <class Use>
bool any_of_nfd(const Node& node, const Use& use) {
  for (const auto& entry : node.meta.annotations) {
    if (!entry.key.view().ends_with(kFeatureLabels)) continue;
    for (const auto part : std::views::split(entry.value.view(), ',')) {
      const std::string_view item(part.begin(), part.end());
      if (item.empty()) continue;
      const bool whole = item.find('/') != std::string_view::npos;
      if (use(whole ? std::string_view() : kFeaturePrefix, item)) return true;
    }
  }
  return false;
}

}  // namespace

std::set<std::string> nfd_owned(const Node& node) {
  std::set<std::string> out;
  any_of_nfd(node, [&](std::string_view prefix, std::string_view name) {
    out.insert(std::string(prefix).append(name));
    return false;
  });
  return out;
}

bool nfd_owns(const Node& node, std::string_view label) {
  return any_of_nfd(node, [&](std::string_view prefix, std::string_view name) {
    return label.size() == prefix.size() + name.size() && label.starts_with(prefix) && label.ends_with(name);
  });
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

constexpr int kOwnedVersion = 1;

// null: the label was absent.
constexpr stored::Field<OwnedLabel> before() {
  stored::Field<OwnedLabel> out = stored::field<OwnedLabel, &OwnedLabel::before>("before");
  out.read = [](stored::Element value, OwnedLabel& owned) {
    return value.is_null() ? stored::Wrong() : stored::Stored<std::optional<std::string>>::read(value, owned.before);
  };
  return out;
}
constexpr stored::Field<OwnedLabel> kOwned[] = {
    before(), stored::field<OwnedLabel, &OwnedLabel::value>("value", stored::When::needed),
    stored::field<OwnedLabel, &OwnedLabel::policy>("policy", stored::When::if_set),
    stored::field<OwnedLabel, &OwnedLabel::rewrites>("rewrites", stored::When::if_set)};

bool read_owned(stored::Element entry, OwnedLabel& out) {
  if (entry.is_null()) return true;
  if (entry.is_string()) return stored::Stored<std::optional<std::string>>::read(entry, out.before).empty();
  simdjson::dom::object object;
  return entry.get(object) == simdjson::SUCCESS && stored::read_fields<OwnedLabel>(object, kOwned, out).empty();
}

// Why the text cannot be read; empty: it was read.
std::string read_all(std::string_view text, OwnedLabels& out) {
  static simdjson::dom::parser parser;  // Its buffers are used again. Planners run on one thread.
  const auto root = stored::open(text, parser);
  if (!root) return "it must be a JSON object";
  // The labels of version 1 are a member of their own; before that they were all that it had.
  simdjson::dom::object labels = *root;
  if (root->at_key("v").error() == simdjson::SUCCESS) {
    if (std::string problem = stored::version_problem(*root, kOwnedVersion, "supports"); !problem.empty())
      return problem;
    if (root->at_key("labels").get(labels) != simdjson::SUCCESS) return "labels must be an object";
  }
  for (const auto [label, entry] : labels) {
    OwnedLabel owned;
    if (!read_owned(entry, owned)) {
      return fmt::format(
          "label {} must have its previous value, null, or an object with before, value, policy and rewrites",
          label.substr(0, 64));
    }
    // Whatever else somebody has written there is none of the operator's: it can have written no other label.
    const bool can_be =
        is_sharing_label(label) || label == kConfigLabel || label == kMpsPipeDirectory || !owned.policy.empty();
    if (can_be) out.emplace(label, std::move(owned));
  }
  return {};
}

}  // namespace

OwnedOnNode owned_on(const Node& node) {
  OwnedOnNode out;
  const auto text = node.meta.annotations.get(kOwnedAnnotation);
  if (!text) return out;
  const std::string problem = read_all(*text, out.labels);
  if (problem.empty()) return out;
  out.labels.clear();
  out.problem = fmt::format("annotation {} cannot be read: {}", kOwnedAnnotation, problem);
  return out;
}

OwnedLabels owned_labels(const Node& node) {
  return owned_on(node).labels;
}

bool is_owner_unknown(const Node& node) {
  return !owned_on(node).problem.empty();
}

std::string owner_unknown_text(const std::string& node, std::string_view problem) {
  return fmt::format(
      "{}. Which labels of the node are the operator's is unknown: it neither changes the node nor reverts its labels. "
      "Correct the labels if necessary, then remove the annotation (kubectl annotate node {} {}-): the labels then "
      "belong to a person",
      problem, node, kOwnedAnnotation);
}

std::string print_owned(const OwnedLabels& labels) {
  if (labels.empty()) return {};
  Json out = {{"v", kOwnedVersion}, {"labels", Json::object()}};
  for (const auto& [label, owned] : labels) {
    Json& entry = out["labels"][label];
    if (owned.value.empty() && owned.policy.empty())
      entry = stored::Stored<std::optional<std::string>>::print(owned.before);
    else
      stored::print_fields<OwnedLabel>(owned, kOwned, entry);
  }
  return dump(out);
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
