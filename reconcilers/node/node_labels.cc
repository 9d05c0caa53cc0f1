// The difference between the labels that the operator must write and the node's present labels.
#include "reconcilers/node/node_labels.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"

namespace gso {

bool selects_but_for_lost_labels(const SharingPolicy& policy, const Node& node) {
  using k8s::LabelOperator;
  if (policy_selects(policy, node)) return false;
  Node whole = node;
  const auto add = [&whole](const std::string& label, const std::string& value) {
    if (!whole.meta.labels.contains(label)) whole.meta.labels.set(label, value);
  };
  for (const auto& [label, value] : policy.node_selector.match_labels) add(label, value);
  for (const k8s::LabelRequirement& requirement : policy.node_selector.match_expressions) {
    if (requirement.op == LabelOperator::exists) add(requirement.key, "");
    if (requirement.op == LabelOperator::in && !requirement.values.empty())
      add(requirement.key, requirement.values.front());
  }
  return policy_selects(policy, whole);
}

// --- When the mark is set and removed. Timers delay both, so that the label of a daemon that restarts repeatedly does
// not flap.

namespace {

// A daemon that crashes does so within its first seconds, and restarts with a delay that grows to minutes.
constexpr Duration kUpFor = std::chrono::seconds(60);
// A pod that starts now would find no daemon. A single failed probe is not enough to remove the mark.
constexpr Duration kDownFor = std::chrono::seconds(15);

}  // namespace

std::optional<MpsMark> mps_mark(const Node& node, const Pod* standalone) {
  const bool declared = !host_pipe_directory(node).empty();
  const bool runs = node.ready && (declared || (standalone != nullptr && is_serving(*standalone)));
  const auto value = node.meta.labels.get(kMpsEnabled);
  // Another value belongs to a person. If a person removes the label while the operator owns it, it is set again.
  if (runs) return value ? std::nullopt : std::optional(MpsMark::to_set);
  if (node.meta.annotations.contains(kMpsMarkAnnotation)) return MpsMark::to_remove;
  return value == "true" ? std::optional(MpsMark::foreign) : std::nullopt;
}

bool marks_mps_nodes(const PlannerSettings& settings, bool kai_served) {
  if (settings.label_mode == PlannerSettings::LabelMode::verify) return false;
  return settings.kai.mps_ready == MpsReadyMode::on ||
         (settings.kai.mps_ready == MpsReadyMode::automatic && kai_served);
}

void plan_mps_mark(PlanDraft& draft, const Node& node, MpsMark mark) {
  const std::string& name = node.meta.name;
  PatchNode patch{.name = name};
  if (mark == MpsMark::to_set && draft.held_for({Timer::mps_ready, name, ""}, kUpFor)) {
    patch.set[std::string(kMpsEnabled)] = "true";
    patch.set_annotations[std::string(kMpsMarkAnnotation)] = "true";
    draft.add(std::move(patch), "MPSReady", "the node's standalone MPS control daemon is running", false, name);
  } else if (mark == MpsMark::to_remove && draft.held_for({Timer::mps_gone, name, ""}, kDownFor)) {
    if (node.meta.labels.get(kMpsEnabled) == "true") patch.remove.insert(std::string(kMpsEnabled));
    patch.remove_annotations.insert(std::string(kMpsMarkAnnotation));
    draft.add(std::move(patch), "MPSGone", "no standalone MPS control daemon runs on the node", false, name);
  } else if (mark == MpsMark::foreign) {
    draft.finding(
        Severity::warning, node_ref(name), "MPSMarkWithoutDaemon",
        fmt::format(
            "the node has the label {}=true, which the operator did not set, but no standalone MPS control daemon runs "
            "on it (the device plugin's serves only its own replicas): KAI's pods run there without MPS. If the host "
            "runs a daemon, set the annotation {}=true on the node; otherwise remove the label",
            kMpsEnabled, kMpsHostAnnotation));
  }
}

namespace {

// What `edit` changes of the labels and of what the operator owns, after `first`; nothing if what it owns is unknown.
template <class Edit>
LabelChange change_owned(const Node& node, const Edit& edit, LabelChange first = {}) {
  if (is_owner_unknown(node)) return first;
  const OwnedLabels before = owned_labels(node);
  OwnedLabels owned = first.owned.value_or(before);
  edit(owned, first);
  first.owned = owned == before ? std::nullopt : std::optional(std::move(owned));
  return first;
}

// The label's entry; a new one remembers the present value. Second: it is new.
std::pair<OwnedLabel*, bool> own(const Node& node, const std::string& key, OwnedLabels& owned) {
  const auto actual = node.meta.labels.get(key);
  const auto [entry, is_new] =
      owned.try_emplace(key, OwnedLabel{actual ? std::optional(std::string(*actual)) : std::nullopt, {}, {}, {}});
  return {&entry->second, is_new};
}

// Sets the label unless it has that value, or another client keeps changing it.
void write_label(const Node& node, const std::string& key, const std::string& value, const LabelRules& rules,
                 OwnedLabels& owned, LabelChange& change) {
  const auto actual = node.meta.labels.get(key);
  if (actual == value) return;
  if (const auto refused = rules.contested.find(key); refused != rules.contested.end() && !owned.contains(key)) {
    change.contested.insert(*refused);
    return;
  }
  const auto [entry, is_new] = own(node, key, owned);
  OwnedLabel& label = *entry;
  if (rules.now && !is_new && label.is_changed(actual)) {
    if (*rules.now < label.next_rewrite()) {
      change.contested.emplace(key, label.next_rewrite());
      return;
    }
    if (label.rewrites.size() >= kMostRewrites) label.rewrites.erase(label.rewrites.begin());
    label.rewrites.push_back(std::chrono::floor<std::chrono::seconds>(*rules.now));
  }
  label.value = value;
  change.set[key] = value;
}

// A label that the operator wrote for an earlier profile and that this one does not have gets its previous value. One
// that another client has changed since is that client's.
void restore_label(const Node& node, const std::string& key, const OwnedLabel& owned, LabelChange& change) {
  const auto actual = node.meta.labels.get(key);
  if (owned.is_changed(actual) || actual == owned.before) return;
  if (owned.before)
    change.set[key] = *owned.before;
  else
    change.remove.insert(key);
}

}  // namespace

LabelChange label_change_to(const Node& node, const NodeExpectation& expectation, bool gfd, const LabelRules& rules) {
  if (label_mode_of(node, rules.settings) == PlannerSettings::LabelMode::verify) return {};
  return change_owned(node, [&](OwnedLabels& owned, LabelChange& change) {
    const bool writes = operator_owns_labels(node, gfd, rules.settings);
    // Most nodes need not be asked.
    const std::set<std::string> of_nfd = owned.empty() && !writes ? std::set<std::string>() : nfd_owned(node);
    if (!writes) {
      // GPU Feature Discovery serves the node, and NFD writes what it finds.
      std::erase_if(owned, [&](const auto& entry) { return of_nfd.contains(entry.first); });
      return;
    }
    for (const auto& [key, value] : expectation.labels)
      if (!of_nfd.contains(key)) write_label(node, key, value, rules, owned, change);
    std::erase_if(owned, [&](const auto& entry) {
      const auto& [key, label] = entry;
      // The policies own the label that selects the profile, and the standalone MPS daemon decides about its directory.
      const bool stays = key == kConfigLabel || key == kMpsPipeDirectory || !label.policy.empty() ||
                         expectation.labels.contains(key) || of_nfd.contains(key);
      if (!stays) restore_label(node, key, label, change);
      return !stays;
    });
  });
}

namespace {

// Its pods may run another text, which fits what it serves as well.
bool may_run_another_text(const NodeAssessment& assessment) {
  return assessment.at_install == AtInstall::unproven && !assessment.fresh_pods;
}

}  // namespace

LabelChange label_change(const Node& node, const NodeAssessment& assessment, const LabelRules& rules) {
  if (assessment.phase != Phase::up_to_date || !assessment.expectation) return {};
  if (!assessment.matches()) {
    // Without the label the MPS daemon has no pod, and without that pod the plugin serves nothing: the label cannot
    // wait for a match.
    const bool mps = assessment.expectation->strategy == Strategy::mps && !assessment.expectation->error;
    return mps ? mps_capable_change(node, true, assessment.has_labeller(), rules) : LabelChange{};
  }
  if (may_run_another_text(assessment)) return {};
  return label_change_to(node, *assessment.expectation, assessment.has_labeller(), rules);
}

LabelChange mps_capable_change(const Node& node, bool capable, bool gfd, const LabelRules& rules, LabelChange first) {
  const std::string key(kMpsCapable);
  if (!operator_owns_labels(node, gfd, rules.settings) || nfd_owns(node, key)) return first;
  const auto edit = [&](OwnedLabels& owned, LabelChange& change) {
    write_label(node, key, capable ? "true" : "false", rules, owned, change);
  };
  return change_owned(node, edit, std::move(first));
}

LabelChange directory_label_change(const Node& node, const std::string& value, const LabelRules& rules) {
  return change_owned(node, [&](OwnedLabels& owned, LabelChange& change) {
    const std::string key(kMpsPipeDirectory);
    write_label(node, key, value, rules, owned, change);
    if (const auto entry = owned.find(key); entry != owned.end()) entry->second.before.reset();
  });
}

LabelChange take_back_label(const Node& node, std::string_view key, LabelChange first) {
  const auto edit = [&](OwnedLabels& owned, LabelChange& change) {
    const auto entry = owned.extract(std::string(key));
    if (entry && node.meta.labels.contains(key)) restore_label(node, entry.key(), entry.mapped(), change);
  };
  return change_owned(node, edit, std::move(first));
}

LabelChange release_label(const Node& node, std::string_view key) {
  return change_owned(node, [&](OwnedLabels& owned, LabelChange&) { owned.erase(std::string(key)); });
}

LabelChange hand_over_label(const Node& node, std::string_view key, std::string_view policy) {
  return change_owned(node, [&](OwnedLabels& owned, LabelChange&) {
    if (const auto label = owned.find(std::string(key)); label != owned.end()) label->second.policy = policy;
  });
}

LabelChange policy_label(const Node& node, std::string_view name, const NodeAssessment& assessment) {
  return change_owned(node, [&](OwnedLabels& owned, LabelChange& change) {
    const std::string key(name);
    const std::string value(assessment.label->view());
    if (assessment.left_policy == LeftPolicy::revert) {
      owned.erase(key);
      if (value.empty())
        change.remove.insert(key);
      else
        change.set[key] = value;
      return;
    }
    // A value that another client set since then becomes the recorded previous value.
    if (!label_writer(node, key)) owned.erase(key);
    if (node.meta.labels.get(key) != value) {
      own(node, key, owned);
      change.set[key] = value;
    }
    OwnedLabel& label = owned[key];
    label.policy = std::string(assessment.policy.view());
    label.value = value;
  });
}

void add_to(PatchNode& patch, const LabelChange& change) {
  patch.set.insert(change.set.begin(), change.set.end());
  patch.remove.insert(change.remove.begin(), change.remove.end());
  if (!change.owned) return;
  if (change.owned->empty())
    patch.remove_annotations.insert(std::string(kOwnedAnnotation));
  else
    patch.set_annotations[std::string(kOwnedAnnotation)] = print_owned(*change.owned);
}

std::string contested_text(std::string_view label, std::string_view node) {
  return fmt::format(
      "another client keeps changing label {}, and the operator has set it again {} times within {} hours: it leaves "
      "the label as it is, and tries again once the first of these is that old. `kubectl get node {} --output yaml "
      "--show-managed-fields` names the client. Stop that client, or leave the label to it: annotation {}=verify on "
      "the node",
      label, kMostRewrites, std::chrono::duration_cast<std::chrono::hours>(kRewriteWindow).count(), node,
      kLabelModeAnnotation);
}

namespace {

// Without the node's name, so that equal findings of many nodes are one. The NodeFeature comes first: as long as it
// exists, NFD lists its labels again.
std::string left_to_nfd(const std::string& key) {
  return fmt::format(
      "Annotation {0} still lists the label for Node Feature Discovery, so the operator does not write it. Install GPU "
      "Feature Discovery; or delete what it left, the NodeFeature nvidia-features-for-NODE (`kubectl delete "
      "nodefeatures.nfd.k8s-sigs.io --all-namespaces --field-selector metadata.name=nvidia-features-for-NODE`), and "
      "then {1} from annotation {0} (`kubectl edit node NODE`)",
      kFeatureLabels, key);
}

// The first label that no component corrects; empty: none.
std::string label_left_behind(const Node& node, const NodeAssessment& a, bool verifies) {
  for (const auto& [key, value] : a.expectation->labels) {
    const auto actual = node.meta.labels.get(key);
    if (!actual || *actual == value || (!verifies && !nfd_owns(node, key))) continue;
    return fmt::format("label {} is {}, and what the node serves needs {}: no GPU Feature Discovery runs there. {}",
                       key, shown_value(*actual), value,
                       nfd_owns(node, key)
                           ? left_to_nfd(key)
                           : "The operator only verifies labels of this node: correct or remove the label");
  }
  return {};
}

}  // namespace

std::vector<Reason> label_problems(const Node& node, const NodeAssessment& a, const PlannerSettings& settings) {
  std::vector<Reason> out;
  if (const std::string_view text = unknown_label_mode(node); !text.empty()) {
    out.push_back(
        {kLabelModeUnknown,
         fmt::format("annotation {} has the value {}, which is none of auto, enforce and verify: the operator "
                     "writes no sharing label of the node",
                     kLabelModeAnnotation, text)});
  }
  if (a.phase != Phase::up_to_date || a.has_labeller() || !a.expectation || !a.matches() || may_run_another_text(a))
    return out;
  const bool verifies = label_mode_of(node, settings) == PlannerSettings::LabelMode::verify;
  if (std::string left = label_left_behind(node, a, verifies); !left.empty())
    out.push_back({kLabelsLeftBehind, std::move(left)});
  return out;
}

}  // namespace gso
