// What rolled out before: the recorded rollouts beside what the nodes should run and run now. `rollout history` prints
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/rollout/view.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

using RevisionCounts = std::map<std::string, std::int64_t>;  // By revision: nodes that have loaded it.

// By rollout. Nodes that have loaded a text that is not known are left out.
[[nodiscard]] std::map<RolloutKey, RevisionCounts> loaded_revisions(const World& world, const FleetIndex::Impl& index);

// "3 nodes run v1-2, 8 nodes run v1-1": of the policy's nodes, the most first. Empty: all of them run the same.
[[nodiscard]] std::string loaded_revisions_text(const World& world, const FleetIndex::Impl& index,
                                                std::string_view policy);

// A recorded rollout beside the cluster as it is now.
struct HistoryEntry {
  RolloutFacts facts;
  bool current = false;  // It is to what its nodes should run now.
  // Its nodes that run its revision; nullopt: unknown, because no record of the operator was read, or it is of a
  // template.
  std::optional<std::int64_t> running = {};
  std::string after = {};  // came_after().
};
[[nodiscard]] std::vector<HistoryEntry> history_of(const World& world, const FleetIndex& index,
                                                   const std::vector<RolloutFacts>& rollouts);

// "after an undo of default-any-v1-5": why the rollout before this one did not complete, if a person or failures ended
// it. `all`: all_rollouts(). Empty: it did, or none is on record.
[[nodiscard]] std::string came_after(const std::vector<RolloutFacts>& all, const SharingRollout& rollout);

// `columns`: of the terminal; 0: the output is none. On a narrow one columns are left out.
void print_rollout_history(const std::vector<HistoryEntry>& entries, std::size_t columns, std::ostream& out);
// The record of one, with the text that it rolls out, which is never broken.
void print_rollout_record(const HistoryEntry& entry, std::size_t columns, std::ostream& out);

}  // namespace gso
