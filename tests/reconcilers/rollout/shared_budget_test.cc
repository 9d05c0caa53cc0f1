// Moves of slices and rollouts share the budget of the cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::shared_budget_test {
namespace {

TEST(SharedBudget, AMoveInProgressHoldsASlotOfTheClusterAndIsNamed) {
  FleetSpec spec;
  spec.nodes = alike_nodes(3);
  FleetModel fleet(spec);
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
  const auto& [key, rollout] = *index.profile_rollouts.begin();
  const NodeAssessment* node = index.find(spec.nodes[0].name);
  ASSERT_NE(node, nullptr);
  RolloutViews views(snapshot, index);
  Pass pass(snapshot, index, "test", &views);
  EXPECT_TRUE(Slots(pass).free(key, rollout, *node));
  views.slices = {1, {"s1"}, {"s1"}};
  EXPECT_FALSE(Slots(pass).free(key, rollout, *node));
  EXPECT_THAT(Slots(pass).exhausted(key, rollout, *node), testing::HasSubstr("s1 (its slices change)"));
}

// A node with slices, in a cluster with one slot.
struct SliceNodeCase {
  std::string what;
  void (*set)(FleetModel& fleet, bool out);
  bool holds;
};
const SliceNodeCase kSliceNodeCases[] = {
    {"serves", [](FleetModel&, bool) {}, false},
    {"is NotReady", [](FleetModel& fleet, bool out) { fleet.set_ready("s1", !out); }, true},
    {"is cordoned", [](FleetModel& fleet, bool out) { fleet.cordon("s1", out); }, true},
};

TEST(SharedBudget, ANodeWithSlicesThatIsOutOfServiceHoldsASlotOfTheCluster) {
  for (const SliceNodeCase& each : kSliceNodeCases) {
    SCOPED_TRACE(each.what);
    FleetSpec spec;
    spec.nodes = alike_nodes(2);
    NodeSpec& slices = spec.nodes.emplace_back();
    slices.name = "s1";
    slices.labels = {{"nos.nebuly.com/gpu-partitioning", "mps"}};
    FleetModel fleet(spec);
    fleet.settings.cluster_max_unavailable = {1, false};
    ASSERT_TRUE(fleet.settle());
    fleet.forget_counts();
    each.set(fleet, true);
    fleet.edit("any", "mps-8");
    fleet.settle();
    EXPECT_EQ(fleet.patches("n01") == 0 && fleet.patches("n02") == 0, each.holds);
    each.set(fleet, false);
    EXPECT_TRUE(fleet.settle());
    EXPECT_EQ(fleet.allocatable("n01", kGpuResource), 16);
    EXPECT_EQ(fleet.allocatable("n02", kGpuResource), 16);
  }
}

}  // namespace
}  // namespace gso::test::shared_budget_test
