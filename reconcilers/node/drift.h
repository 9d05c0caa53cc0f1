// What drift looks like, also in the state that people see, and drift that is left alone because of what the baseline
// knows about the node.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/node/assess.h"

namespace gso {

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

}  // namespace gso
