// Why a rollout stands still: nodes remain to be changed or have failed, none of them makes progress, and none will
// before a person, a calendar or another controller acts. Both statuses report it: Progressing is False, with this
// reason and message.
#pragma once

#include <optional>
#include <string>

namespace gso {

class RolloutView;

struct Standstill {
  std::string reason;     // CamelCase.
  std::string message;    // For people.
  std::string node = {};  // The one node that the operator must not change now, where that is the cause.
};
// nullopt: nothing remains to be done and no failure counts against the revision, a node makes progress or can start,
// or time alone ends the wait (a soak).
[[nodiscard]] std::optional<Standstill> standstill_of(const RolloutView& rollout);

// DaemonSets that have stopped replacing the pods of the rollout's nodes, for people; empty: they make progress, or no
// node waits for them.
[[nodiscard]] std::string stalled_daemonsets(const RolloutView& rollout);

}  // namespace gso
