// `rollout start --dry-run`: which nodes start first, and what the others wait for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::first_starts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class FirstStartsTest : public testing::Test {
 protected:
  static FleetSpec spec() {
    FleetSpec out;
    out.profiles = {{"any", "ts-4"}};
    out.nodes = alike_nodes(4);
    return out;
  }
  FirstStartsTest() { EXPECT_TRUE(fleet.settle()); }
  // As the command does, with the pods of every node.
  FirstStarts found() {
    for (const char* node : {"n01", "n02", "n03", "n04"}) fleet.consumers[node].listed_at = one_look(fleet.now);
    return first_starts(fleet.world, fleet.settings, fleet.now, fleet.consumers, "default");
  }

  FleetModel fleet{spec()};
};

TEST_F(FirstStartsTest, OfARevisionThatIsNewTheCanaryComesFirstAndTheOthersWaitForIt) {
  fleet.edit("any", "ts-8");
  const FirstStarts first = found();
  EXPECT_THAT(first.nodes, ElementsAre("n01"));
  EXPECT_THAT(first.waits, ElementsAre(Pair("n02", HasSubstr("waits for the canary n01")),
                                       Pair("n03", HasSubstr("waits for the canary n01")),
                                       Pair("n04", HasSubstr("waits for the canary n01"))));
}

// One of four nodes may be out of service (10%, rounded up), in the group as well.
TEST_F(FirstStartsTest, WithoutACanaryTheBudgetDecides) {
  fleet.policy(
      "{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {name: default}, spec: {rollout: "
      "{canary: {nodesPerGroup: 0}}}}");
  fleet.edit("any", "ts-8");
  const FirstStarts first = found();
  EXPECT_THAT(first.nodes, ElementsAre("n01"));
  EXPECT_THAT(first.waits, testing::SizeIs(3));
  EXPECT_THAT(first.waits.at("n02"), testing::AllOf(HasSubstr("n01 hold"), HasSubstr("(maxUnavailable)"),
                                                    HasSubstr("(--cluster-max-unavailable)")));
}

// The operator records a text that returns before it starts a node for it.
TEST_F(FirstStartsTest, ARevisionThatReturnsIsRecordedFirst) {
  fleet.edit("any", "ts-8");
  EXPECT_TRUE(fleet.settle());
  fleet.edit("any", "ts-4");
  EXPECT_THAT(found().nodes, ElementsAre("n01"));
}

// The annotation of its failed change stays until the next one takes its place.
TEST_F(FirstStartsTest, AFailedCanaryThatIsRetriedStartsFirst) {
  fleet.policy(
      "{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {name: default}, "
      "spec: {rollout: {verifyTimeout: 30s}}}");
  fleet.crash_pods("n01", true);
  fleet.edit("any", "ts-8");
  for (int i = 0; i < 60; ++i) (void)fleet.tick();
  ASSERT_EQ(fleet.label_of("n01", kStateLabel), kStateFailed);
  fleet.policy(
      "{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {name: default, annotations: "
      "{gpusharing.dev/retry: \"1\"}}, spec: {rollout: {verifyTimeout: 30s}}}");
  const FirstStarts first = found();
  EXPECT_THAT(first.nodes, ElementsAre("n01"));
  EXPECT_FALSE(first.waits.contains("n01")) << first.waits.at("n01");
  EXPECT_THAT(first.waits.at("n02"), testing::Not(HasSubstr("queue")));
}

// A change to MPS waits for the pods of a node; more replicas do not.
TEST_F(FirstStartsTest, ANodeInUseAndAHeldOneAreNotFirst) {
  fleet.edit("any", "mps-8");
  fleet.use("n01", "train", "nvidia.com/gpu", 1);
  fleet.annotate("n02", "gpusharing.dev/hold", "true");
  const FirstStarts first = found();
  EXPECT_THAT(first.nodes, ElementsAre("n03"));
  EXPECT_THAT(first.waits, testing::Contains(Pair("n02", HasSubstr("gpusharing.dev/hold"))));
}

TEST_F(FirstStartsTest, UnderAPauseNoneStartsAndAllWaitForItsEnd) {
  fleet.policy(
      "{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {name: default}, spec: {rollout: "
      "{paused: true}}}");
  fleet.edit("any", "ts-8");
  const FirstStarts first = found();
  EXPECT_THAT(first.nodes, IsEmpty());
  EXPECT_THAT(first.waits, testing::SizeIs(4));
  EXPECT_THAT(first.waits.at("n01"), HasSubstr("Paused: "));
}

}  // namespace
}  // namespace gso::test::first_starts_test
