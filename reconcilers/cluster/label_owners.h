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
// Labels in gpusharing.dev/owned: the operator's, with what stood before (nullopt: nothing).
[[nodiscard]] std::map<std::string, std::optional<std::string>> owned_labels(const Node& node);
// The policy that wrote this label of the node; nullopt when somebody else did, or has changed it since. Empty where an
// earlier release wrote it.
[[nodiscard]] std::optional<std::string_view> label_writer(const Node& node, std::string_view label);
// The label is there, and was not written by the operator.
[[nodiscard]] bool is_label_of_others(const Node& node, std::string_view label);

}  // namespace gso
