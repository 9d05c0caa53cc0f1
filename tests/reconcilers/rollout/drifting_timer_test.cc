// Since when a node has drifted outlives the operator: the record knows, and every later look counts from there.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <variant>

#include "reconcilers/model/policy.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;

// Seconds until the operator writes a change to the node; at most `limit`.
int seconds_until_restarted(FleetModel& fleet, const std::string& node, int limit) {
  for (int second = 0; second < limit; ++second) {
    const Plan plan = fleet.tick();
    const bool begun = std::ranges::any_of(plan.actions, [&](const PlannedAction& planned) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      return patch != nullptr && patch->name == node && planned.disruptive;
    });
    if (begun) return second;
  }
  return limit;
}

TEST(DriftingTimer, ANodeThatHadDriftedForHalfTheTimeIsRestartedAfterTheOtherHalf) {
  FleetSpec spec;
  spec.nodes = alike_nodes(3);
  FleetModel fleet(spec);
  ASSERT_TRUE(fleet.settle());
  fleet.stick_labels("n01", true);
  fleet.label("n01", "nvidia.com/gpu.replicas", "1");
  const int patience = static_cast<int>(RolloutSpec().verify_timeout / 1s);
  ASSERT_EQ(seconds_until_restarted(fleet, "n01", patience / 2), patience / 2) << "not before verifyTimeout";
  fleet.restart_operator();
  const int waited = seconds_until_restarted(fleet, "n01", 2 * patience);
  EXPECT_GE(waited, patience / 2 - 5);
  EXPECT_LE(waited, patience / 2 + 65) << "as if it had drifted from the restart on";
}

}  // namespace
}  // namespace gso::test
