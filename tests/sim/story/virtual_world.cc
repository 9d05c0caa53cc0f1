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

VirtualWorld::VirtualWorld(std::vector<NodeSpec> of, InvariantOptions judge, FleetTiming timing)
    : nodes(std::move(of)),
      budget(judge.budget),
      clock(io, *k8s::parse_rfc3339("2026-03-01T08:00:00Z")),
      server(io.get_executor(), clock),
      fleet_transport(server, {.user = "fleet", .user_agent = "gso-fleet"}),
      user_transport(server, {.user = "kubectl", .user_agent = "kubectl"}),
      operator_transport(server, {.user = kOperatorUser, .user_agent = "gpu-sharing-operator"}),
      fleet_client(&fleet_transport, &clock, {}),
      user_client(&user_transport, &clock, {}),
      fleet(&fleet_client, &clock, fleet_of(nodes, timing)),
      op(io.get_executor(), &operator_transport, &clock),
      invariants(&server, by_our_operator(std::move(judge))) {
  boost::asio::co_spawn(io, fleet.run(), boost::asio::detached);
}

VirtualWorld::~VirtualWorld() {
  fleet.stop();
  if (stage) stage->leave();
  end(op);
  clock.run_for(1min);
}

void VirtualWorld::end(OperatorControl& which) {
  bool ended = false;
  boost::asio::co_spawn(io, which.kill(), [&ended](const std::exception_ptr&) { ended = true; });
  EXPECT_TRUE(clock.run_until([&ended] { return ended; }, 1min)) << "the operator does not end";
}

std::optional<std::string> VirtualWorld::plugin_text(const std::string& node) {
  NodeAgent* agent = fleet.node(node);
  return agent == nullptr ? std::nullopt : std::optional(agent->machine().plugin_text());
}

StageOptions VirtualWorld::stage_options(const std::string& plugin_version) {
  StageOptions options;
  options.plugin_version = plugin_version;
  options.max_unavailable = static_cast<int>(budget);
  options.custom_resources = our_definitions();
  options.progress = [this](const std::string& line) {
    lines += k8s::format_time(clock.now()) + " " + line + "\n";
    if (std::getenv("GSO_STORY_VERBOSE") != nullptr)
      std::printf("%s %s\n", k8s::format_time(clock.now()).c_str(), line.c_str());
  };
  return options;
}

void VirtualWorld::expect_silence() {
  clock.run_for(1min);
  const std::uint64_t writes = invariants.writes();
  clock.run_for(10min);
  EXPECT_EQ(invariants.writes(), writes) << "wrote after everything had converged: " << invariants.last_write();
}

Scene& open_scene(VirtualWorld& world, StageOptions options, OperatorControl* op) {
  auto owned = std::make_unique<Scene>(&world.user_client, &world.clock, op == nullptr ? &world.op : op, &world.fleet,
                                       std::move(options), world.nodes);
  Scene& scene = *owned;
  world.stage = std::move(owned);
  scene.operator_writes = [&world] { return world.invariants.writes(); };
  scene.invariant = [&world] { return world.invariants.violation(); };
  return scene;
}

InvariantOptions judged_by(const ShortStory& story) {
  return {.budget = story.budget, .evictions = story.evicts, .daemonset_restarts = story.restarts_daemonsets};
}

std::string tell_in(VirtualWorld& world, const ShortStory& story, StageOptions options, k8s::Duration interval,
                    const std::function<void()>& look) {
  Scene& scene = open_scene(world, std::move(options));
  std::string wrong = world.hear(tell_story(&scene, &story), 48h, interval, look).value_or("the story does not end");
  if (wrong.empty()) wrong = world.invariants.violation();
  return wrong.empty() ? wrong : wrong + "\n" + world.record();
}

void tell_in_virtual_time(const ShortStory& story) {
  VirtualWorld world(story.nodes(true), judged_by(story));
  ASSERT_EQ(tell_in(world, story, world.stage_options(story.plugin_version)), "");
  world.expect_silence();
}

std::string name_of_story(const testing::TestParamInfo<ShortStory>& story) {
  std::string name = story.param.name;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

}  // namespace gso::sim
