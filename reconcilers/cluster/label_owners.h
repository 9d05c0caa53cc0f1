// Who owns a label of a Node: the operator (annotation gpusharing.dev/owned), Node Feature Discovery (its own
// annotation), or a person or another tool.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Labels that NFD owns on the node, by its annotation (the default-namespace prefix it strips is put back).
[[nodiscard]] std::set<std::string> nfd_owned(const Node& node);
// Whether the operator writes the sharing labels of a node: no other component does, or the mode requires it.
// `labeller`: a GPU Feature Discovery runs there.
[[nodiscard]] bool operator_owns_labels(bool labeller, const PlannerSettings& settings);
// A label that the operator owns.
struct OwnedLabel {
  std::optional<std::string> before;  // The value before the operator's; nullopt: the label was absent.
  // Only for the label that selects the profile: the policy that wrote it, and the written value. Any other value
  // belongs to a person.
  std::string policy;
  std::string value;
  friend bool operator==(const OwnedLabel&, const OwnedLabel&) = default;
};
using OwnedLabels = std::map<std::string, OwnedLabel>;  // By label.

// The annotation gpusharing.dev/owned: {"label": previous value or null}; for the label that selects the profile
// {"label": {"before": …, "policy": …, "value": …}}. An annotation that cannot be read owns no label: the labels stay
// as they are.
[[nodiscard]] OwnedLabels owned_labels(const Node& node);
// Empty if the operator owns none.
[[nodiscard]] std::string print_owned(const OwnedLabels& labels);
// The policy that wrote this label of the node; nullopt if no policy wrote it, or another client has changed it since.
[[nodiscard]] std::optional<std::string> label_writer(const Node& node, std::string_view label);
// The label exists, and the operator did not write it.
[[nodiscard]] bool is_label_of_others(const Node& node, std::string_view label);

}  // namespace gso
