// Who owns a label of a Node: the operator (annotation gpusharing.dev/owned), Node Feature Discovery (its own
// annotation), or a person or another tool.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/snapshot.h"

namespace gso {

// The reason of a node whose annotation gpusharing.dev/owned cannot be read.
inline constexpr std::string_view kOwnedUnreadable = "OwnedUnreadable";

// Labels that NFD owns on the node, by its annotation (the default-namespace prefix it strips is put back).
[[nodiscard]] std::set<std::string> nfd_owned(const Node& node);
// The mode of one node: `verify` if the settings say so, else the node's annotation gpusharing.dev/label-mode, else the
// settings. A value of the annotation that is no mode counts as `verify`.
[[nodiscard]] PlannerSettings::LabelMode label_mode_of(const Node& node, const PlannerSettings& settings);
// The value of that annotation if it is no mode; else empty.
[[nodiscard]] std::string_view unknown_label_mode(const Node& node);
// Whether the operator writes the sharing labels of a node: no other component does, or the mode requires it.
// `labeller`: a GPU Feature Discovery runs there.
[[nodiscard]] bool operator_owns_labels(const Node& node, bool labeller, const PlannerSettings& settings);

// Another client that keeps changing a label owns it: the operator sets a label that another client has changed at most
// kMostRewrites times within kRewriteWindow.
inline constexpr std::size_t kMostRewrites = 3;
inline constexpr Duration kRewriteWindow = std::chrono::hours(24);
// A label that the operator owns.
struct OwnedLabel {
  std::optional<std::string> before;  // The value before the operator's; nullopt: the label was absent.
  std::string policy;                 // Only for the label that selects the profile: the policy that wrote it.
  std::string value;               // What the operator wrote last: any other value is someone else's. Empty: unknown.
  std::vector<WallTime> rewrites;  // When the operator set it after another client had changed it; the last ones.
  // Another client has changed it since the operator wrote it. `now`: its present value; nullopt: absent.
  [[nodiscard]] bool is_changed(std::optional<std::string_view> now) const { return !value.empty() && now != value; }
  // When the operator is next allowed to set it although another client has changed it; a past time: it is now.
  [[nodiscard]] WallTime next_rewrite() const;
  friend bool operator==(const OwnedLabel&, const OwnedLabel&) = default;
};
using OwnedLabels = std::map<std::string, OwnedLabel>;  // By label.

// The annotation gpusharing.dev/owned: {"v":1,"labels":{"LABEL": {"before": previous value or null, "value": …}}}, with
// "policy" for the label that selects the profile, and "rewrites": [times] for one that another client has changed. A
// previous value alone, and the labels without the members v and labels, are read as well. A label that is no sharing
// label, does not select the profile and was written by no policy is ignored: the operator can have written no other.
// If the annotation cannot be read, or was written by a newer release, it is unknown which labels are the operator's:
// they stay as they are, the annotation is not written, and the node is Held until a person removes it.
struct OwnedOnNode {
  OwnedLabels labels;   // Empty: none, or unreadable.
  std::string problem;  // Not empty: the annotation is there and cannot be read.
};
[[nodiscard]] OwnedOnNode owned_on(const Node& node);
// The labels alone; empty if the operator owns none, or if the annotation cannot be read.
[[nodiscard]] OwnedLabels owned_labels(const Node& node);
// The annotation cannot be read.
[[nodiscard]] bool is_owner_unknown(const Node& node);
// The problem, and the command that lifts it; `problem`: OwnedOnNode::problem, not empty.
[[nodiscard]] std::string owner_unknown_text(const std::string& node, std::string_view problem);
// Empty if the operator owns none.
[[nodiscard]] std::string print_owned(const OwnedLabels& labels);
// The policy that wrote this label of the node; nullopt if no policy wrote it, or another client has changed it since.
[[nodiscard]] std::optional<std::string> label_writer(const Node& node, std::string_view label);
// The label exists, and the operator did not write it.
[[nodiscard]] bool is_label_of_others(const Node& node, std::string_view label);

}  // namespace gso
