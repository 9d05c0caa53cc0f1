// What a SharingRollout says of itself, read once, beside how its nodes are now, and what rolled out before it. Pure
// functions over a World.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/fleet/tally.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/command.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// What a SharingRollout's spec and status say, read once.
struct RolloutFacts {
  const SharingRollout* rollout = nullptr;
  std::string phase;  // "Starting" until the operator has said more.
  Reason ready;       // Of its condition Ready; its facts say what it waits for.
  std::int64_t wave = 0, total = 0, updated = 0, in_progress = 0, pending = 0, blocked = 0, failed = 0;
  std::string started_at, completed_at;
  std::string stopped_since;  // Since when the operator says that no node starts; empty: it does not.
  struct NodeRow {
    std::string name, state;
    Reason why;
  };
  std::vector<NodeRow> nodes;  // Blocked and failed ones, and those that wait, as the status names them.
  // Nodes wait for a new attempt, which takes this record's place before one starts: the switches in it do not count.
  bool earlier_attempt = false;
  [[nodiscard]] bool finished() const;
  // Its nodes start one after the other: it is neither finished nor stopped until a person acts.
  [[nodiscard]] bool advances() const;
  // Its phase is Progressing, and the operator says that nothing moves until somebody acts.
  [[nodiscard]] bool stands() const;
  // The phase for people, one word: a rollout that a person aborted is Aborted, although its phase is Failed, and one
  // that nobody paused is Stopped, although its phase is Paused.
  [[nodiscard]] std::string shown_phase() const;
  // The same, with the reason of a stop: "Stopped (MaxFailures)"; of one that stands: "Waiting (BudgetExhausted)".
  [[nodiscard]] std::string phase_text() const;
  [[nodiscard]] bool undone() const;
  // A revision that did not work.
  [[nodiscard]] bool went_wrong() const;
  // Only a person continues it: the revision failed, its text is invalid, or somebody ended it. Exit status 1.
  [[nodiscard]] bool is_stopped() const;
};
[[nodiscard]] RolloutFacts facts_of(const SharingRollout& rollout);
// By when they began, the newest first.
[[nodiscard]] std::vector<RolloutFacts> all_rollouts(const World& world);
// Whoever asks by `name`, which is of a SharingRollout, "policy/NAME", or empty for all, means it.
[[nodiscard]] bool is_named(const RolloutFacts& facts, std::string_view name);
// The policy of "policy/NAME", or nullopt.
[[nodiscard]] std::optional<std::string> policy_of(std::string_view name);
[[nodiscard]] RolloutKey rollout_key_of(const SharingRollout& rollout);
// The nodes of its policy, ConfigMap and key; null: there are none.
[[nodiscard]] const ProfileRollout* profile_rollout_of(const SharingRollout& rollout, const Index& index);
// The same; also null if they should run another revision.
[[nodiscard]] const ProfileRollout* present_rollout(const SharingRollout& rollout, const Index& index);
// Nodes whose workloads must end, or be let go by a budget, before the rollout goes on: nobody knows when.
[[nodiscard]] std::vector<std::string> waits_for_workloads(const RolloutFacts& facts);

// "" | NAME of a SharingRollout | policy/NAME, and what it may name.
struct RolloutChoice {
  std::string name;
  bool all = false;         // Several are fine.
  std::string_view hint{};  // What to do if none fits.
};
// The rollouts that are meant among those that `fits`. Errors (`invalid`) say which there are: none fits, several do
// and `all` is not set, the name does not exist.
[[nodiscard]] k8s::Result<std::vector<RolloutFacts>> choose(const World& world, const RolloutChoice& choice,
                                                            const std::function<bool(const RolloutFacts&)>& fits,
                                                            std::string_view what);

// "SharingPolicy defalt does not exist; found default, research; did you mean 'default'?"
[[nodiscard]] std::string missing_policy(const World& world, std::string_view name);
// The same, if `name` is "policy/NAME" and neither such a SharingPolicy nor a SharingRollout of it exists; empty: the
// name can mean something.
[[nodiscard]] std::string unknown_policy(const World& world, std::string_view name);

// A stop that a person has set, or a retry that ends one, and that the status does not show yet, because no operator
// has written it since.
struct RecordedStop {
  std::string phase;  // "Paused", "Aborted" or "Retry requested"; empty: none.
  Command resume;     // Ends it, and behind it what else must follow; empty: nothing must.
  [[nodiscard]] bool is_set() const { return !phase.empty(); }
};
// Of the rollout, or of its policy (`policy`: null if it does not exist).
[[nodiscard]] RecordedStop recorded_stop(const RolloutFacts& facts, const SharingPolicy* policy);
// The command that resumes what is paused: the policy, else the rollout. Empty: neither has the switch.
[[nodiscard]] Command resume_of(const SharingRollout& rollout, const SharingPolicy* policy);
// "X is aborted and paused: first `… rollout start P`, then `… rollout resume X`": a resume alone continues nothing.
// Empty: it is not both.
[[nodiscard]] std::string ended_and_paused(const SharingRollout& rollout);

// --- What rolled out before, and what the nodes run now.

using RevisionCounts = std::map<std::string, std::int64_t>;  // By revision: nodes that have loaded it.

// By rollout. Nodes that have loaded a text that is not known are left out.
[[nodiscard]] std::map<RolloutKey, RevisionCounts> loaded_revisions(const World& world, const Index& index);

// The same of the rollouts that `is_meant` names together, the most first.
[[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> running_revisions(
    const World& world, const Index& index, const std::function<bool(const RolloutKey&)>& is_meant);

// "now 11/12 up to date, 1 failed": of a rollout that is Completed, whose counts are those of then, if not all of its
// nodes run its revision now. Empty: they do, as many as then, or its revision is not what its nodes should run.
[[nodiscard]] std::string since_completion(const RolloutFacts& facts, const Index& index);
// "after an undo of default-any-v1-5": why the rollout before this one did not complete, if a person or failures ended
// it. `all`: all_rollouts(). Empty: it did, or none is on record.
[[nodiscard]] std::string came_after(const std::vector<RolloutFacts>& all, const SharingRollout& rollout);

}  // namespace gso
