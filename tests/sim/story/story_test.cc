// The story in virtual time: API server, fleet and operator in one process, the invariants judged on every write.
#include <gtest/gtest.h>

#include <optional>

#include "tests/sim/fleet/topology.h"
#include "tests/sim/story/story.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::story_test {
namespace {

using namespace std::chrono_literals;

void tell(const std::string& plugin_version) {
  VirtualWorld world(*topology("demo"), {.budget = 3});
  auto owned = std::make_unique<Story>(&world.user_client, &world.clock, &world.op, &world.fleet,
                                       world.stage_options(plugin_version));
  Story& story = *owned;
  world.stage = std::move(owned);
  story.invariant = [&world] { return world.invariants.violation(); };
  const auto steps = world.hear(story.run(), 24h);
  ASSERT_TRUE(steps.has_value()) << "the story does not end\n" << world.lines;
  for (const StoryStep& step : *steps)
    ASSERT_TRUE(step.held) << step.title << "\n" << step.why << "\n\n" << world.record();
  EXPECT_EQ(steps->size(), 11U);
  EXPECT_EQ(world.invariants.violation(), "");
  world.expect_silence();
}

TEST(Story, HoldsWithPluginVersion17) {
  tell("v0.17.0");
}
TEST(Story, HoldsWithPluginVersion20) {
  tell("v0.20.0");
}

}  // namespace
}  // namespace gso::sim::story_test
