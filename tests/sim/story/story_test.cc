// The story in virtual time: API server, fleet and operator in one process, the invariants judged on every write.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "k8sclient/client.h"
#include "reconcilers/manifests.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/topology.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/story/in_process_operator.h"
#include "tests/sim/story/invariants.h"
#include "tests/sim/story/story.h"

namespace gso::sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* kOperatorUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";

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

FleetOptions demo_fleet() {
  FleetOptions options;
  options.nodes = *topology("demo");
  return options;
}

// Everything that the story needs, in one process.
struct StoryWorld {
  explicit StoryWorld(const std::string& plugin_version)
      : clock(io, *k8s::parse_rfc3339("2026-03-01T08:00:00Z")),
        server(io.get_executor(), clock),
        fleet_transport(server, {.user = "fleet", .user_agent = "gso-fleet"}),
        user_transport(server, {.user = "kubectl", .user_agent = "kubectl"}),
        operator_transport(server, {.user = kOperatorUser, .user_agent = "gpu-sharing-operator"}),
        fleet_client(&fleet_transport, &clock, {}),
        user_client(&user_transport, &clock, {}),
        fleet(&fleet_client, &clock, demo_fleet()),
        op(io.get_executor(), &operator_transport, &clock),
        invariants(&server, {.operator_user = kOperatorUser, .budget = 3}),
        story(&user_client, &clock, &op, options(plugin_version)) {
    story.invariant = [this] { return invariants.violation(); };
    boost::asio::co_spawn(io, fleet.run(), boost::asio::detached);
  }
  ~StoryWorld() {
    fleet.stop();
    bool ended = false;
    boost::asio::co_spawn(io, op.kill(), [&ended](const std::exception_ptr&) { ended = true; });
    EXPECT_TRUE(clock.run_until([&ended] { return ended; }, 1min)) << "the operator does not end";
    clock.run_for(1min);
  }
  StageOptions options(const std::string& plugin_version) {
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

  boost::asio::io_context io{1};
  SimClock clock;
  ApiServer server;
  InProcessTransport fleet_transport, user_transport, operator_transport;
  k8s::ApiClient fleet_client, user_client;
  std::string lines;
  Fleet fleet;
  InProcessOperator op;
  Invariants invariants;
  Story story;
};

void tell(const std::string& plugin_version) {
  StoryWorld world(plugin_version);
  std::optional<std::vector<StoryStep>> steps;
  boost::asio::co_spawn(world.io, world.story.run(),
                        [&steps](const std::exception_ptr& error, std::vector<StoryStep> told) {
                          if (error) std::rethrow_exception(error);
                          steps = std::move(told);
                        });
  ASSERT_TRUE(world.clock.run_until([&steps] { return steps.has_value(); }, 24h)) << "the story does not end\n"
                                                                                  << world.lines;
  for (const StoryStep& step : *steps) {
    ASSERT_TRUE(step.held) << step.title << "\n"
                           << step.why << "\n\n"
                           << world.lines << "\nThe operator's log:\n"
                           << world.op.recent_log();
  }
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
}  // namespace gso::sim
