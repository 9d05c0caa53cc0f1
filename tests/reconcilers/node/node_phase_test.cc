// What people see of a node: its phase, and the reason that goes with it.
#include "reconcilers/node/node_phase.h"

#include <gtest/gtest.h>

#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"

namespace gso::test::node_phase_test {
namespace {

NodeAssessment in_phase(Phase phase, std::string_view reason, std::string_view holder) {
  NodeAssessment out;
  out.phase = phase;
  out.obstacle.code = reason;
  out.holder = holder;
  return out;
}

TEST(ShownReason, IsTheObstacleBeforeTheHolder) {
  EXPECT_EQ(shown_reason(in_phase(Phase::pending, "", kHeld)), kHeld);
  EXPECT_EQ(shown_reason(in_phase(Phase::up_to_date, "", kHeld)), "");
  EXPECT_EQ(shown_reason(in_phase(Phase::blocked, kMigEnabled, kDriverUpgrade)), kMigEnabled);
  EXPECT_EQ(shown_reason(in_phase(Phase::blocked, kChangeUnreadable, kHeld)), kChangeUnreadable);
  NodeAssessment restarts = in_phase(Phase::restarting, kMigEnabled, "");
  restarts.change = std::make_shared<NodeChange>();
  EXPECT_EQ(shown_reason(restarts), kMigEnabled);
  restarts.holder = kDriverUpgrade;
  EXPECT_EQ(shown_reason(restarts), kDriverUpgrade) << "of a change in progress";
}

// Whoever holds it: a person, another system, or an annotation that a person has to judge.
TEST(PhaseOf, IsHeldForEveryHolderOfANodeThatNeedsAChange) {
  EXPECT_EQ(phase_of(in_phase(Phase::pending, "", kHeld)), Phase::held);
  for (const std::string_view holder : {kDriverUpgrade, kMigChange, kQuarantined}) {
    EXPECT_EQ(phase_of(in_phase(Phase::blocked, holder, holder)), Phase::held) << holder;
    EXPECT_EQ(phase_of(in_phase(Phase::failed, "", holder)), Phase::held) << holder;
    EXPECT_EQ(phase_of(in_phase(Phase::up_to_date, "", holder)), Phase::up_to_date) << holder;
    EXPECT_EQ(phase_of(in_phase(Phase::blocked, kMigEnabled, holder)), Phase::blocked) << holder;
  }
  for (const std::string_view reason : {kChangeUnreadable, kDeferralUnreadable})
    EXPECT_EQ(phase_of(in_phase(Phase::blocked, reason, "")), Phase::held) << reason;
}

TEST(DescribeHolder, SaysWhatTheOperatorWaitsForAfterADriverUpgradeThatFailed) {
  Node node;
  node.meta.labels.set("nvidia.com/gpu-driver-upgrade-state", "upgrade-failed");
  EXPECT_EQ(describe_holder(kDriverUpgrade, node),
            "a driver upgrade has failed on the node (label nvidia.com/gpu-driver-upgrade-state=upgrade-failed): the "
            "operator continues once the driver's pod is Ready and the upgrade is done");
}

// A verified node and a daemon's restart depend on it: the kubelet's words for a container that does not start by
// itself.
TEST(IsServing, IsFalseWhateverKeepsAContainerFromStarting) {
  Pod pod;
  pod.phase = Interned("Running");
  pod.ready = true;
  pod.containers.resize(2);
  for (const char* reason : {"", "ContainerCreating", "PodInitializing"}) {
    pod.containers[1].waiting_reason = Interned(reason);
    EXPECT_TRUE(is_serving(pod)) << reason;
  }
  for (const char* reason :
       {"CrashLoopBackOff", "RunContainerError", "CreateContainerConfigError", "CreateContainerError", "ErrImagePull",
        "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}) {
    pod.containers[1].waiting_reason = Interned(reason);
    EXPECT_FALSE(is_serving(pod)) << reason;
  }
}

}  // namespace
}  // namespace gso::test::node_phase_test
