// What is planned while the stores do not show the operator's own writes to some nodes yet.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/same_plan_checks.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::nodes_being_written_test {
namespace {

using namespace std::chrono_literals;

// Four nodes; at most `budget` of them are out of service at once.
class NodesBeingWritten : public testing::Test {
 protected:
  FleetModel& fleet(std::int64_t budget, std::int64_t canaries) {
    FleetSpec spec = spec_of(4, "mps-4");
    spec.profiles["same"] = "mps-4";
    fleet_ = std::make_unique<FleetModel>(spec);
    free_cluster_budget(*fleet_);
    fleet_->settings.rollout.max_unavailable = fleet_->settings.rollout.max_unavailable_per_group = {budget, false};
    fleet_->settings.rollout.canary_nodes_per_group = canaries;
    EXPECT_TRUE(fleet_->settle());
    return *fleet_;
  }

  // Names of the nodes that the plan patches, and of those with pods that it deletes.
  std::vector<std::string> nodes_of(const Plan& plan) {
    std::vector<std::string> out;
    for (const PlannedAction& planned : plan.actions)
      if (!planned.node.empty()) out.push_back(planned.node);
    return out;
  }

  // Applies everything of the plan but the patch of that node, which is handed over and not answered.
  void hand_over(const Plan& plan, const std::string& node) {
    for (const PlannedAction& planned : plan.actions) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      if (patch == nullptr || patch->name != node) {
        fleet_->apply(planned);
        continue;
      }
      const bool change = patch->set_annotations.contains(std::string(kChangeAnnotation));
      fleet_->world.nodes_being_written[node] = change ? std::make_shared<const PatchNode>(*patch) : nullptr;
      fleet_->index.note_node_changed(node);
    }
  }
  void answer(const std::string& node) {
    fleet_->world.nodes_being_written.erase(node);
    fleet_->index.note_node_changed(node);
  }
  // The next plan that does something with a node.
  Plan next_plan() {
    for (int second = 0; second < 600; ++second) {
      Plan plan = fleet_->plan();
      if (!nodes_of(plan).empty()) return plan;
      fleet_->apply(plan);
      fleet_->advance(1s);
    }
    ADD_FAILURE() << "no plan does anything with a node";
    return {};
  }
  // No node gets anything for that time.
  void expect_nothing_for(int seconds) {
    for (int second = 0; second < seconds; ++second) {
      const Plan plan = fleet_->plan();
      EXPECT_EQ(nodes_of(plan), std::vector<std::string>{}) << "after " << second << " s";
      fleet_->apply(plan);
      fleet_->advance(1s);
    }
  }

  std::unique_ptr<FleetModel> fleet_;
};

TEST_F(NodesBeingWritten, AChangeThatIsHandedOverHoldsItsSlotAndIsTheCanary) {
  for (const bool canary : {false, true}) {
    SCOPED_TRACE(canary);
    fleet(canary ? 4 : 1, canary ? 1 : 0).edit("any", "mps-8");
    const Plan start = next_plan();
    ASSERT_EQ(nodes_of(start).size(), 1U);
    hand_over(start, nodes_of(start).front());
    expect_nothing_for(60);
  }
}

// A person has moved its label, and what it shows is recorded on the node, beside every rollout.
TEST_F(NodesBeingWritten, NoOtherReconcilerWritesToItEither) {
  fleet(1, 0).label("n01", std::string(kConfigLabel), "same");
  fleet_->world.nodes_being_written["n01"] = nullptr;
  expect_nothing_for(300);
  answer("n01");
  EXPECT_EQ(nodes_of(next_plan()), std::vector<std::string>{"n01"});
}

TEST_F(NodesBeingWritten, TheOthersGoOnBesideIt) {
  fleet(2, 0).edit("any", "mps-8");
  const Plan start = next_plan();
  ASSERT_EQ(nodes_of(start).size(), 2U);
  const std::string slow = nodes_of(start).front();
  hand_over(start, slow);
  for (int second = 0; second < 300; ++second)
    for (const std::string& node : nodes_of(fleet_->tick())) EXPECT_NE(node, slow);
  for (const char* node : {"n01", "n02", "n03", "n04"})
    EXPECT_EQ(fleet_->restarts(node, "plugin"), node == slow ? 0 : 1) << node;
  answer(slow);  // The API server has refused it: nothing was written.
  EXPECT_TRUE(fleet_->settle());
  EXPECT_EQ(fleet_->restarts(slow, "plugin"), 1);
}

// One assessment for one write: the store shows what was assessed when the write was handed over.
TEST_F(NodesBeingWritten, IsAssessedOnceForItsWriteAndAsByANewIndex) {
  fleet(1, 0).edit("any", "mps-8");
  const Plan start = next_plan();
  const std::string first = nodes_of(start).front();
  hand_over(start, first);
  (void)fleet_->plan();
  for (const PlannedAction& planned : start.actions)
    if (std::holds_alternative<PatchNode>(planned.action)) fleet_->apply(planned);
  EXPECT_FALSE(fleet_->index.impl().dirty_nodes.contains(first));
  check_same_plan(*fleet_);
  fleet_->world.nodes_being_written.erase(first);  // The answer.
  check_same_plan(*fleet_);
  fleet_->annotate(first, kHoldAnnotation, "true");
  EXPECT_TRUE(fleet_->index.impl().dirty_nodes.contains(first));
  check_same_plan(*fleet_);
}

TEST_F(NodesBeingWritten, AChangeWhoseEndIsHandedOverKeepsItsSlotUntilTheStoresShowIt) {
  fleet(1, 0).edit("any", "mps-8");
  const std::string first = nodes_of(next_plan()).front();
  for (int second = 0; second < 300; ++second) {
    const Plan plan = fleet_->plan();
    const bool ends = std::ranges::any_of(plan.actions, [](const PlannedAction& planned) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      return patch != nullptr && patch->remove_annotations.contains(std::string(kChangeAnnotation));
    });
    ends ? hand_over(plan, first) : fleet_->apply(plan);
    fleet_->advance(1s);
    if (!ends) continue;
    expect_nothing_for(60);
    answer(first);
    EXPECT_TRUE(fleet_->settle());
    return;
  }
  FAIL() << "its change does not end";
}

}  // namespace
}  // namespace gso::test::nodes_being_written_test
