// Nodes that stopped showing what they had loaded, and what they serve afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/objects.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

// --- What drift looks like, also in the state that people see, and drift that is left alone because of what the
// baseline knows about the node.

// Why drift of this node is not repaired although it could be: PreexistingDrift (it did not show its profile at the
// baseline either), or Unproven (it did, but its pods are older than the last change of the profile's text, which a
// restart would load; it still serves GPUs, and would lose what it serves). A node of unproven text that serves nothing
// has nothing to lose. Empty: neither, so that N7 repairs it.
[[nodiscard]] std::string_view baseline_excuse(const NodeAssessment& assessment);

// The state of a node in one word, as tables and metrics show it: UpToDate means the nodes that a policy counts as
// such.
[[nodiscard]] std::string_view state_name(const NodeAssessment& assessment);

// Of a drifting node, for people: what it shows instead of its profile, and why its pods are not restarted for that if
// they are not. Never empty.
[[nodiscard]] std::string drift_text(const NodeAssessment& assessment);

// --- What a node will certainly serve once it shows its target.

// How many of a resource. If the number of the node's GPUs is not known, as many as its capacity proves, else one
// GPU's. nullopt: the target says nothing about that resource.
[[nodiscard]] std::optional<std::int64_t> served_afterwards(const NodeAssessment& assessment,
                                                            std::string_view resource);
// The same of every resource that the target is about. Empty without a target.
[[nodiscard]] std::map<std::string, std::int64_t> served_afterwards(const NodeAssessment& assessment);
// The number is exact.
[[nodiscard]] bool is_count_known(const NodeAssessment& assessment, const std::string& resource);

// --- A label of one policy that becomes another policy's.

// The operator's label `key` stays, and becomes that policy's. Its value from before the first policy stays recorded.
[[nodiscard]] LabelChange hand_over_label(const Node& node, std::string_view key, std::string_view policy);

}  // namespace gso
