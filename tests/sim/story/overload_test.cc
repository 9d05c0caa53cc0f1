// The API server answers 429 for a minute while a rollout runs: the operator asks seldom meanwhile, keeps its Lease if
// the server still renews that, and has caught up half a minute later. And one node behind a webhook that takes ten
// seconds for each of its writes: the other nodes of its rollout do not wait for it, and it holds its slot all the
// while.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::overload_test {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr k8s::Duration kOverload = 60s;

enum class Overload { none, all, all_but_the_lease };

struct Told {
  k8s::Duration took{0};       // From the edit to the last node.
  std::uint64_t refusals = 0;  // What the operator sent into the overload.
  bool always_led = true;      // During the overload, looked at each second.
  k8s::Duration lapsed{0};     // From its begin until the operator did not lead any more,
  k8s::Duration led_again{0};  // and from its end until it led.
  std::uint64_t unled = 0;     // Writes that were sent while it did not lead, but for the Lease.
  std::string lease_before = {};
  std::string lease_after = {};
};

// Holder and number of changes of the holder.
std::string lease_of(const VirtualWorld& world) {
  for (const nlohmann::json& lease : world.server.list({"coordination.k8s.io", "v1", "leases"})) {
    if (lease.at("metadata").at("name") != "gpu-sharing-operator") continue;
    const nlohmann::json& spec = lease.at("spec");
    return spec.at("holderIdentity").dump() + " " + spec.at("leaseTransitions").dump();
  }
  return "no Lease";
}

void count_unled_writes(VirtualWorld* world, Told* told) {
  world->operator_transport.set_request_listener([world, told](const k8s::HttpRequest& request) {
    const bool of_lease = request.path.find("/leases") != std::string::npos;
    if (request.method != k8s::Method::get && !of_lease && !world->op.view()->leading) ++told->unled;
  });
}

asio::awaitable<void> overload(VirtualWorld* world, Overload kind, Told* told) {
  FaultRule rule;
  rule.fault = Fault::throttle;
  if (kind == Overload::all_but_the_lease) rule.spared = "leases";
  world->operator_transport.faults().add(rule);
  told->lease_before = lease_of(*world);
  count_unled_writes(world, told);
  const k8s::MonoTime begin = world->clock.monotonic();
  const k8s::MonoTime end = begin + kOverload;
  while (world->clock.monotonic() < end) {
    if (told->always_led && !world->op.view()->leading) {
      told->always_led = false;
      told->lapsed = world->clock.monotonic() - begin;
    }
    co_await world->clock.sleep_for(1s);
  }
  told->refusals = world->operator_transport.faults().count(Fault::throttle);
  world->operator_transport.faults().clear();
  while (!world->op.view()->leading && world->clock.monotonic() < end + 1min) co_await world->clock.sleep_for(100ms);
  told->led_again = world->clock.monotonic() - end;
  told->lease_after = lease_of(*world);
  world->operator_transport.set_request_listener({});
}

struct Setting {
  int nodes = 24;
  std::size_t budget = 6;
  Overload overload = Overload::none;
  std::optional<FaultRule> fault = {};  // Of the operator's requests, from the start on.
  std::string slow = {};                // The node that is slow: the others do not wait for it.
};

asio::awaitable<Told> roll(VirtualWorld* world, Scene* scene, Setting setting) {
  Told told;
  co_await scene->open();
  co_await scene->begin(mps_profile(4));
  const k8s::MonoTime edited = scene->clock().monotonic();
  co_await scene->edit("any", mps_profile(8));
  if (setting.overload != Overload::none) {
    co_await world->clock.sleep_for(5s);
    co_await overload(world, setting.overload, &told);
  }
  std::set<std::string> others = scene->all_nodes();
  others.erase(setting.slow);
  co_await scene->until("the nodes on the new profile", 30min, scene->replicas_are(others, 8));
  told.took = scene->clock().monotonic() - edited;
  co_await scene->until_settled(10min);
  scene->require(scene->beyond(setting.budget));
  co_return told;
}

Told play(const Setting& setting) {
  VirtualWorld world(a100s(setting.nodes), {.budget = setting.budget});
  if (setting.fault) world.operator_transport.faults().add(*setting.fault);
  Scene& scene = open_scene(world, world.stage_options());
  const auto told = world.hear(roll(&world, &scene, setting), 4h);
  EXPECT_TRUE(told.has_value()) << world.record();
  EXPECT_EQ(scene.failure(), "") << world.record();
  EXPECT_EQ(world.invariants.violation(), "") << world.record();
  return told.value_or(Told{.took = k8s::Duration::max()});
}

TEST(Overload, CostsARolloutNoMoreThanItsOwnTimeAndHalfAMinute) {
  const Told usual = play({});
  const Told refused = play({.overload = Overload::all});
  EXPECT_LT(refused.took, usual.took + kOverload + 30s) << seconds(usual.took) << " and " << seconds(refused.took);
  // Each of its watches, lists, writes and renewals once in a while; 5,000 would be sent without a pause.
  EXPECT_LT(refused.refusals, 300U);
}

// Nobody can renew a Lease that the server refuses to renew: for a while no replica leads, and none writes.
TEST(Overload, OfTheLeaseAsWellStopsTheOperatorUntilItIsOver) {
  const Told told = play({.overload = Overload::all});
  EXPECT_FALSE(told.always_led);
  EXPECT_GT(told.lapsed, 5s) << seconds(told.lapsed);
  EXPECT_LE(told.lapsed, 11s) << "renew-deadline is 10 s, and this looks each second: " << seconds(told.lapsed);
  EXPECT_EQ(told.unled, 0U);
  EXPECT_LE(told.led_again, 10s) << seconds(told.led_again);
  EXPECT_NE(told.lease_before, "no Lease");
  EXPECT_EQ(told.lease_after, told.lease_before) << "it is the same leader";
}

TEST(Overload, OfItsWritesDoesNotCostTheOperatorItsLease) {
  const Told spared = play({.overload = Overload::all_but_the_lease});
  EXPECT_TRUE(spared.always_led);
  EXPECT_GT(spared.refusals, 0U);
}

void expect_as_quick(const FaultRule& fault) {
  Setting setting{.nodes = 16, .budget = 4, .slow = "a100-03"};
  const k8s::Duration usual = play(setting).took;
  setting.fault = fault;
  const k8s::Duration beside = play(setting).took;
  EXPECT_LT(beside, usual + usual / 20) << seconds(usual) << " and " << seconds(beside);
}

// It needs two writes, and holds one of four slots that much longer.
TEST(SlowNode, HoldsUpNoOtherNodeOfItsRollout) {
  FaultRule webhook;
  webhook.fault = Fault::webhook;
  webhook.verb = "write";
  webhook.resource = "nodes";
  webhook.name = "a100-03";
  webhook.delay = 10s;
  expect_as_quick(webhook);
}

// Of the pods that use its GPUs: not of the canary, which the others wait for.
TEST(SlowNode, WhoseListOfPodsTakesLongHoldsUpNoOtherNode) {
  FaultRule list;
  list.fault = Fault::latency;
  list.verb = "list";
  list.resource = "pods";
  list.delay = 12s;
  list.skip = 6;
  list.times = 1;
  expect_as_quick(list);
}

}  // namespace
}  // namespace gso::sim::overload_test
