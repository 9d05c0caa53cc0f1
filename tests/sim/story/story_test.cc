// The story in virtual time: API server, fleet and operator in one process, the invariants judged on every write.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <optional>

#include "tests/sim/fleet/topology.h"
#include "tests/sim/story/story.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::story_test {
namespace {

using namespace std::chrono_literals;

void tell(const std::string& plugin_version) {
  VirtualWorld world(*topology("demo"), {.budget = 3});
  auto owned =
      std::make_unique<Story>(&world.user_client, &world.clock, &world.op, world.stage_options(plugin_version));
  Story& story = *owned;
  world.stage = std::move(owned);
  story.invariant = [&world] { return world.invariants.violation(); };
  std::optional<std::vector<StoryStep>> steps;
  boost::asio::co_spawn(world.io, story.run(), [&steps](const std::exception_ptr& error, std::vector<StoryStep> told) {
    if (error) std::rethrow_exception(error);
    steps = std::move(told);
  });
  ASSERT_TRUE(world.clock.run_until([&steps] { return steps.has_value(); }, 24h)) << "the story does not end\n"
                                                                                  << world.lines;
  for (const StoryStep& step : *steps)
    ASSERT_TRUE(step.held) << step.title << "\n" << step.why << "\n\n" << world.record();
  EXPECT_EQ(steps->size(), 11U);
  EXPECT_EQ(world.invariants.violation(), "");

  // S6: converged means silent, once the last Events are out.
  world.clock.run_for(1min);
  const std::uint64_t writes = world.invariants.writes();
  world.clock.run_for(10min);
  EXPECT_EQ(world.invariants.writes(), writes)
      << "wrote after everything had converged: " << world.invariants.last_write();
}

TEST(Story, HoldsWithPluginVersion17) {
  tell("v0.17.0");
}
TEST(Story, HoldsWithPluginVersion20) {
  tell("v0.20.0");
}

}  // namespace
}  // namespace gso::sim::story_test
