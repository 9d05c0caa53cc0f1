// The rollout stories of the real control plane on a busy machine, in virtual time: answers and events arrive late,
// each after a random delay with a fixed seed. The fleet runs thirty times as fast, and each wait has a minute more, as
// there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
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
  FleetTiming timing;
  timing.scale = kTimeScale;
  timing.seed = seed;
  VirtualWorld world(story.nodes(false), judged_by(story), timing);
  for (InProcessTransport* transport : {&world.fleet_transport, &world.user_transport, &world.operator_transport})
    if (delay > 0ms) slow_down(transport, delay);
  StageOptions options = world.stage_options(story.plugin_version);
  options.time_scale = kTimeScale;
  options.slack = 60s;
  options.operator_settings = {{"discovery-period", "1s"}};
  return tell_in(world, story, std::move(options));
}

// GSO_SLOW_MACHINE=full tells every story, with more delays and seeds.
bool is_full() {
  return std::getenv("GSO_SLOW_MACHINE") != nullptr;
}

class SlowMachine : public testing::TestWithParam<ShortStory> {};

TEST_P(SlowMachine, IsNoReasonForAStoryToFail) {
  const std::vector<k8s::Duration> delays =
      is_full() ? std::vector<k8s::Duration>{0ms, 50ms, 150ms, 300ms} : std::vector<k8s::Duration>{150ms, 300ms};
  for (const k8s::Duration delay : delays) {
    for (std::uint64_t seed = 1; seed <= (is_full() ? 3 : 1); ++seed) {
      EXPECT_EQ(tell(GetParam(), delay, seed), "")
          << std::chrono::duration_cast<std::chrono::milliseconds>(delay).count() << " ms, seed " << seed;
    }
  }
}

// Those that a slow machine has made fail.
std::vector<ShortStory> told() {
  static const std::set<std::string> kOnes{"unclean-exits", "driver-upgrade", "mig-change", "shared-by-kai"};
  std::vector<ShortStory> stories;
  for (const ShortStory& story : rollout_stories())
    if (is_full() || kOnes.contains(story.name)) stories.push_back(story);
  return stories;
}

INSTANTIATE_TEST_SUITE_P(Stories, SlowMachine, testing::ValuesIn(told()), name_of_story);

}  // namespace
}  // namespace gso::sim::slow_machine_test
