// Fault plans: what goes wrong in one rollout, and where. A place is the n-th exchange of a kind from the edit on,
// taken from a run without faults, so that a planned fault meets a request or a view and not an idle moment. One seed
// decides a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/apiserver/faults.h"

namespace gso::sim {

// The exchanges of one kind that a run without faults has.
struct FaultPlace {
  std::string verb;      // get, list, create, patch, …; "watch": streams that are opened; "event": what they bring.
  std::string resource;  // "nodes"
  int count = 0;
};

// What can go wrong between the edit and the end of a rollout. All rules apply from the edit on.
using FaultPlan = std::vector<FaultRule>;

// "patch of nodes #3: crash_unanswered", "events of pods #2: latency 40s, 5 times".
[[nodiscard]] std::string describe(const FaultRule& rule);
// One to five faults at these places, which are not empty.
[[nodiscard]] FaultPlan make_plan(std::uint64_t seed, const std::vector<FaultPlace>& places);
// Each write of the run with each of the three crashes: one plan each.
[[nodiscard]] std::vector<FaultPlan> every_crash(const std::vector<FaultPlace>& places);

// Delta debugging (Zeller's ddmin): a part of `plan` that still fails and that needs each of its elements.
[[nodiscard]] FaultPlan shrink(const FaultPlan& plan, const std::function<bool(const FaultPlan&)>& fails);

}  // namespace gso::sim
