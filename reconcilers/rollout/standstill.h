// What keeps a rollout, or one of its nodes, from going on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/node_step.h"

namespace gso {

// --- Nodes of a rollout that are Pending or in a change, and that the operator must not change now.

class RolloutView;

struct OutOfReach {
  // Reason (Held, DriverUpgrade, MIGChange, Quarantined, or NodesNotReady, which is not a Blocked reason) -> node ->
  // why.
  std::map<std::string, std::map<std::string, std::string>> nodes;
  // No other node of the rollout can continue: these nodes are all that is left, or its canary.
  bool stops_all = false;
  // The one node that stops the rollout; empty: several do, or none.
  [[nodiscard]] std::string only_one() const {
    const bool one = stops_all && nodes.begin()->second.size() == 1;
    return one ? nodes.begin()->second.begin()->first : std::string();
  }
};

// Of a node without a change, for people.
inline constexpr std::string_view kNotReadyText =
    "Node is NotReady: skipped until Ready; uses 1 slot of maxUnavailable";

// One node that is Pending or in a change: its reason there, and why. nullopt: the operator can change it.
[[nodiscard]] std::optional<Reason> node_out_of_reach(const NodeAssessment& assessment, const Node& node);

// --- What keeps a node in progress from showing its profile. Both statuses and the findings report this answer.

// Its code: of the obstacle, or of the container that waits (CrashLoopBackOff).
struct ChangeTrouble : Reason {
  enum class Kind : std::uint8_t {
    stands,     // The operator neither deletes the remaining pods nor gives up until the cause is gone.
    not_ready,  // The node is NotReady, and has not been for as long as verifyTimeout.
    container,  // A container of its new pods does not start; the code is the kubelet's.
    late,       // It does not show its profile for longer than usual.
  };
  Kind kind = Kind::late;
};

// --- What the groups of a rollout wait for, as one text of a status.

// What the nodes of one product wait for.
struct GroupWait {
  std::string product;
  Reason why;                             // BudgetExhausted, WaitingForWorkloads, or RollingOut behind a canary.
  std::vector<std::string> clauses = {};  // Of a full budget: its message in its parts.
};

// One text for all groups where they wait for the same. A full budget that several groups wait for is named once.
[[nodiscard]] std::string joined_waits(const std::vector<GroupWait>& groups);

// Of busy nodes, while as many nodes as allowed wait for their pods: those in `draining`, which `whose` ("policy a")
// lets wait at a time. `budget`: the setting whose half that is.
[[nodiscard]] std::string busy_nodes_text(const std::vector<std::string>& draining, std::int64_t most,
                                          std::string_view whose, std::string_view budget);

// --- What the Pending nodes of a rollout wait for while its gate is open. Statuses, and the commands that read them,
// use these texts.

// A node asks for a slot when it is Ready, not held, not deferred, and not cordoned behind an uncordoned canary. A
// deferred node asks for none before it is idle.
struct Waits {
  // Per group: the canary that the other nodes wait for, the end of its soak, the full budget and the nodes that hold
  // it, or the busy nodes whose pods must end before this group's. Empty: some node can start, or no node asks.
  std::string message;
  Facts facts;                             // What the message is about.
  std::vector<GroupWait> groups;           // The same by product; groups that wait for nothing are left out.
  bool some_start = false;                 // Some node can start, or will when its canary has soaked.
  bool has_slot = false;                   // Some node that asks has room in every budget, or needs none.
  std::optional<Reason> exhausted;         // If no node has a slot: the full budgets.
  std::map<std::string, Reason> deferred;  // If no node asks: the deferred nodes, and what each waits for.
  // Nodes of groups in which no node asks; the last ones are cordoned and wait for a canary that is not.
  std::vector<std::string> not_ready, held, behind_canary;
};

// "nodes start at 13:00:33Z unless …": while the rollout waits for its inputs to settle; empty: it does not.
[[nodiscard]] std::string start_after_settling(const RolloutView& rollout);

// Both statuses, while the rollout progresses: what its Pending nodes wait for, or else its first nodes in progress, or
// else those that drift. Never empty.
[[nodiscard]] std::string progress_text(const RolloutView& rollout);

}  // namespace gso
