#include "tests/sim/story/virtual_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "reconcilers/cluster/manifests.h"

namespace gso::sim {

using namespace std::chrono_literals;

namespace {

std::vector<std::string> our_definitions() {
  const char* source = std::getenv("GSO_SOURCE_DIR");
  std::vector<std::string> definitions;
  for (const char* name : {"gpusharing.dev_sharingpolicies.yaml", "gpusharing.dev_sharingrollouts.yaml"}) {
    std::ifstream file(std::string(source == nullptr ? "." : source) + "/crds/" + name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto json = yaml_to_json(text);
    EXPECT_TRUE(json.has_value() && !text.empty()) << "crds/" << name << " cannot be read";
    if (json) definitions.push_back(*json);
  }
  return definitions;
}

FleetOptions fleet_of(std::vector<NodeSpec> nodes, FleetTiming timing) {
  FleetOptions options;
  options.nodes = std::move(nodes);
  options.timing = timing;
  return options;
}

InvariantOptions by_our_operator(InvariantOptions judge) {
  judge.operator_user = VirtualWorld::kOperatorUser;
  return judge;
}

}  // namespace

VirtualWorld::VirtualWorld(std::vector<NodeSpec> nodes, InvariantOptions judge, FleetTiming timing)
    : clock(io, *k8s::parse_rfc3339("2026-03-01T08:00:00Z")),
      server(io.get_executor(), clock),
      fleet_transport(server, {.user = "fleet", .user_agent = "gso-fleet"}),
      user_transport(server, {.user = "kubectl", .user_agent = "kubectl"}),
      operator_transport(server, {.user = kOperatorUser, .user_agent = "gpu-sharing-operator"}),
      fleet_client(&fleet_transport, &clock, {}),
      user_client(&user_transport, &clock, {}),
      fleet(&fleet_client, &clock, fleet_of(std::move(nodes), timing)),
      op(io.get_executor(), &operator_transport, &clock),
      invariants(&server, by_our_operator(std::move(judge))) {
  boost::asio::co_spawn(io, fleet.run(), boost::asio::detached);
}

VirtualWorld::~VirtualWorld() {
  fleet.stop();
  if (stage) stage->leave();
  bool ended = false;
  boost::asio::co_spawn(io, op.kill(), [&ended](const std::exception_ptr&) { ended = true; });
  EXPECT_TRUE(clock.run_until([&ended] { return ended; }, 1min)) << "the operator does not end";
  clock.run_for(1min);
}

std::optional<std::string> VirtualWorld::plugin_text(const std::string& node) {
  NodeAgent* agent = fleet.node(node);
  return agent == nullptr ? std::nullopt : std::optional(agent->machine().plugin_text());
}

StageOptions VirtualWorld::stage_options(const std::string& plugin_version) {
  StageOptions options;
  options.plugin_version = plugin_version;
  options.custom_resources = our_definitions();
  options.progress = [this](const std::string& line) {
    lines += k8s::format_time(clock.now()) + " " + line + "\n";
    if (std::getenv("GSO_STORY_VERBOSE") != nullptr)
      std::printf("%s %s\n", k8s::format_time(clock.now()).c_str(), line.c_str());
  };
  return options;
}

namespace {

InvariantOptions judged_by(const ShortStory& story) {
  return {.budget = story.budget, .evictions = story.evicts, .daemonset_restarts = story.restarts_daemonsets};
}

StageOptions stage_options_of(VirtualWorld& world, const ShortStory& story) {
  StageOptions options = world.stage_options(story.plugin_version);
  options.max_unavailable = static_cast<int>(story.budget);
  return options;
}

}  // namespace

Scene& open_scene(VirtualWorld& world, StageOptions options, const std::vector<NodeSpec>& nodes) {
  auto owned =
      std::make_unique<Scene>(&world.user_client, &world.clock, &world.op, &world.fleet, std::move(options), nodes);
  Scene& scene = *owned;
  world.stage = std::move(owned);
  scene.operator_writes = [&world] { return world.invariants.writes(); };
  scene.invariant = [&world] { return world.invariants.violation(); };
  return scene;
}

std::string tell_and_watch(const ShortStory& story, k8s::Duration interval,
                           const std::function<void(InProcessOperator& op)>& look) {
  const std::vector<NodeSpec> nodes = story.nodes(true);
  VirtualWorld world(nodes, judged_by(story));
  Scene& scene = open_scene(world, stage_options_of(world, story), nodes);
  std::optional<std::string> wrong;
  boost::asio::co_spawn(world.io, tell_story(&scene, &story),
                        [&wrong](const std::exception_ptr& error, std::string why) {
                          if (error) std::rethrow_exception(error);
                          wrong = std::move(why);
                        });
  const k8s::MonoTime latest = world.clock.monotonic() + 48h;
  while (!wrong && world.clock.monotonic() < latest) {
    (void)world.clock.run_until([&wrong] { return wrong.has_value(); }, interval);
    look(world.op);
  }
  if (!wrong) return "the story does not end\n" + world.record();
  if (wrong->empty()) wrong = world.invariants.violation();
  return wrong->empty() ? std::string() : *wrong + "\n" + world.record();
}

void tell_in_virtual_time(const ShortStory& story) {
  const std::vector<NodeSpec> nodes = story.nodes(true);
  VirtualWorld world(nodes, judged_by(story));
  Scene& scene = open_scene(world, stage_options_of(world, story), nodes);
  std::optional<std::string> wrong;
  boost::asio::co_spawn(world.io, tell_story(&scene, &story),
                        [&wrong](const std::exception_ptr& error, std::string why) {
                          if (error) std::rethrow_exception(error);
                          wrong = std::move(why);
                        });
  ASSERT_TRUE(world.clock.run_until([&wrong] { return wrong.has_value(); }, 48h)) << "the story does not end\n"
                                                                                  << world.record();
  ASSERT_EQ(*wrong, "") << world.record();
  ASSERT_EQ(world.invariants.violation(), "") << world.record();
  // S6: converged means silent, once the last Events are out.
  world.clock.run_for(1min);
  const std::uint64_t writes = world.invariants.writes();
  world.clock.run_for(10min);
  EXPECT_EQ(world.invariants.writes(), writes)
      << "wrote after everything had converged: " << world.invariants.last_write();
}

void tell_in_virtual_time(const std::vector<ShortStory>& stories, const std::string& name) {
  const auto story = std::ranges::find(stories, name, &ShortStory::name);
  ASSERT_NE(story, stories.end()) << "there is no story '" << name << "'";
  tell_in_virtual_time(*story);
}

}  // namespace gso::sim
