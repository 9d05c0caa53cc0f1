// The rollout stories, and the procedures of NVIDIA's documents about MPS, in virtual time, the invariants judged on
// every write. The same run on a real API server (tests/conformance/story_test.sh).
#include <gtest/gtest.h>

#include "tests/sim/story/virtual_world.h"

namespace gso::sim::short_story_test {
namespace {

class ShortStories : public testing::TestWithParam<ShortStory> {};

TEST_P(ShortStories, HoldInVirtualTime) {
  SCOPED_TRACE(GetParam().title);
  tell_in_virtual_time(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rollouts, ShortStories, testing::ValuesIn(rollout_stories()), name_of_story);
INSTANTIATE_TEST_SUITE_P(Seeds, ShortStories, testing::ValuesIn(seed_scenarios()), name_of_story);

}  // namespace
}  // namespace gso::sim::short_story_test
