// The operator's wall clock is set by an hour while it waits for a time that is stored: it waits neither shorter nor
// longer.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::clock_steps_test {
namespace {

using namespace std::chrono_literals;

bool run_until(FleetModel& fleet, const std::function<bool()>& is_so) {
  for (int second = 0; second < 600 && !is_so(); ++second) fleet.tick();
  return is_so();
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
  tick(fleet, 3);
  fleet.release("n01");
  return !fleet.annotation_of("n01", kDeferredAnnotation).empty();
}

bool begin_remediation(FleetModel& fleet) {
  fleet.ail("n01", "gfd", "created", 3);
  fleet.delete_pod_of("n01", "gfd");
  return run_until(fleet, [&] { return fleet.restarts("n01", "gfd") == 2; });
}

bool begin_deletion(FleetModel& fleet) {
  fleet.policy(policy_of("", "p"));
  fleet.settle();
  fleet.remove_policy("p");
  tick(fleet, 2);
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

// After a restart the stored time is all there is: one that lies in the future counts as now.
TEST(ClockSteps, ChangeNoWaitForAStoredTimeAndBeforeARestartEndItOrBeginItAnew) {
  for (const Wait& wait : kWaits) {
    for (const auto& [step, restart] : {std::pair{-1h, false}, {0h, false}, {1h, false}, {-1h, true}}) {
      SCOPED_TRACE(fmt::format("{}, {} h{}", wait.what, step.count(), restart ? ", and a restart" : ""));
      FleetModel fleet(spec_of(1, "mps-4"));
      fleet.settings.rollout.idle_timeout = 10min;
      ASSERT_TRUE(fleet.settle());
      ASSERT_TRUE(wait.begin(fleet));
      fleet.step_wall_clock(step);
      if (restart) fleet.restart_operator();
      const int length = static_cast<int>(wait.length.count());
      tick(fleet, length * 3 / 4);
      if (!restart) {
        EXPECT_FALSE(wait.is_over(fleet));
      }
      tick(fleet, length / 4 + (restart ? 300 : 120));
      EXPECT_TRUE(wait.is_over(fleet));
    }
  }
}

}  // namespace
}  // namespace gso::test::clock_steps_test
