// SharingRollouts as people ask for them: which one is meant, and how it is shown. Pure functions over a World.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "k8sclient/value/error.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// What a SharingRollout's spec and status say, read once.
struct RolloutFacts {
  const SharingRollout* rollout = nullptr;
  std::string phase;  // "Starting" until the operator has said more.
  std::string reason;
  std::string message;
  std::int64_t wave = 0, total = 0, updated = 0, in_progress = 0, pending = 0, blocked = 0, failed = 0;
  std::string started_at, completed_at;
  std::string stopped_since;  // Since when the operator says that no node starts; empty: it does not.
  struct NodeRow {
    std::string name, state, reason, message;
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
[[nodiscard]] RolloutKey rollout_key_of(const SharingRollout& rollout);
// The nodes of its policy, ConfigMap and key; null: there are none.
[[nodiscard]] const ProfileRollout* profile_rollout_of(const SharingRollout& rollout, const FleetIndex::Impl& index);
// The same; also null if they should run another revision.
[[nodiscard]] const ProfileRollout* present_rollout(const SharingRollout& rollout, const FleetIndex::Impl& index);
// "[####----] 7/12 up to date, 1 in progress, 4 pending, 0 blocked, 0 failed": progress_bar() and the counts. Nodes
// that failed come first: "[####----] 7/12 up to date, 1 failed, 1 in progress, 3 pending, 0 blocked".
[[nodiscard]] std::string counts_text(const RolloutFacts& facts);
// With the counts of the nodes as they are now, by which their names are shown beside it: the status can be older. As
// it is, where the rollout has ended, or its revision is not what its nodes should run.
[[nodiscard]] RolloutFacts with_present_counts(RolloutFacts facts, const FleetIndex::Impl& index);
// "now 11/12 up to date, 1 failed": of a rollout that is Completed, whose counts are those of then, if not all of its
// nodes run its revision now. Empty: they do, as many as then, or its revision is not what its nodes should run.
[[nodiscard]] std::string since_completion(const RolloutFacts& facts, const FleetIndex::Impl& index);

// A stop that a person has set, or a retry that ends one, and that the status does not show yet, because no operator
// has written it since.
struct RecordedStop {
  std::string phase;   // "Paused", "Aborted" or "Retry requested"; empty: none.
  std::string resume;  // The command that ends it, and behind it what else must follow; empty: nothing must.
  [[nodiscard]] bool is_set() const { return !phase.empty(); }
};
// Of the rollout, or of its policy (`policy`: null if it does not exist).
[[nodiscard]] RecordedStop recorded_stop(const RolloutFacts& facts, const SharingPolicy* policy);
// The command that resumes what is paused: the policy, else the rollout. Empty: neither has the switch.
[[nodiscard]] std::string resume_of(const SharingRollout& rollout, const SharingPolicy* policy);
// "X is aborted and paused: first `… rollout start P`, then `… rollout resume X`": a resume alone continues nothing.
// Empty: it is not both.
[[nodiscard]] std::string ended_and_paused(const SharingRollout& rollout);
// By when they began, the newest first.
[[nodiscard]] std::vector<RolloutFacts> all_rollouts(const World& world);

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
// The policy of "policy/NAME", or nullopt.
[[nodiscard]] std::optional<std::string> policy_of(std::string_view name);

// "SharingPolicy defalt does not exist; found default, research; did you mean 'default'?"
[[nodiscard]] std::string missing_policy(const World& world, std::string_view name);
// The same, if `name` is "policy/NAME" and neither such a SharingPolicy nor a SharingRollout of it exists; empty: the
// name can mean something.
[[nodiscard]] std::string unknown_policy(const World& world, std::string_view name);

// The most nodes in a change that `rollout status` lists for a rollout or a wait.
inline constexpr std::size_t kMostListedSteps = 20;
// Behind what an operator reported last, which can name a time at which nodes start.
inline constexpr std::string_view kNothingStarts = "; no node starts until an operator runs";

// Nodes with the reasons that a status names, then those in a change with their steps, each node once. Nothing, if
// there are none.
void print_node_table(const std::vector<RolloutFacts::NodeRow>& nodes, const std::vector<NodeStep>& steps,
                      std::ostream& out);

// "[######..................]"
[[nodiscard]] std::string progress_bar(std::int64_t done, std::int64_t total);
// Nodes whose workloads must end, or be let go by a budget, before the rollout goes on: nobody knows when.
[[nodiscard]] std::vector<std::string> waits_for_workloads(const RolloutFacts& facts);
// What `rollout status` prints about a rollout besides its facts.
struct RolloutOutlook {
  std::string estimate;           // Left out where the rollout waits for workloads, or for a node to be Ready.
  std::vector<NodeStep> steps;    // Of its nodes in progress.
  std::vector<std::string> next;  // The commands of way_out().
  RecordedStop stop;
  bool has_operator = true;            // Else the status is the last one that an operator wrote, and foretells nothing.
  std::vector<std::string> held = {};  // As in WaitOutlook.
  bool nodes_unread = false;           // What the nodes run is not known: the counts are those of the status.
  std::string failures = {};           // failures_behind().
  std::string since_completion = {};   // since_completion().
  std::string after = {};              // came_after().
  std::string replaced_by = {};        // The revision of an edit that no operator has seen: the status is not of that.
};
void print_rollout_status(const RolloutFacts& facts, const RolloutOutlook& outlook, k8s::WallTime now,
                          std::ostream& out);
[[nodiscard]] nlohmann::ordered_json rollout_json(const RolloutFacts& facts);

}  // namespace gso
