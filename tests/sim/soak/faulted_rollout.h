// One rollout on the simulator under a plan of faults: the manager, stores, planners and executor of production, with
// every write judged, carried to its end and compared with the same rollout without faults.
//
// A world is built and installed once. Each rollout then runs in a process of its own, forked from there: it costs its
// own steps only, and nothing of it can reach the next one. The same plan gives the same run each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/soak/fault_plan.h"

namespace gso::sim {

// What people do with the fleet after their first edit.
enum class Act {
  none,
  edited_again,  // Another profile, while nodes are in a change.
  edited_back,   // The first profile, while nodes are in a change.
  paused,        // The policy, while nodes are in a change; resumed after ten minutes.
  held,          // The last node, from before the edit on; released after ten minutes.
};

struct SoakWorld {
  const char* name;
  int nodes;
  const char *from, *to, *another;  // Names of profiles (tests/reconcilers/fleet_model).
  Act act = Act::none;
  int operators = 1;
  bool busy = false;  // A pod uses a GPU of the first node for five minutes after the edit.
};
[[nodiscard]] std::span<const SoakWorld> soak_worlds();

struct SoakOutcome {
  std::string wrong = {};         // Empty: it kept every invariant and came to its end.
  std::string stop = {};          // The named stop that a person had to end, or empty.
  std::vector<int> applied = {};  // How often each fault of the plan applied.
  std::string end = {};           // The state at the end, as text.
  std::uint64_t writes = 0, crashes = 0;
  std::uint64_t trace = 0;  // A hash of everything that was written, and when.
  double virtual_hours = 0;
  std::string log = {};  // What the operators logged; only of a rollout that went wrong.
  std::vector<FaultPlace> places = {};
};

class SoakBench {
 public:
  // Builds the world, and plays it once without faults. `problem()` says why that went wrong, if it did.
  explicit SoakBench(const SoakWorld& world);
  ~SoakBench();
  SoakBench(const SoakBench&) = delete;
  SoakBench& operator=(const SoakBench&) = delete;

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const SoakOutcome& reference() const { return reference_; }
  [[nodiscard]] const SoakWorld& world() const { return world_; }
  [[nodiscard]] SoakOutcome play(const FaultPlan& plan) const;

  // A rollout in progress in a process of its own.
  struct Run {
    int pid = -1, out = -1;
  };
  [[nodiscard]] Run begin(const FaultPlan& plan) const;
  // Waits for its end.
  [[nodiscard]] SoakOutcome finish(Run run) const;

 private:
  struct World;
  const SoakWorld& world_;
  std::unique_ptr<World> built_;
  std::string problem_;
  SoakOutcome reference_;
};

}  // namespace gso::sim
