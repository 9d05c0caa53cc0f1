// Rollouts of a model fleet that combine many conditions: the kind of change, how it is staged, what fails, which pods
// block it, and when the operator is killed. One Combination is one rollout from the installation until nothing happens
// any more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gso::test {

// What one node does when it gets the new profile.
enum class Fault { none, plugin_crashes, sidecar_is_stuck, labels_stay_wrong, capacity_stays_wrong, never_ready };
inline constexpr int kFaults = 5;  // Without none.

// An edit while nodes are in a change.
enum class Superseding { none, by_another, by_the_old_one, by_a_broken_one };

struct Change {
  const char* from;
  const char* to;
  const char* another;  // Of a superseding edit.
  const char* repair;   // The profile of the final edit: a failed revision is not tried again.
};

struct Combination {
  Change change{"ts-4", "ts-8", "ts-6", "ts-5"};
  bool canary = false;
  bool percent = false;  // Budgets of 34 % and 50 %; else of one node.
  Fault fault = Fault::none;
  bool fault_in_canary = false;  // Else in a node that comes after it.
  int killed_every = 0;          // Writes after which the operator is killed, again and again; 0: never.
  int killed_from = 0;           // The first of these writes.
  bool not_ready = false;        // One node is NotReady from before the edit on, and one is lost during its change.
  bool pdb_refuses = false;      // workloads: Evict, and a budget that allows no eviction.
  bool window_closes = false;    // Fifteen seconds after the edit.
  Superseding superseding = Superseding::none;
  bool old_drift = false;        // 40 more nodes that do not show their profile when the operator is installed.
  bool kai = false;              // KAI shares a GPU of one node, and is about to on another.
  bool broken_before = false;    // One more node, which serves nothing since before the installation.
  bool cordoned_before = false;  // One more node, cordoned by a person so that a pod there can end.
  [[nodiscard]] std::string name() const;
};

enum class Extent {
  // Any three dimensions meet in each combination of the values that the simulated fleet distinguishes, changes by
  // their kind; each change meets any value.
  on_server,
  triples,     // Any three dimensions meet in each combination of their values, any four as yes and no.
  yes_and_no,  // The product of all dimensions as yes and no, 8,192. Values of more take turns.
};
[[nodiscard]] std::vector<Combination> all_combinations(Extent extent);
// The values of the first dimension.
[[nodiscard]] std::span<const Change> all_changes();

// What happened in a rollout, for tests of the driver itself.
struct RolloutTrace {
  std::int64_t writes = 0;  // Events not counted.
  std::int64_t kills = 0;
  std::int64_t starts = 0;
  std::int64_t steps = 0;
};

// Plays it with every invariant checked at every step; failures are reported to GoogleTest.
RolloutTrace play(const Combination& combination);

}  // namespace gso::test
