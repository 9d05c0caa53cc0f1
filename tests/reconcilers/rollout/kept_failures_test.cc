// The record keeps the last failures, and each one that is in force.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "reconcilers/fleet/fleet_index.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::kept_failures_test {
namespace {

TEST(KeptFailures, AProfileThatWasTakenBackStaysSoHoweverManyOthersAreTakenBackAfterwards) {
  FleetModel fleet(spec_of(2));
  free_cluster_budget(fleet);
  fleet.settings.settle = fleet.settings.projection = std::chrono::seconds(1);
  // The policy of that name governs the node of that name.
  const auto replicas = [&](const std::string& name, int count) {
    fleet.label(name, "policy", name);
    fleet.policy(policy_of(
        fmt::format("nodeSelector: {{matchLabels: {{policy: {}}}}}, priority: 5, profile: {{inline: {{strategy: "
                    "time-slicing, replicas: {}}}}}, rollout: {{canary: {{nodesPerGroup: 0}}, maxUnavailable: 100%, "
                    "maxUnavailablePerGroup: 100%}}",
                    name, count),
        name));
  };
  const auto undo = [&](const std::string& policy) {
    tick(fleet, 30);
    fleet.undo_newest_rollout(policy);
    tick(fleet, 5);
  };
  const auto& record = fleet.index.impl().record;
  const auto is_kept = [&] {
    return std::ranges::any_of(record->failures, [](const FleetRecord::Failure& it) { return it.policy == "n01"; });
  };
  ASSERT_TRUE(fleet.settle());
  for (const char* name : {"n01", "n02"}) replicas(name, 4);
  ASSERT_TRUE(fleet.settle());
  replicas("n01", 8);
  undo("n01");
  ASSERT_TRUE(fleet.settle());
  ASSERT_EQ(fleet.allocatable("n01", "nvidia.com/gpu"), 8) << "it is back at four replicas";
  ASSERT_TRUE(is_kept());
  for (std::size_t i = 0; i <= FleetRecord::kMostFailures; ++i) {
    replicas("n02", static_cast<int>(10 + i));
    undo("n02");
  }
  EXPECT_LE(record->failures.size(), FleetRecord::kMostFailures);
  EXPECT_TRUE(is_kept());
  ASSERT_TRUE(fleet.settle());
  EXPECT_EQ(fleet.allocatable("n01", "nvidia.com/gpu"), 8);
}

}  // namespace
}  // namespace gso::test::kept_failures_test
