// Moves of slices and rollouts share the budget of the cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::shared_budget_test {
namespace {

TEST(SharedBudget, AMoveInProgressHoldsASlotOfTheClusterAndIsNamed) {
  FleetModel fleet(spec_of(3, "mps-4"));
  fleet.settings.cluster_max_unavailable = {1, false};
  ASSERT_TRUE(fleet.settle());
  fleet.edit("any", "mps-8");
  fleet.plan();
  Index& index = fleet.index.impl();
  const Snapshot snapshot{.world = fleet.world,
                          .now = fleet.now,
                          .timers = fleet.timers,
                          .consumers = fleet.consumers,
                          .settings = fleet.settings};
  const NodeAssessment* node = index.find("n01");
  ASSERT_NE(node, nullptr);
  RolloutViews views(snapshot, index);
  Pass pass(snapshot, index, "test", &views);
  const RolloutView& rollout = *views.find(index.profile_rollouts.begin()->first);
  EXPECT_TRUE(Slots(pass).has_room(rollout, *node));
  views.slices = {1, {"s1"}};
  EXPECT_FALSE(Slots(pass).has_room(rollout, *node));
  EXPECT_THAT(Slots(pass).exhausted(rollout, *node), testing::HasSubstr("s1 (its slices change)"));
}

}  // namespace
}  // namespace gso::test::shared_budget_test
