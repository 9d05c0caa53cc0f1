// The times that the record keeps, in an operator that is restarted once.
#include <gtest/gtest.h>

#include <chrono>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;

// The plugin of n01 crashes. The operator restarts after four of the ten minutes of verifyTimeout, and only once: it
// goes on to count from where the record says, in every pass and not only in the first.
TEST(RecordedTimers, ADriftGoesOnInANewOperator) {
  FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}};
  spec.nodes = alike_nodes(1);
  FleetModel fleet(spec);
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

}  // namespace
}  // namespace gso::test
