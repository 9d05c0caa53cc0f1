// The operator's wall clock is set by an hour while it waits for a time that is stored: it waits neither shorter nor
// longer.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::clock_steps_test {
namespace {

using namespace std::chrono_literals;

void run(FleetModel& fleet, std::chrono::seconds span) {
  for (auto passed = 0s; passed < span; passed += 1s) fleet.tick();
}

bool run_until(FleetModel& fleet, const std::function<bool()>& is_so) {
  for (int second = 0; second < 600 && !is_so(); ++second) fleet.tick();
  return is_so();
}

FleetSpec one_node() {
  FleetSpec spec;
  spec.nodes = alike_nodes(1);
  return spec;
}

// A wait whose time is stored.
struct Wait {
  std::string what;
  std::function<bool(FleetModel&)> begin;  // False: it has not begun.
  std::chrono::seconds length;
  std::function<bool(FleetModel&)> is_over;
};

bool begin_deferral(FleetModel& fleet) {
  fleet.use("n01", "p", std::string(kGpuResource), 1);
  fleet.edit("any", "mps-8");
  if (!run_until(fleet, [&] { return fleet.node("n01").unschedulable; })) return false;
  fleet.cordon("n01", false);
  run(fleet, 3s);
  fleet.release("n01");
  return !fleet.annotation_of("n01", kDeferredAnnotation).empty();
}

bool begin_remediation(FleetModel& fleet) {
  fleet.ail("n01", "gfd", "created", 3);
  fleet.delete_pod_of("n01", "gfd");
  return run_until(fleet, [&] { return fleet.restarts("n01", "gfd") == 2; });
}

bool begin_deletion(FleetModel& fleet) {
  fleet.policy("apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec: {}\n");
  fleet.settle();
  fleet.remove_policy("p");
  run(fleet, 2s);
  return fleet.index.impl().record->policies.contains("p");
}

const Wait kWaits[] = {
    {"a node that a person uncordoned is deferred", begin_deferral, 10min,
     [](FleetModel& fleet) { return fleet.allocatable("n01", kGpuResource) == 16; }},
    {"a pod was remediated without success", begin_remediation, 5min,
     [](FleetModel& fleet) { return fleet.restarts("n01", "gfd") == 3; }},
    {"a policy was deleted", begin_deletion, 30s,
     [](FleetModel& fleet) { return !fleet.index.impl().record->policies.contains("p"); }},
};

TEST(ClockSteps, ChangeNoWaitForAStoredTime) {
  for (const Wait& wait : kWaits) {
    for (const std::chrono::hours step : {-1h, 0h, 1h}) {
      SCOPED_TRACE(wait.what + ", " + std::to_string(step.count()) + " h");
      FleetModel fleet(one_node());
      fleet.settings.rollout.idle_timeout = 10min;
      ASSERT_TRUE(fleet.settle());
      ASSERT_TRUE(wait.begin(fleet));
      fleet.step_wall_clock(step);
      run(fleet, wait.length * 3 / 4);
      EXPECT_FALSE(wait.is_over(fleet));
      run(fleet, wait.length / 4 + 2min);
      EXPECT_TRUE(wait.is_over(fleet));
    }
  }
}

// After a restart the stored time is all there is: one that lies in the future counts as now.
TEST(ClockSteps, BeforeARestartEndAWaitAtOnceOrBeginItAnew) {
  for (const Wait& wait : kWaits) {
    SCOPED_TRACE(wait.what);
    FleetModel fleet(one_node());
    fleet.settings.rollout.idle_timeout = 10min;
    ASSERT_TRUE(fleet.settle());
    ASSERT_TRUE(wait.begin(fleet));
    fleet.step_wall_clock(-1h);
    fleet.restart_operator();
    run(fleet, wait.length + 5min);
    EXPECT_TRUE(wait.is_over(fleet));
  }
}

}  // namespace
}  // namespace gso::test::clock_steps_test
