// Row C2 of node_step.h, its half that the assessment decides: a node whose change has failed needs another one.
#include "reconcilers/model/policy.h"
#include "tests/reconcilers/node/node_in_fleet.h"

namespace gso::test::failed_node_test {
namespace {

// A node whose plugin does not start with the text that it was changed to.
class FailedNode : public NodeInFleet {
 protected:
  FailedNode() {
    fleet({}, false).settings.rollout.verify_timeout = std::chrono::minutes(1);
    EXPECT_TRUE(fleet_->settle());
    fleet_->crash_pods(kName, true);
    fleet_->edit("any", "ts-8");
    EXPECT_NE(until(300, [&] { return phase() == Phase::failed; }), -1);
    EXPECT_EQ(until_action(60), -1);
  }

  [[nodiscard]] std::string change() const { return fleet_->annotation_of(kName, kChangeAnnotation); }
};

TEST_F(FailedNode, C2_ItStaysFailedWhileNobodyActs) {
  EXPECT_EQ(until_action(300), -1);
  EXPECT_EQ(phase(), Phase::failed);
}

TEST_F(FailedNode, C2_ANewTargetMakesItPendingAndItsNextChangeReplacesThisOne) {
  const std::string before = change();
  fleet_->edit("any", "ts-2");
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(change(), before) << "until then it keeps the change that has failed";
  EXPECT_NE(until_action(300), -1);
  EXPECT_EQ(actions(), kRestarted) << "every pod: it is not known what they have loaded";
  fleet_->crash_pods(kName, false);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(change(), "");
}

TEST_F(FailedNode, C2_ARetryMakesItPendingAndTriesTheSameTargetAgain) {
  const std::string before = change();
  fleet_->policy(R"(
apiVersion: gpusharing.dev/v1alpha1
kind: SharingPolicy
metadata: {name: default, annotations: {gpusharing.dev/retry: "1"}}
spec: {rollout: {maxUnavailable: 100%, verifyTimeout: 1m}}
)");
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(change(), before);
  EXPECT_NE(until_action(300), -1);
  EXPECT_EQ(actions(), kRestarted);
  EXPECT_NE(until(300, [&] { return phase() == Phase::failed; }), -1) << "its pods crash still";
  EXPECT_EQ(until_action(300), -1) << "one retry is one attempt";
}

}  // namespace
}  // namespace gso::test::failed_node_test
