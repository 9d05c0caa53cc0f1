// The rollout stories of the real control plane on a busy machine, in virtual time: answers and events arrive late,
// each after a random delay with a fixed seed. The fleet runs thirty times as fast, and each wait has a minute more, as
// there.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::slow_machine_test {
namespace {

using namespace std::chrono_literals;

constexpr double kTimeScale = 0.03;  // tests/conformance/story_test.sh

// Some requests take `delay` longer, and some three times that; some events of a watch do.
void slow_down(InProcessTransport* transport, k8s::Duration delay) {
  const auto add = [transport](const char* verb, double probability, k8s::Duration by) {
    FaultRule rule;
    rule.fault = Fault::latency;
    rule.verb = verb;
    rule.probability = probability;
    rule.delay = by;
    transport->faults().add(rule);
  };
  for (const char* verb : {"write", "get", "list"}) {
    add(verb, 0.2, 3 * delay);
    add(verb, 0.6, delay);
  }
  add("watch", 0.2, delay);
}

// Empty, or why it did not hold.
std::string tell(const ShortStory& story, k8s::Duration delay, std::uint64_t seed) {
  const std::vector<NodeSpec> nodes = story.nodes(false);
  FleetTiming timing;
  timing.scale = kTimeScale;
  timing.seed = seed;
  const InvariantOptions judge{
      .budget = story.budget, .evictions = story.evicts, .daemonset_restarts = story.restarts_daemonsets};
  VirtualWorld world(nodes, judge, timing);
  for (InProcessTransport* transport : {&world.fleet_transport, &world.user_transport, &world.operator_transport})
    if (delay > 0ms) slow_down(transport, delay);
  StageOptions options = world.stage_options(story.plugin_version);
  options.max_unavailable = static_cast<int>(story.budget);
  options.time_scale = kTimeScale;
  options.slack = 60s;
  options.operator_settings = {{"discovery-period", "1s"}};
  auto owned =
      std::make_unique<Scene>(&world.user_client, &world.clock, &world.op, &world.fleet, std::move(options), nodes);
  Scene& scene = *owned;
  world.stage = std::move(owned);
  std::optional<std::string> wrong;
  boost::asio::co_spawn(world.io, tell_story(&scene, &story),
                        [&wrong](const std::exception_ptr& error, std::string why) {
                          if (error) std::rethrow_exception(error);
                          wrong = std::move(why);
                        });
  if (!world.clock.run_until([&wrong] { return wrong.has_value(); }, 2h)) wrong = "the story does not end";
  if (wrong->empty()) wrong = world.invariants.violation();
  return wrong->empty() ? std::string() : *wrong + "\n" + world.record();
}

// GSO_SLOW_MACHINE=full tells every story, with more delays and seeds.
bool is_full() {
  return std::getenv("GSO_SLOW_MACHINE") != nullptr;
}

class SlowMachine : public testing::TestWithParam<const ShortStory*> {};

TEST_P(SlowMachine, IsNoReasonForAStoryToFail) {
  const std::vector<k8s::Duration> delays =
      is_full() ? std::vector<k8s::Duration>{0ms, 50ms, 150ms, 300ms} : std::vector<k8s::Duration>{150ms, 300ms};
  for (const k8s::Duration delay : delays) {
    for (std::uint64_t seed = 1; seed <= (is_full() ? 3 : 1); ++seed) {
      EXPECT_EQ(tell(*GetParam(), delay, seed), "")
          << std::chrono::duration_cast<std::chrono::milliseconds>(delay).count() << " ms, seed " << seed;
    }
  }
}

// Those that a slow machine has made fail.
std::vector<const ShortStory*> told() {
  static const std::set<std::string> kOnes{"unclean-exits", "driver-upgrade", "mig-change", "shared-by-kai"};
  std::vector<const ShortStory*> stories;
  for (const ShortStory& story : rollout_stories())
    if (is_full() || kOnes.contains(story.name)) stories.push_back(&story);
  return stories;
}

std::string name_of_story(const testing::TestParamInfo<const ShortStory*>& story) {
  std::string name = story.param->name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Stories, SlowMachine, testing::ValuesIn(told()), name_of_story);

}  // namespace
}  // namespace gso::sim::slow_machine_test
