// The times that the record keeps, in an operator that is restarted once.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::recorded_timers_test {
namespace {

using namespace std::chrono_literals;

// The plugin of n01 crashes. The operator restarts after four of the ten minutes of verifyTimeout, and only once: it
// goes on to count from where the record says, in every pass and not only in the first.
TEST(RecordedTimers, ADriftGoesOnInANewOperator) {
  FleetModel fleet(spec_of(1));
  fleet.settle();
  fleet.crash_pods("n01", true);
  fleet.delete_pod_of("n01", "plugin");
  const WallTime begun = fleet.now;
  const auto repaired = [&] { return !fleet.annotation_of("n01", kChangeAnnotation).empty(); };
  while (!repaired() && fleet.now < begun + 4min) fleet.tick();
  ASSERT_FALSE(repaired());
  fleet.restart_operator();
  while (!repaired() && fleet.now < begun + 20min) fleet.tick();
  EXPECT_GE(fleet.now - begun, 10min);
  EXPECT_LE(fleet.now - begun, 11min);
}

// Ten minutes without a readable record. Meanwhile the text of key `other` is edited in a way that no label shows, and
// n01 gets that key.
class UnreadableRecord : public testing::Test {
 protected:
  UnreadableRecord() : fleet(spec()) {
    fleet.settle();
    const ConfigMap& state = *fleet.world.configmaps.find(state_key(fleet.settings));
    record = *state.data.find(std::string(kRecordKey))->second;
    run(1min);
    fleet.write_record("?");
    fleet.tick();
    fleet.edit("other", text("    failRequestsGreaterThanOne: true\n"));
  }
  static std::string text(const std::string& more) {
    return "version: v1\nsharing:\n  timeSlicing:\n" + more +
           "    resources:\n    - name: nvidia.com/gpu\n      replicas: 8\n";
  }
  static FleetSpec spec() {
    FleetSpec out = spec_of(1);
    out.profiles["other"] = text("");
    return out;
  }
  void run(std::chrono::seconds duration) {
    for (const WallTime end = fleet.now + duration; fleet.now < end;) fleet.tick();
  }
  // n01 gets its label so long after the edit; the operator is restarted so long after that, if it is. How often the
  // plugin of n01 is restarted by the time that the fleet is quiet.
  int restarts_after(std::chrono::seconds move, std::chrono::seconds restart = 0s) {
    run(move);
    fleet.label("n01", std::string(kConfigLabel), "other");
    if (restart > 0s) {
      run(restart);
      fleet.restart_operator();
    }
    run(10min - move - restart);
    EXPECT_EQ(fleet.patches("n01"), 0);
    fleet.write_record(record);
    fleet.settle();
    EXPECT_EQ(fleet.annotation_of("n01", kProfileAnnotation), "mps-config/other");
    return fleet.restarts("n01", "plugin");
  }

  FleetModel fleet;
  std::string record;
};

TEST_F(UnreadableRecord, ALabelThatMovesSecondsAfterAnEditHasItsPodsRestarted) {
  EXPECT_EQ(restarts_after(5s), 1) << "its sidecars have read the text before the edit";
}

TEST_F(UnreadableRecord, TheSameWithARestartOfTheOperator) {
  EXPECT_EQ(restarts_after(5s, 150s), 1);
}

TEST_F(UnreadableRecord, ALabelThatMovesOnceTheEditIsProjectedRestartsNothing) {
  EXPECT_EQ(restarts_after(3min), 0);
}

}  // namespace
}  // namespace gso::test::recorded_timers_test
