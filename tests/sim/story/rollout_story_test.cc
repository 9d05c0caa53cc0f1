// The rollout stories in virtual time, the invariants judged on every write. The same run on a real API server
// (tests/conformance/story_test.sh).
#include <gtest/gtest.h>

#include "tests/sim/story/virtual_world.h"

namespace gso::sim::rollout_story_test {
namespace {

void tell(const std::string& name) {
  tell_in_virtual_time(rollout_stories(), name);
}

TEST(RolloutStory, AStrategyChangeGoesThereAndBackWithinPercentBudgets) {
  tell("strategy-change");
}
TEST(RolloutStory, ACanaryThatFailsStopsTheRolloutAndAFixGoesOn) {
  tell("canary-fails");
}
TEST(RolloutStory, FailuresAfterTheCanaryRestoreAnInlineProfile) {
  tell("rollback");
}
TEST(RolloutStory, NodesThatAreNotReadyAreSkippedCountedAndRolledLater) {
  tell("not-ready");
}
TEST(RolloutStory, PodsInTheWayAreWaitedForOrEvictedWhenTheirBudgetAllowsIt) {
  tell("workloads");
}
TEST(RolloutStory, AWindowThatClosesMidWayLetsNodesInProgressFinishAndStartsNone) {
  tell("window-closes");
}
TEST(RolloutStory, AnEditSupersedesAnotherAndAnEditBackIsTheFastUndo) {
  tell("superseded");
}
TEST(RolloutStory, KilledAtItsWritesTheOperatorRestartsNoNodeTwice) {
  tell("killed");
}
TEST(RolloutStory, DriftFromBeforeTheInstallationIsLeftAloneUntilItIsAdopted) {
  tell("old-drift");
}
TEST(RolloutStory, NothingMovesUnapprovedPausedOrHeld) {
  tell("approval");
}
TEST(RolloutStory, AClusterPolicyPatchIsStagedUnderOnDeleteAndFollowedUnderRollingUpdate) {
  tell("cluster-policy");
}
TEST(RolloutStory, AReplacedConfigMapGetsItsKeyBackAndAPolicyThatGoesIsReverted) {
  tell("gitops");
}
TEST(RolloutStory, PodsAnnotatedAgainstEvictionStayUntilTheAnnotationIsTakenOff) {
  tell("eviction-annotations");
}
TEST(RolloutStory, PodsThatCannotSeeTheirProfileAreReplaced) {
  tell("stuck-pods");
}
TEST(RolloutStory, PodsThatCannotSeeTheirProfileAreReplacedIfTheyLeaveNoLastWords) {
  tell("silent-stuck-pods");
}
TEST(RolloutStory, KilledMpsDaemonsAreReportedAndALostNodeKeepsItsSlot) {
  tell("unclean-exits");
}
TEST(RolloutStory, DaemonSetRestartLeavesThePaceToTheDaemonSets) {
  tell("daemonset-restart");
}
TEST(RolloutStory, LabelsThatVanishChangeNoBudgetNoGroupAndNoCanary) {
  tell("labels-vanish");
}
TEST(RolloutStory, ANodeUnderADriverUpgradeIsLeftAlone) {
  tell("driver-upgrade");
}
TEST(RolloutStory, ANodeThatTheMigManagerCutsIsLeftAlone) {
  tell("mig-change");
}
TEST(RolloutStory, ANodeWhoseGpusDraOffersTooIsNotRestarted) {
  tell("offered-twice");
}
TEST(RolloutStory, NodesWhoseGpusKaiSharesAreNotRolledToReplicas) {
  tell("shared-by-kai");
}
TEST(RolloutStory, AGpuThatDiesIsReportedAndRestartsNobody) {
  tell("gpu-dies");
}
TEST(RolloutStory, ThereAreTwentyThree) {
  EXPECT_EQ(rollout_stories().size(), 23U);
}

}  // namespace
}  // namespace gso::sim::rollout_story_test
