// The difference between the labels that the operator must write and the node's present labels.
#include "reconcilers/node/node_labels.h"

#include <utility>

#include "reconcilers/model/labels.h"

namespace gso {

namespace {

void keep_owned(const Node& node, OwnedLabels owned, LabelChange& change) {
  if (owned != owned_labels(node)) change.owned = std::move(owned);
}

void write_label(const Node& node, const std::string& key, const std::string& value, OwnedLabels& owned,
                 LabelChange& change) {
  const auto actual = node.meta.labels.get(key);
  if (actual == value) return;
  change.set[key] = value;
  owned.try_emplace(key, OwnedLabel{actual ? std::optional(std::string(*actual)) : std::nullopt, {}, {}});
}

}  // namespace

LabelChange label_change_to(const Node& node, const NodeExpectation& expectation, bool gfd,
                            const PlannerSettings& settings) {
  LabelChange change;
  OwnedLabels owned = owned_labels(node);
  const std::set<std::string> of_nfd = owned.empty() && gfd ? std::set<std::string>() : nfd_owned(node);
  std::erase_if(owned, [&](const auto& entry) { return of_nfd.contains(entry.first); });
  if (operator_owns_labels(gfd, settings)) {
    for (const auto& [key, value] : expectation.labels) {
      if (!of_nfd.contains(key)) write_label(node, key, value, owned, change);
    }
    // A label that the operator wrote for an earlier profile and that this one does not have gets its previous value;
    // not the label that selects the profile, which the policies own.
    for (auto it = owned.begin(); it != owned.end();) {
      if (it->first == kConfigLabel || !it->second.policy.empty() || expectation.labels.contains(it->first)) {
        ++it;
        continue;
      }
      if (it->second.before) {
        change.set[it->first] = *it->second.before;
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
    // Without the label the MPS daemon has no pod, and without that pod the plugin serves nothing: the label cannot
    // wait for a match.
    const bool mps = assessment.expectation->strategy == Strategy::mps && !assessment.expectation->error;
    return mps ? mps_capable_change(node, true, assessment.has_labeller(), settings) : LabelChange{};
  }
  // Its pods may run another text, which fits what it serves as well.
  if (assessment.at_install == AtInstall::unproven && !assessment.fresh_pods) return {};
  return label_change_to(node, *assessment.expectation, assessment.has_labeller(), settings);
}

LabelChange mps_capable_change(const Node& node, bool capable, bool gfd, const PlannerSettings& settings) {
  using LabelMode = PlannerSettings::LabelMode;
  LabelChange change;
  if (settings.label_mode == LabelMode::verify || (gfd && settings.label_mode == LabelMode::automatic)) return change;
  const std::string key(kMpsCapable);
  if (nfd_owned(node).contains(key)) return change;
  OwnedLabels owned = owned_labels(node);
  write_label(node, key, capable ? "true" : "false", owned, change);
  keep_owned(node, owned, change);
  return change;
}

LabelChange release_label(const Node& node, std::string_view key) {
  LabelChange change;
  OwnedLabels owned = owned_labels(node);
  owned.erase(std::string(key));
  keep_owned(node, owned, change);
  return change;
}

LabelChange policy_label(const Node& node, std::string_view key, const NodeAssessment& assessment) {
  const std::string value(assessment.label->view());
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
  OwnedLabels owned = owned_labels(node);
  // A value that another client set since then becomes the recorded previous value.
  if (!label_writer(node, key)) owned.erase(std::string(key));
  write_label(node, std::string(key), value, owned, change);
  OwnedLabel& label = owned[std::string(key)];
  label.policy = std::string(assessment.policy.view());
  label.value = value;
  keep_owned(node, owned, change);
  return change;
}

LabelChange merged(const Node& node, LabelChange first, const LabelChange& second) {
  first.set.insert(second.set.begin(), second.set.end());
  first.remove.insert(second.remove.begin(), second.remove.end());
  if (!first.owned || !second.owned) {
    if (second.owned) first.owned = second.owned;
    return first;
  }
  // Both start from the node's annotation and only add entries, or remove entries that the other does not have.
  const OwnedLabels before = owned_labels(node);
  for (const auto& [label, owned] : *second.owned) {
    if (!before.contains(label)) first.owned->emplace(label, owned);
  }
  return first;
}

void add_to(PatchNode& patch, const LabelChange& change) {
  patch.set.insert(change.set.begin(), change.set.end());
  patch.remove.insert(change.remove.begin(), change.remove.end());
  if (!change.owned) return;
  if (change.owned->empty()) {
    patch.remove_annotations.insert(std::string(kOwnedAnnotation));
  } else {
    patch.set_annotations[std::string(kOwnedAnnotation)] = print_owned(*change.owned);
  }
}

}  // namespace gso
