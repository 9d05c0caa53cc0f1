// See label_owners.h.
#include "reconcilers/cluster/label_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "k8sclient/value/time.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"

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

// A member that is a string, or absent or null; false: it is something else.
bool read_optional_text(const Json& entry, const char* name, std::optional<std::string>& out) {
  const auto found = entry.find(name);
  if (found == entry.end() || found->is_null()) return true;
  if (!found->is_string()) return false;
  out = found->get<std::string>();
  return true;
}

bool read_rewrites(const Json& entry, OwnedLabel& out) {
  const auto times = entry.find("rewrites");
  if (times == entry.end()) return true;
  if (!times->is_array()) return false;
  for (const Json& time : *times) {
    const auto parsed = time.is_string() ? k8s::parse_rfc3339(time.get<std::string>()) : std::nullopt;
    if (!parsed) return false;
    out.rewrites.push_back(*parsed);
  }
  return true;
}

bool read_owned(const Json& entry, OwnedLabel& out) {
  if (entry.is_string()) out.before = entry.get<std::string>();
  if (entry.is_string() || entry.is_null()) return true;
  std::optional<std::string> policy;
  std::optional<std::string> value;
  if (!entry.is_object() || !read_optional_text(entry, "before", out.before) ||
      !read_optional_text(entry, "policy", policy) || !read_optional_text(entry, "value", value) || !value) {
    return false;
  }
  out.policy = policy.value_or("");
  out.value = *value;
  return read_rewrites(entry, out);
}

// The labels of the annotation: those of version 1 are a member of their own; before that they were all that it had.
// nullptr: it has neither, for the reason in `problem`.
const Json* labels_of(const Json& root, std::string& problem) {
  const auto version = root.find("v");
  if (version == root.end()) return &root;
  const auto labels = root.find("labels");
  if (!version->is_number_integer()) {
    problem = "v must be a number";
  } else if (*version != kOwnedVersion) {
    problem = fmt::format("version {} was written by another release; this release supports version {}",
                          version->dump(), kOwnedVersion);
  } else if (labels == root.end() || !labels->is_object()) {
    problem = "labels must be an object";
  }
  return problem.empty() ? &*labels : nullptr;
}

// Why the text cannot be read; empty: it was read.
std::string read_all(std::string_view text, OwnedLabels& out) {
  const auto root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return "it must be a JSON object";
  std::string problem;
  const Json* labels = labels_of(root, problem);
  if (labels == nullptr) return problem;
  for (const auto& [label, entry] : labels->items()) {
    OwnedLabel owned;
    const bool is_read = read_owned(entry, owned);
    // Whatever else somebody has written there is none of the operator's: it can have written no other label.
    const bool can_be =
        is_sharing_label(label) || label == kConfigLabel || label == kMpsPipeDirectory || !owned.policy.empty();
    if (is_read && can_be) out.emplace(label, std::move(owned));
    if (is_read) continue;
    return fmt::format(
        "label {} must have its previous value, null, or an object with before, value, policy and rewrites",
        std::string_view(label).substr(0, 64));
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
    const Json before = owned.before ? Json(*owned.before) : Json(nullptr);
    if (owned.value.empty() && owned.policy.empty()) {
      out["labels"][label] = before;
      continue;
    }
    Json& entry = out["labels"][label] = {{"before", before}, {"value", owned.value}};
    if (!owned.policy.empty()) entry["policy"] = owned.policy;
    for (const WallTime time : owned.rewrites) entry["rewrites"].push_back(k8s::format_time(time));
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
