// The record keeps the last failures, and each one that is in force.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "reconcilers/fleet/fleet_index.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::kept_failures_test {
namespace {

class KeptFailures : public testing::Test {
 protected:
  KeptFailures() {
    fleet.settings.cluster_max_unavailable = {100, true};
    fleet.settings.settle = fleet.settings.projection = std::chrono::seconds(1);
    for (const char* name : {"n1", "n2"}) fleet.label(name, "policy", name);
  }
  static FleetSpec spec() {
    FleetSpec out;
    out.profiles = {{"any", "ts-4"}};
    for (const char* name : {"n1", "n2"}) {
      NodeSpec node;
      node.name = name;
      out.nodes.push_back(node);
    }
    return out;
  }
  // The policy of that name governs the node of that name.
  void replicas(const std::string& name, int count) {
    fleet.policy(fmt::format(R"(apiVersion: gpusharing.dev/v1alpha1
kind: SharingPolicy
metadata: {{name: {0}}}
spec:
  nodeSelector: {{matchLabels: {{policy: {0}}}}}
  priority: 5
  profile: {{inline: {{strategy: time-slicing, replicas: {1}}}}}
  rollout: {{canary: {{nodesPerGroup: 0}}, maxUnavailable: 100%, maxUnavailablePerGroup: 100%}}
)",
                             name, count));
  }
  void undo(const std::string& policy) {
    for (int second = 0; second < 30; ++second) fleet.tick();
    fleet.undo_newest_rollout(policy);
    for (int second = 0; second < 5; ++second) fleet.tick();
  }
  bool has_failure_of(const std::string& policy) {
    return std::ranges::any_of(fleet.index.impl().record->failures,
                               [&](const FleetRecord::Failure& failure) { return failure.policy == policy; });
  }
  FleetModel fleet{spec()};
};

TEST_F(KeptFailures, AProfileThatWasTakenBackStaysSoHoweverManyOthersAreTakenBackAfterwards) {
  ASSERT_TRUE(fleet.settle());
  for (const char* name : {"n1", "n2"}) replicas(name, 4);
  ASSERT_TRUE(fleet.settle());
  replicas("n1", 8);
  undo("n1");
  ASSERT_TRUE(fleet.settle());
  ASSERT_EQ(fleet.allocatable("n1", "nvidia.com/gpu"), 8) << "it is back at four replicas";
  ASSERT_TRUE(has_failure_of("n1"));
  for (std::size_t i = 0; i <= FleetRecord::kMostFailures; ++i) {
    replicas("n2", static_cast<int>(10 + i));
    undo("n2");
  }
  EXPECT_LE(fleet.index.impl().record->failures.size(), FleetRecord::kMostFailures);
  EXPECT_TRUE(has_failure_of("n1"));
  ASSERT_TRUE(fleet.settle());
  EXPECT_EQ(fleet.allocatable("n1", "nvidia.com/gpu"), 8);
}

}  // namespace
}  // namespace gso::test::kept_failures_test
