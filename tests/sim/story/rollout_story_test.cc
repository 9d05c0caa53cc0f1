// The rollout stories in virtual time, the invariants judged on every write. The same run on a real API server
// (tests/conformance/short_stories_test.sh).
#include <gtest/gtest.h>

#include "tests/sim/story/virtual_world.h"

namespace gso::sim {
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
TEST(RolloutStory, NodesThatAreNotReadyAreSkippedCountedAndRolledLater) {
  tell("not-ready");
}

}  // namespace
}  // namespace gso::sim
