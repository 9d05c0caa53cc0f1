// The labels that the operator writes on a node: sharing labels, KAI's mark, and labels that were lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// --- A policy whose labels have vanished from a node.

// The policy does not select the node, and would if the labels that its selector uses, and that the node lacks, were
// there. False of a node that has one of them with a value that the selector does not want: somebody gave it to another
// policy. Any label can be away for a moment (GPU Feature Discovery, a cloud's controller, a node that registers
// again).
[[nodiscard]] bool selects_but_for_lost_labels(const SharingPolicy& policy, const Node& node);

// --- node.mps-ready: KAI's mark for nodes where a pod finds an MPS control daemon, nvidia.mps/enabled=true: set once
// the daemon has been Ready for a while, removed when the daemon ends.

enum class MpsMark : std::uint8_t { to_set, to_remove, foreign };
// What the label needs; nullopt: nothing. `standalone`: the node's pod of a standalone daemon, which is Ready while the
// daemon answers; null: none. A daemon of the host itself counts by the annotation gpusharing.dev/mps-host. That
// of the device plugin does not: its clients are pods with replicas, and a fraction of KAI finds neither its directory
// nor a GPU that accepts it. Only a mark that the operator set is removed. `foreign`: set by a person or another tool,
// on a node without a daemon.
[[nodiscard]] std::optional<MpsMark> mps_mark(const Node& node, const Pod* standalone);

// Whether the settings and the cluster require that nodes are marked.
[[nodiscard]] bool marks_mps_nodes(const PlannerSettings& settings, bool kai_served);

// Sets or removes one node's mark once the difference has lasted long enough; reports if it cannot.
void plan_mps_mark(PlanDraft& draft, const Node& node, MpsMark mark);

// --- node.labels: the sharing labels on nodes that no GPU Feature Discovery serves. The operator writes a key that no
// other component owns, and records the previous value in gpusharing.dev/owned.

struct LabelChange {
  std::map<std::string, std::string> set;
  std::set<std::string> remove;
  std::optional<OwnedLabels> owned;  // All labels that the operator owns afterwards; nullopt: unchanged.
  // Labels that differ and are not set, because another client keeps changing them (kMostRewrites), and when the
  // operator is next allowed to set them.
  std::map<std::string, WallTime> contested;
  [[nodiscard]] bool empty() const { return set.empty() && remove.empty() && !owned; }
};

// When a label change is computed, and by which settings. `now`: nullopt if the time does not matter: nothing is
// contested then, so a change that is empty stays empty.
struct LabelRules {
  const PlannerSettings& settings;
  std::optional<WallTime> now;
  // Labels that another client keeps taking away together with the annotation gpusharing.dev/owned, and when the
  // operator is next allowed to set them (rollout/label_contest.h).
  std::map<std::string, WallTime> contested = {};
};

// The label change of a settled node. Empty for a node that is in a change (the planner of the rollout adds the labels
// to its own patches), does not show its profile, or is served by GPU Feature Discovery (unless the mode enforces).
[[nodiscard]] LabelChange label_change(const Node& node, const NodeAssessment& assessment, const LabelRules& rules);
// The label change of a node that has just shown `expectation`, independent of its assessment.
[[nodiscard]] LabelChange label_change_to(const Node& node, const NodeExpectation& expectation, bool gfd,
                                          const LabelRules& rules);
// `first`, and mps.capable alone, which the MPS DaemonSet needs before an MPS pod can exist. No more than `first` if
// the operator does not own it.
[[nodiscard]] LabelChange mps_capable_change(const Node& node, bool capable, bool gfd, const LabelRules& rules,
                                             LabelChange first = {});
// The label that selects the profile, as the policy that governs the node wants it: written and owned, or, if the node
// has left a policy, restored to the value before it.
[[nodiscard]] LabelChange policy_label(const Node& node, std::string_view key, const NodeAssessment& assessment);
// The label gpusharing.dev/mps-pipe-directory with that value, by the same rules. No value from before is restored:
// another client's would name a directory without a daemon.
[[nodiscard]] LabelChange directory_label_change(const Node& node, const std::string& value, const LabelRules& rules);
// `first`, and the end of the operator's ownership, which restores what stood before, unless another client has changed
// the label since. No more than `first` if the operator does not own it.
[[nodiscard]] LabelChange take_back_label(const Node& node, std::string_view key, LabelChange first = {});
// The operator's label `key` stays, and becomes that policy's. Its value from before the first policy stays recorded.
[[nodiscard]] LabelChange hand_over_label(const Node& node, std::string_view key, std::string_view policy);
// Ends the operator's ownership and leaves the label as it is.
[[nodiscard]] LabelChange release_label(const Node& node, std::string_view key);

// Adds a change to a patch of the same node.
void add_to(PatchNode& patch, const LabelChange& change);
// Why a contested label is not set, and what to do.
[[nodiscard]] std::string contested_text(std::string_view label, std::string_view node);

// What a person must know about the sharing labels of a node: a mode that is unknown, and labels that GPU Feature
// Discovery has left behind. They do not fit what the node serves, and no component corrects them.
[[nodiscard]] std::vector<Reason> label_problems(const Node& node, const NodeAssessment& assessment,
                                                 const PlannerSettings& settings);

}  // namespace gso
