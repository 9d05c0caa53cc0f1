// The operator's wall clock is set by an hour during a move of slices, and after one that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::clock_steps_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Node n does not show the slices of its new key. Returns the key before.
std::string begin_move(SliceCluster& cluster) {
  cluster.node("n", 1, 41'860, {{0, {{10, 1}}}});
  cluster.pod("client", {10}, {.node = "n"});
  cluster.pod("p", {20});
  std::string good = cluster.label("n");
  for (int pass = 0; pass < 5 && cluster.label("n") == good; ++pass) {
    cluster.wait(2min);
    cluster.apply(cluster.plan(), false);
  }
  EXPECT_NE(cluster.label("n"), good);
  cluster.plan();
  return good;
}

TEST(ClockSteps, ChangeNoDeadlineOfAMove) {
  const auto still_pauses = Contains(HasSubstr("not changed again before"));
  for (const std::chrono::hours step : {-1h, 0h, 1h}) {
    SCOPED_TRACE(step.count());
    SliceCluster cluster;
    const std::string good = begin_move(cluster);
    cluster.step_wall_clock(step);
    cluster.wait(10min);
    EXPECT_THAT(writes_of(cluster.plan()), IsEmpty()) << "its slices can still come";
    cluster.wait(5min);
    const Plan back = cluster.plan();
    ASSERT_THAT(writes_of(back), ElementsAre("PatchNode n"));
    cluster.apply(back, false);
    cluster.report("n");
    EXPECT_EQ(cluster.label("n"), good);
    EXPECT_THAT(findings_about(cluster.plan(), "n"), still_pauses);
    cluster.step_wall_clock(step);
    cluster.wait(8min);
    EXPECT_THAT(findings_about(cluster.plan(), "n"), still_pauses);
    cluster.wait(2min);
    EXPECT_THAT(findings_about(cluster.plan(), "n"), Not(still_pauses));
  }
}

}  // namespace
}  // namespace gso::testing::clock_steps_test
