// The rows N1 to N8 of node_step.h: the phase of a node without a change, and what the planners then do with it.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kName = "n01";

// Two nodes that run `ts-4`, one of them `kName`.
class NodeWithoutChange : public testing::Test {
 protected:
  FleetModel& fleet(FleetSpec spec = {}, bool settled = true) {
    spec.profiles = {{"any", "ts-4"}, {"other", "ts-2"}};
    spec.nodes = alike_nodes(2);
    fleet_ = std::make_unique<FleetModel>(spec);
    fleet_->settings.cluster_max_unavailable = fleet_->settings.rollout.max_unavailable = {100, true};
    if (settled) {
      EXPECT_TRUE(fleet_->settle());
    }
    return *fleet_;
  }

  Phase phase() {
    (void)fleet_->plan();
    const NodeAssessment* a = fleet_->index.assessment(kName);
    return a == nullptr ? Phase::unmanaged : phase_of(*a);
  }
  std::string_view reason() { return fleet_->index.assessment(kName)->reason; }

  // What one pass does with the node: the reasons of its patches, and "delete" for each of its pods.
  std::vector<std::string> actions() {
    std::vector<std::string> out;
    for (const PlannedAction& planned : fleet_->plan().actions) {
      if (planned.node != kName) continue;
      out.push_back(std::holds_alternative<DeletePod>(planned.action) ? "delete" : planned.reason);
    }
    return out;
  }
  using Actions = std::vector<std::string>;

  std::set<std::string> findings() {
    std::set<std::string> out;
    for (const Finding& finding : fleet_->plan().findings) {
      if (finding.object.name == kName) out.insert(finding.reason);
    }
    return out;
  }

  // Seconds until the pass that does something with the node, at most `limit`; -1: none.
  int until_action(int limit) {
    for (int second = 0; second < limit; ++second) {
      if (!actions().empty()) return second;
      fleet_->tick();
    }
    return -1;
  }

  std::unique_ptr<FleetModel> fleet_;
};

TEST_F(NodeWithoutChange, N1_AChangeThatCannotBeReadHoldsTheNodeUntilAPersonRemovesIt) {
  fleet().annotate(kName, kChangeAnnotation, "{\"v\":1");
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::held);
  EXPECT_EQ(reason(), kChangeUnreadable);
  EXPECT_TRUE(findings().contains(std::string(kChangeUnreadable)));
  EXPECT_EQ(until_action(1800), -1);
  fleet_->annotate(kName, kChangeAnnotation, std::nullopt);
  EXPECT_EQ(phase(), Phase::pending);
}

TEST_F(NodeWithoutChange, N2_ANodeWithoutPluginIsUnmanagedAndLosesWhatAChangeLeftAfterTwoMinutes) {
  fleet().edit("any", "mps-8");
  EXPECT_NE(until_action(300), -1) << "the change begins";
  fleet_->tick();
  ASSERT_NE(fleet_->annotation_of(kName, kChangeAnnotation), "");
  fleet_->set_daemonsets_there(false);
  EXPECT_EQ(phase(), Phase::unmanaged);
  const int waited = until_action(600);
  EXPECT_GE(waited, 120);
  EXPECT_LE(waited, 125);
  EXPECT_EQ(actions(), Actions{std::string(kAbandoned)});
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->annotation_of(kName, kChangeAnnotation), "");
  EXPECT_FALSE(fleet_->node(kName).unschedulable);
}

TEST_F(NodeWithoutChange, N2_ANodeThatNosTakesOverLosesTheMarksAtOnce) {
  fleet().edit("any", "mps-8");
  for (const char* node : {kName, "n02"}) fleet_->use(node, std::string("job-") + node, std::string(kGpuResource), 1);
  EXPECT_NE(until_action(300), -1) << "it begins to wait for its workload";
  fleet_->tick();
  ASSERT_TRUE(fleet_->node(kName).unschedulable);
  fleet_->label(kName, std::string(kNosPartitioning), "mps");
  EXPECT_EQ(phase(), Phase::unmanaged);
  EXPECT_LE(until_action(10), 1);
}

TEST_F(NodeWithoutChange, N3_ANodeWithoutBaselineIsRecordedAndNotChanged) {
  fleet({}, false);
  EXPECT_EQ(phase(), Phase::unrecorded);
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(actions(), Actions{});
}

TEST_F(NodeWithoutChange, N4_ANodeWithoutValidTargetIsBlockedAndKeepsWhatItRuns) {
  fleet().edit("any", "broken");
  EXPECT_EQ(phase(), Phase::blocked);
  EXPECT_EQ(reason(), kConfigInvalid);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 0);
}

TEST_F(NodeWithoutChange, N5_ANodeThatLoadedByItselfIsRecordedOnceItShowsItsProfile) {
  NodeSpec joins;
  joins.name = "n03";
  fleet().advance(10min);
  fleet_->add_node(joins);
  (void)fleet_->plan();
  EXPECT_EQ(phase_of(*fleet_->index.assessment("n03")), Phase::verifying);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(phase_of(*fleet_->index.assessment("n03")), Phase::up_to_date);
  EXPECT_NE(fleet_->annotation_of("n03", kRevisionAnnotation), "");
  EXPECT_EQ(fleet_->restarts("n03", "plugin"), 1) << "its first pod, and no other";
}

TEST_F(NodeWithoutChange, N6_ANodeWhosePodsAreReplacedByRollingUpdateIsOnlyFollowed) {
  fleet().roll_templates("other");
  std::set<Phase> seen;
  for (int second = 0; second < 120; ++second) {
    seen.insert(phase());
    for (const std::string& action : actions()) EXPECT_NE(action, "delete") << "the DaemonSet controller does that";
    fleet_->tick();
  }
  EXPECT_TRUE(seen.contains(Phase::following_daemonset));
  EXPECT_EQ(phase(), Phase::up_to_date);
}

TEST_F(NodeWithoutChange, N7_ANodeThatRunsItsTargetIsLeftAloneAndRepairedIfItStopsShowingIt) {
  fleet();
  EXPECT_EQ(phase(), Phase::up_to_date);
  EXPECT_EQ(until_action(300), -1);
  fleet_->stick_sidecars(kName, true);
  fleet_->label(kName, std::string(kGpuReplicas), "2");
  EXPECT_EQ(phase(), Phase::up_to_date) << "a label that is wrong for a moment changes nothing";
}

TEST_F(NodeWithoutChange, N8_ANodeThatNeedsAChangeIsPendingUntilItStarts) {
  fleet().edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::pending);
  EXPECT_EQ(actions(), Actions{}) << "the edit has not settled";
  EXPECT_NE(until_action(300), -1);
}

TEST_F(NodeWithoutChange, N8_AHolderHoldsItAndNothingStarts) {
  fleet().annotate(kName, kHoldAnnotation, "true");
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::held);
  EXPECT_EQ(until_action(600), -1);
  fleet_->annotate(kName, kHoldAnnotation, std::nullopt);
  EXPECT_EQ(phase(), Phase::pending);
}

TEST_F(NodeWithoutChange, N8_ADeferralThatCannotBeReadHoldsIt) {
  fleet().annotate(kName, kDeferredAnnotation, "tomorrow");
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::held);
  EXPECT_EQ(reason(), kDeferralUnreadable);
  EXPECT_EQ(until_action(600), -1);
}

TEST_F(NodeWithoutChange, N8_AnObstacleBlocksItAndIsWrittenOnItOnce) {
  fleet().taint(kName, {{k8s::Interned("maintenance"), k8s::Interned("true"), k8s::Interned("NoSchedule")}});
  fleet_->edit("any", "ts-8");
  EXPECT_EQ(phase(), Phase::blocked);
  EXPECT_EQ(reason(), kTaintNotTolerated);
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->label_of(kName, kStateLabel), kStateBlocked);
  EXPECT_EQ(fleet_->restarts(kName, "plugin"), 0);
  EXPECT_EQ(actions(), Actions{});
}

}  // namespace
}  // namespace gso::test
