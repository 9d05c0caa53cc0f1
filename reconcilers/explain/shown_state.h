// The state of a node as tables show it, and what it waits for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"

namespace gso {

class ReadingPass;  // reconcilers/explain/reading_pass.h

struct ShownState {
  std::string state;  // "UpToDate", "Blocked(OutsideWindow)", "Drift", "NoPlugin", …
  std::string message;
  bool in_trouble = false;  // The node is Failed or Blocked.
};
// If the namespace of the node's device plugin, or the operator's record, could not be read, the state is kUnknown,
// whatever the assessment concluded from the missing objects. A change that has failed shows in the node's annotation.
[[nodiscard]] ShownState shown_state(ReadingPass& pass, const Node& node);
inline constexpr std::string_view kUnknown = "Unknown";
// What a state means that is no phase (Drift, PreexistingDrift, Unproven), and what the operator does about such nodes;
// empty: of other states. `assumed`: no operator has recorded the fleet, so nothing is known of the time before;
// `operator_lease`: the Lease that an operator renews all the same, empty if none does.
[[nodiscard]] std::string state_note(std::string_view state, bool assumed, std::string_view operator_lease = {});
// A revision for people: "(invalid)" for the revision that represents an invalid text (kInvalidRevision).
[[nodiscard]] std::string shown_revision(std::string_view revision);
// The same of what the node has loaded: a node that serves GPUs has loaded some valid text, "(unknown)", before the
// operator saw an invalid one.
[[nodiscard]] std::string shown_loaded_revision(const Node& node, const NodeAssessment& assessment);
// The node has loaded a text that is not known, although the record has the invalid one of that time.
[[nodiscard]] bool loaded_text_is_unknown(const Node& node, const NodeAssessment& assessment);
// The pods that block a node in a change or at the back of the queue, with the text of the SharingRollout ("waits for
// team/job-1"); empty if no pod blocks it, or the node is not among the first 50 listed there.
[[nodiscard]] std::string blocking_pods_of(const World& world, std::string_view node);
// How the API server refuses what the operator requests on a node that waits: PDBRefuses, or Forbidden. Only the
// operator receives these answers, so they are read from the SharingRollout, as in blocking_pods_of(). nullopt: it
// refuses nothing.
[[nodiscard]] std::optional<Reason> refusal_of(const World& world, std::string_view node);
// That the stop of a policy still applies although the policy does not exist any more; empty: it has none, or exists.
[[nodiscard]] std::string gone_policy_text(const ReadingPass& pass, std::string_view policy);

}  // namespace gso
