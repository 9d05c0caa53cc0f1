// The difference between the labels that are ours to write and what stands on the node.
#include "reconcilers/node/node_labels.h"

#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"

namespace gso {

using Json = nlohmann::json;
using Owned = std::map<std::string, std::optional<std::string>>;

namespace {

std::string print_owned(const Owned& owned) {
  if (owned.empty()) return {};
  Json out = Json::object();
  for (const auto& [key, before] : owned) out[key] = before ? Json(*before) : Json(nullptr);
  return out.dump();
}

// Sets the annotation's new text when it differs from what stands there.
void keep_owned(const Node& node, const Owned& owned, LabelChange& change) {
  std::string text = print_owned(owned);
  if (text != node.meta.annotations.get(kOwnedAnnotation).value_or("")) change.owned = std::move(text);
}

void write_label(const Node& node, const std::string& key, const std::string& value, Owned& owned,
                 LabelChange& change) {
  const auto actual = node.meta.labels.get(key);
  if (actual == value) return;
  change.set[key] = value;
  owned.try_emplace(key, actual ? std::optional(std::string(*actual)) : std::nullopt);
}

}  // namespace

LabelChange label_change_to(const Node& node, const NodeExpectation& expectation, bool gfd,
                            const PlannerSettings& settings) {
  LabelChange change;
  Owned owned = owned_labels(node);
  const std::set<std::string> theirs = owned.empty() && gfd ? std::set<std::string>() : nfd_owned(node);
  std::erase_if(owned, [&](const auto& entry) { return theirs.contains(entry.first); });
  if (labels_are_ours(gfd, settings)) {
    for (const auto& [key, value] : expectation.labels) {
      if (!theirs.contains(key)) write_label(node, key, value, owned, change);
    }
    // What we wrote for an earlier profile and this one does not have goes back to what stood before.
    for (auto it = owned.begin(); it != owned.end();) {
      if (it->first == kConfigLabel || expectation.labels.contains(it->first)) {
        ++it;
        continue;
      }
      if (it->second) {
        change.set[it->first] = *it->second;
      } else {
        change.remove.insert(it->first);
      }
      it = owned.erase(it);
    }
  }
  keep_owned(node, owned, change);
  return change;
}

LabelChange label_change(const Node& node, const NodeAssessment& assessment, const PlannerSettings& settings) {
  if (assessment.phase != Phase::up_to_date || !assessment.expectation) return {};
  if (!assessment.matches()) {
    // Without the label the MPS daemon has no pod, and without that the plugin serves nothing: it cannot wait for a
    // match.
    const bool mps = assessment.expectation->strategy == Strategy::mps && !assessment.expectation->error;
    return mps ? mps_capable_change(node, true, assessment.has_labeller(), settings) : LabelChange{};
  }
  return label_change_to(node, *assessment.expectation, assessment.has_labeller(), settings);
}

LabelChange mps_capable_change(const Node& node, bool capable, bool gfd, const PlannerSettings& settings) {
  using LabelMode = PlannerSettings::LabelMode;
  LabelChange change;
  if (settings.label_mode == LabelMode::verify || (gfd && settings.label_mode == LabelMode::automatic)) return change;
  const std::string key(kMpsCapable);
  if (nfd_owned(node).contains(key)) return change;
  Owned owned = owned_labels(node);
  write_label(node, key, capable ? "true" : "false", owned, change);
  keep_owned(node, owned, change);
  return change;
}

LabelChange release_label(const Node& node, std::string_view key) {
  LabelChange change;
  Owned owned = owned_labels(node);
  owned.erase(std::string(key));
  keep_owned(node, owned, change);
  if (node.meta.annotations.contains(kLabelByAnnotation)) change.by = "";
  return change;
}

LabelChange policy_label(const Node& node, std::string_view key, const NodeAssessment& assessment) {
  const std::string& value = *assessment.label;
  if (assessment.left_policy == LeftPolicy::revert) {
    LabelChange change = release_label(node, key);
    if (value.empty()) {
      change.remove.insert(std::string(key));
    } else {
      change.set[std::string(key)] = value;
    }
    return change;
  }
  LabelChange change;
  Owned owned = owned_labels(node);
  // A value that somebody else put there since is what stands before this one.
  if (!label_writer(node, key)) owned.erase(std::string(key));
  write_label(node, std::string(key), value, owned, change);
  keep_owned(node, owned, change);
  change.by = std::string(assessment.policy.view()) + "=" + value;
  return change;
}

LabelChange merged(const Node& node, LabelChange first, const LabelChange& second) {
  first.set.insert(second.set.begin(), second.set.end());
  first.remove.insert(second.remove.begin(), second.remove.end());
  if (second.by) first.by = second.by;
  if (!first.owned || !second.owned) {
    if (second.owned) first.owned = second.owned;
    return first;
  }
  // Both start from the node's record and only add to it, or take out what the other does not know.
  Json a = Json::parse(first.owned->empty() ? "{}" : *first.owned, nullptr, false);
  const Json b = Json::parse(second.owned->empty() ? "{}" : *second.owned, nullptr, false);
  const auto before = owned_labels(node);
  for (const auto& [key, value] : b.items()) {
    if (!before.contains(key)) a[key] = value;
  }
  first.owned = a.empty() ? "" : a.dump();
  return first;
}

void add_to(PatchNode& patch, const LabelChange& change) {
  patch.set.insert(change.set.begin(), change.set.end());
  patch.remove.insert(change.remove.begin(), change.remove.end());
  auto annotate = [&](std::string_view annotation, const std::optional<std::string>& text) {
    if (!text) return;
    if (text->empty()) {
      patch.remove_annotations.insert(std::string(annotation));
    } else {
      patch.set_annotations[std::string(annotation)] = *text;
    }
  };
  annotate(kOwnedAnnotation, change.owned);
  annotate(kLabelByAnnotation, change.by);
}

}  // namespace gso
