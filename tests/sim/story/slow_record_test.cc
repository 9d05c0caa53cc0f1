// Two policies begin a rollout at the same time, and the SharingRollout of one of them is behind a webhook that takes
// ten seconds: the nodes of the other policy do not wait for it, and a pause that arrives meanwhile holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::slow_record_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
namespace asio = boost::asio;

constexpr int kNodes = 8;
constexpr std::size_t kBudget = 4;
constexpr k8s::Duration kWebhook = 10s;

// How many of these nodes have started, as told from that place of the journal on.
std::size_t started_of(const Scene& scene, const std::set<std::string>& nodes, std::size_t from) {
  const std::vector<std::string> started = scene.nodes_that(Happening::started, from);
  return static_cast<std::size_t>(
      std::ranges::count_if(started, [&](const std::string& node) { return nodes.contains(node); }));
}

// "early" and "late" have four nodes each and read one key. Policies are planned in the order of their names.
asio::awaitable<std::string> two_policies(Scene* scene, InProcessTransport* transport) {
  co_await scene->open();
  std::map<std::string, std::set<std::string>> nodes;
  for (const std::string& node : scene->all_nodes()) {
    const std::string team = nodes["early"].size() < kNodes / 2 ? "early" : "late";
    nodes[team].insert(node);
    co_await scene->label(node, "team", team);
  }
  co_await scene->begin(time_slicing_profile(4));
  for (const char* team : {"early", "late"}) {
    json spec;
    spec["nodeSelector"]["matchLabels"]["team"] = team;
    spec["rollout"]["maxUnavailable"] = 2;
    co_await scene->policy(team, spec);
  }
  co_await scene->until_settled(5min);

  FaultRule webhook;
  webhook.fault = Fault::webhook;
  webhook.verb = "create";
  webhook.resource = "sharingrollouts";
  webhook.delay = kWebhook;
  webhook.times = 1;
  transport->faults().add(webhook);
  const std::size_t from = scene->journal().size();
  const std::string text = time_slicing_profile(8);
  co_await scene->edit("any", text);
  const Scene::Check asked = [=] {
    return transport->faults().count(Fault::webhook) == 1 ? std::string() : std::string("no SharingRollout is written");
  };
  co_await scene->until("the first SharingRollout to be behind the webhook", 5min, asked);
  const Scene::Check late_starts = [=] {
    return started_of(*scene, nodes.at("late"), from) > 0 ? std::string() : std::string("no node of late has started");
  };
  co_await scene->until("the other policy's first node", 2s, late_starts);
  scene->require(started_of(*scene, nodes.at("early"), from) == 0, "a node has started without its record");

  json switches;
  switches["paused"] = true;
  co_await scene->tune("early", switches);
  const Scene::Check early_waits = [=] {
    return started_of(*scene, nodes.at("early"), from) == 0 ? std::string() : std::string("a paused node has started");
  };
  co_await scene->stays("the paused policy's nodes, after the answer as well", 3 * kWebhook, early_waits);
  const Scene::Check late_is_done = scene->replicas_are(nodes.at("late"), 8);
  co_await scene->until("every node of the other policy on the new profile", 30min, late_is_done);
  scene->require(early_waits());

  switches["paused"] = false;
  co_await scene->tune("early", switches);
  co_await scene->until_fleet_shows("every node on the new profile", 30min);
  co_await scene->until_settled(10min);
  scene->require(scene->beyond(kBudget));
  co_return scene->failure();
}

TEST(SlowRecord, HoldsItsOwnPolicyAloneAndAPauseArrivesInTime) {
  VirtualWorld world(a100s(kNodes), {.budget = kBudget});
  Scene& scene = open_scene(world, world.stage_options());
  const auto wrong = world.hear(two_policies(&scene, &world.operator_transport), 4h);
  EXPECT_EQ(wrong.value_or("it does not end"), "") << world.record();
  EXPECT_EQ(world.invariants.violation(), "") << world.record();
}

}  // namespace
}  // namespace gso::sim::slow_record_test
