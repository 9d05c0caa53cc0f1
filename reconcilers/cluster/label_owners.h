// Who owns a label of a Node: the operator, by its annotation gpusharing.dev/owned; Node Feature Discovery, by its own;
// or anybody else.
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
// Whether the operator writes the sharing labels of a node: nobody else does, or the mode says so. `labeller`: a GPU
// Feature Discovery runs there.
[[nodiscard]] bool labels_are_ours(bool labeller, const PlannerSettings& settings);
// A label that is the operator's.
struct OwnedLabel {
  std::optional<std::string> before;  // What stood there before; nullopt: nothing.
  // Of the label that selects the profile: the policy that wrote it, and what it wrote. Another value is a person's.
  std::string policy;
  std::string value;
  friend bool operator==(const OwnedLabel&, const OwnedLabel&) = default;
};
using OwnedLabels = std::map<std::string, OwnedLabel>;  // By label.

// The annotation gpusharing.dev/owned: {"label": what stood before, or null}; of the label that selects the profile
// {"label": {"before": …, "policy": …, "value": …}}. What cannot be read owns nothing: such labels are left as they
// are.
[[nodiscard]] OwnedLabels owned_labels(const Node& node);
// Empty where there are none.
[[nodiscard]] std::string print_owned(const OwnedLabels& labels);
// The policy that wrote this label of the node; nullopt when somebody else did, or has changed it since.
[[nodiscard]] std::optional<std::string> label_writer(const Node& node, std::string_view label);
// The label is there, and was not written by the operator.
[[nodiscard]] bool is_label_of_others(const Node& node, std::string_view label);

}  // namespace gso
