// What the status of a policy says of a stop: which nodes failed where, and what waits for a maintenance window.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "reconcilers/model/json_access.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::stop_texts_test {
namespace {

using Json = nlohmann::json;

std::string policy_with(const std::string& rollout) {
  return fmt::format(
      "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {{name: default}}\nspec: {{rollout: "
      "{{{}}}}}\n",
      rollout);
}

class StopTexts : public testing::Test {
 protected:
  // a01 to a03 run ts-4, under a policy with that spec.rollout.
  FleetModel& start(const std::string& rollout) {
    FleetSpec spec;
    spec.profiles = {{"any", "ts-4"}};
    spec.nodes = alike_nodes(3, "NVIDIA-A100-SXM4-40GB", "a");
    fleet_.emplace(std::move(spec));
    fleet_->settings.settle = Duration::zero();
    fleet_->settings.cluster_max_unavailable = {100, true};
    EXPECT_TRUE(fleet_->settle());
    fleet_->policy(policy_with(rollout));
    EXPECT_TRUE(fleet_->settle());
    fleet_->advance(std::chrono::seconds(5));
    return *fleet_;
  }
  // The number of status patches in that many seconds.
  std::ptrdiff_t tick(int times) {
    std::ptrdiff_t patches = 0;
    for (int i = 0; i < times; ++i) {
      patches += std::ranges::count_if(fleet_->tick().actions, [](const PlannedAction& planned) {
        return std::holds_alternative<PatchStatus>(planned.action);
      });
    }
    return patches;
  }
  // Progressing of the policy, as "True RollingOut: message".
  [[nodiscard]] std::string progressing() const {
    const Json status = Json::parse(fleet_->policy_status("default"), nullptr, false);
    for (const Json& condition : list_at(status, "conditions"))
      if (text_at(condition, "type") == "Progressing")
        return fmt::format("{} {}: {}", text_at(condition, "status"), text_at(condition, "reason"),
                           text_at(condition, "message"));
    return "no condition";
  }

  std::optional<FleetModel> fleet_;
};

TEST_F(StopTexts, AClosedWindowSaysHowManyNodesWaitForItAndWithWhat) {
  const std::string window = R"(maxUnavailable: 1, maintenanceWindows: [{cron: "0 2 * * *", duration: 1h}])";
  FleetModel& fleet = start("maxUnavailable: 1");
  fleet.policy(policy_with(window));
  fleet.edit("any", "ts-8");
  tick(3);
  const std::string why =
      "the next maintenance window opens at 2026-03-02T02:00:00Z; 3 of 3 nodes wait to change key any to "
      "v1-3c47c0f56c82ca33";
  EXPECT_EQ(progressing(), "False OutsideWindow: " + why);
  EXPECT_EQ(tick(200), 0);
}

// The canary of one group has failed, and in another group, which has passed its own, a node failed later.
TEST_F(StopTexts, OnlyTheCanaryOfItsGroupIsSaidToHaveFailedInTheCanary) {
  FleetModel& fleet = start(
      "maxUnavailable: 100%, maxUnavailablePerGroup: 100%, maxFailures: 9, verifyTimeout: 20s, canary: {nodesPerGroup: "
      "1, soak: 1s}");
  for (const char* name : {"t01", "t02"}) {
    NodeSpec node;
    node.name = name;
    node.product = "NVIDIA-T4";
    fleet.add_node(node);
  }
  ASSERT_TRUE(fleet.settle());
  for (const char* name : {"a02", "t01"}) fleet.crash_pods(name, true);
  fleet.edit("any", "ts-8");
  tick(60);
  EXPECT_EQ(progressing(), "False MaxFailures: 2 nodes (a02, t01) failed, t01 in the canary");
}

TEST_F(StopTexts, AStopByFailuresSaysThatARetryWaitsForAMaintenanceWindowToo) {
  const std::string spec = "maxUnavailable: 1, verifyTimeout: 20s, canary: {nodesPerGroup: 1, soak: 1s}";
  FleetModel& fleet = start(spec);
  fleet.crash_pods("a01", true);
  fleet.edit("any", "ts-8");
  tick(50);
  EXPECT_EQ(progressing(), "False MaxFailures: 1 node (a01) failed in the canary");
  fleet.policy(policy_with(spec + R"(, maintenanceWindows: [{cron: "0 2 * * *", duration: 1h}])"));
  tick(2);
  EXPECT_EQ(progressing(),
            "False MaxFailures: 1 node (a01) failed in the canary; a retry also waits: the next maintenance window "
            "opens at 2026-03-02T02:00:00Z");
}

}  // namespace
}  // namespace gso::test::stop_texts_test
