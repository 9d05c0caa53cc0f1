// Many nodes at once: how many of them one planning pass handles, and what happens to the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::scale_test {
namespace {

constexpr int kNodes = 450;

void let_all_verify_at_once(FleetModel& fleet) {
  let_all_go_at_once(fleet);
  fleet.settings.settle = Duration::zero();
  fleet.settings.rollout.verify_timeout = std::chrono::minutes(1);
  EXPECT_TRUE(fleet.settle());
}

std::int64_t count_state(const FleetModel& fleet, std::string_view state) {
  return std::ranges::count_if(fleet.world.nodes.all(),
                               [&](const auto& entry) { return entry.second->meta.labels.get(kStateLabel) == state; });
}

// The nodes stay in that state: their new pods do not start.
void take_all_into_flight(FleetModel& fleet) {
  let_all_verify_at_once(fleet);
  for (const auto& [key, node] : fleet.world.nodes.all()) fleet.hold_pods(key.name, true);
  fleet.edit("any", "ts-8");
  tick(fleet, 40);
  ASSERT_EQ(count_state(fleet, kStateUpdating), fleet.world.nodes.size());
}

TEST(ManyNodes, APassDecidesOnlySoMuchAndTheNextOneGoesOnAtOnce) {
  FleetModel fleet(spec_of(kNodes));
  let_all_verify_at_once(fleet);
  fleet.edit("any", "ts-8");
  std::size_t most = 0;
  int full = 0;
  for (int second = 0; second < 200; ++second) {
    const Plan plan = fleet.tick();
    most = std::max(most, plan.actions.size());
    if (plan.actions.size() >= Pass::kMostActions) {
      ++full;
      EXPECT_EQ(plan.requeue_after, Duration::zero()) << second;
    }
  }
  // Two actions for each start (the mark and the pod), two marks removed for each node that is done.
  EXPECT_GE(full, kNodes * 3 / static_cast<int>(Pass::kMostActions) / 2);
  EXPECT_LE(most, 140U) << "rollout and labels, and what the last node adds";
  for (const auto& [key, node] : fleet.world.nodes.all()) {
    ASSERT_EQ(fleet.allocatable(key.name, "nvidia.com/gpu"), 16) << key.name;
    ASSERT_EQ(fleet.restarts(key.name, "plugin"), 1) << key.name;
  }
}

TEST(ManyNodes, ThoseThatAPassHadNoTimeForAreGivenUpOnInTimeAllTheSame) {
  FleetModel fleet(spec_of(kNodes));
  ASSERT_NO_FATAL_FAILURE(take_all_into_flight(fleet));
  // A new operator uses the pods' creation times: the time of all nodes is over in its first pass.
  fleet.restart_operator();
  fleet.advance(fleet.settings.rollout.verify_timeout);
  fleet.tick();
  ASSERT_GT(count_state(fleet, kStateUpdating), kNodes / 2) << "one pass has done it all";
  tick(fleet, 16);  // A patch and an Event for each.
  EXPECT_EQ(count_state(fleet, kStateFailed), kNodes);
}

TEST(ManyNodes, WhoseWritesNeverSucceedDoNotKeepTheOthersFromBeingFinished) {
  FleetModel fleet(spec_of(kNodes));
  ASSERT_NO_FATAL_FAILURE(take_all_into_flight(fleet));
  for (const auto& [key, node] : fleet.world.nodes.all()) fleet.hold_pods(key.name, false);
  // Twice as many as one pass decides on, and the first ones by name.
  const std::vector<std::string> names = fleet.index.node_names();
  const std::set<std::string> refused(names.begin(), names.begin() + 2 * Pass::kMostActions);
  for (int second = 0; second < 100; ++second) {
    Plan plan = fleet.plan();
    std::erase_if(plan.actions, [&](const PlannedAction& planned) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      return patch != nullptr && refused.contains(patch->name);
    });
    fleet.apply(plan);
    fleet.advance(std::chrono::milliseconds(1007));
  }
  EXPECT_EQ(count_state(fleet, kStateUpdating), refused.size());
}

}  // namespace
}  // namespace gso::test::scale_test
