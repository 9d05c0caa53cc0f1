// Remediation beside a change of the same node.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <variant>

#include "reconcilers/model/plan.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {
namespace {

// How often a plan deletes a pod that it deletes already.
int repeated_deletions(const Plan& plan) {
  std::set<std::string> deleted;
  int repeated = 0;
  for (const PlannedAction& planned : plan.actions) {
    const auto* deletion = std::get_if<DeletePod>(&planned.action);
    if (deletion != nullptr && !deletion->uid.empty() && !deleted.emplace(deletion->uid).second) ++repeated;
  }
  return repeated;
}

// The stuck pod is due for its remediation about two minutes after it was created; one of these edits makes the change
// delete it in the same pass.
TEST(Remediation, AStuckPodThatTheChangeReplacesIsDeletedOnce) {
  for (int seconds = 100; seconds < 130; ++seconds) {
    FleetSpec spec;
    spec.profiles = {{"any", "ts-4"}};
    spec.nodes = alike_nodes(1);
    FleetModel fleet(spec);
    fleet.settings.settle = Duration::zero();
    fleet.settle();
    int repeated = 0;
    fleet.on_plan = [&](const Plan& plan) { repeated += repeated_deletions(plan); };
    fleet.ail("n01", "gfd", "created", 1);
    fleet.delete_pod_of("n01", "gfd");
    for (int i = 0; i < seconds; ++i) fleet.tick();
    fleet.edit("any", "ts-8");
    EXPECT_TRUE(fleet.settle()) << seconds;
    EXPECT_EQ(repeated, 0) << seconds;
  }
}

}  // namespace
}  // namespace gso::test
