// What the Pending nodes of a rollout wait for while its gate is open.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

// --- What the groups of a rollout wait for, as one text of a status, and what of it is read back: whoever knows no
// more than the status reads it there, and an operator of another version can have written it.

// `groups`: each product with what its nodes wait for. One text for all groups where they wait for the same. A full
// budget that several groups wait for is named once.
[[nodiscard]] std::string joined_waits(const std::vector<std::pair<std::string, std::string>>& groups);

// Of busy nodes, while as many nodes as allowed wait for their pods: those in `draining`, which `whose` ("policy a")
// lets wait at a time. `budget`: the setting whose half that is.
[[nodiscard]] std::string busy_nodes_text(const std::vector<std::string>& draining, std::int64_t most,
                                          std::string_view whose, std::string_view budget);

// That text about the busy nodes of the group, out of what a status says of all groups; empty: it says no such thing.
[[nodiscard]] std::string busy_nodes_text_in(const std::string& said, std::string_view product);

// --- What the Pending nodes of a rollout wait for while its gate is open. Statuses, and the commands that read them,
// use these texts.

class RolloutView;

// A node asks for a slot when it is Ready, not held, not deferred, and not cordoned behind an uncordoned canary. A
// deferred node asks for none before it is idle.
struct Waits {
  // Per group: the canary that the other nodes wait for, the end of its soak, the full budget and the nodes that hold
  // it, or the busy nodes whose pods must end before this group's. Empty: some node can start, or no node asks.
  std::string message;
  std::map<std::string, std::string> of_group;  // The same by product; groups that wait for nothing are left out.
  bool some_start = false;                      // Some node can start, or will when its canary has soaked.
  bool has_slot = false;                        // Some node that asks has room in every budget, or needs none.
  std::string exhausted;                        // If no node has a slot: the full budgets.
  std::map<std::string, Reason> deferred;       // If no node asks: the deferred nodes, and what each waits for.
  // Nodes of groups in which no node asks; the last ones are cordoned and wait for a canary that is not.
  std::vector<std::string> not_ready, held, behind_canary;
};
[[nodiscard]] Waits waits_of(const RolloutView& rollout);

// "nodes start at 13:00:33Z unless …": while the rollout waits for its inputs to settle; empty: it does not.
[[nodiscard]] std::string start_after_settling(const RolloutView& rollout);

// Both statuses, while the rollout progresses: what its Pending nodes wait for, or else its first nodes in progress, or
// else those that drift. Never empty.
[[nodiscard]] std::string progress_text(const RolloutView& rollout);

}  // namespace gso
