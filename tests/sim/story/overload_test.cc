// The API server answers 429 for a minute while a rollout runs: the operator asks seldom meanwhile, keeps its Lease if
// the server still renews that, and has caught up half a minute later.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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

constexpr int kNodes = 24;
constexpr std::size_t kBudget = 6;
constexpr k8s::Duration kOverload = 60s;

enum class Overload { none, all, all_but_the_lease };

struct Told {
  k8s::Duration took{0};       // From the edit to the last node.
  std::uint64_t refusals = 0;  // What the operator sent into the overload.
  bool always_led = true;      // During the overload, looked at each second.
  k8s::Duration lapsed{0};     // From its begin until the operator did not lead any more,
  k8s::Duration led_again{0};  // and from its end until it led.
  std::uint64_t unled = 0;     // Writes that were sent while it did not lead, but for the Lease.
  std::string lease_before;
  std::string lease_after;
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

asio::awaitable<Told> roll(VirtualWorld* world, Scene* scene, Overload kind) {
  Told told;
  co_await scene->open();
  const OperatorSettings as_usual;
  co_await scene->begin(mps_profile(4), as_usual);
  const k8s::MonoTime edited = scene->clock().monotonic();
  const std::string text = mps_profile(8);
  co_await scene->edit("any", text);
  if (kind != Overload::none) {
    co_await world->clock.sleep_for(5s);
    co_await overload(world, kind, &told);
  }
  const Stage::Check done = scene->replicas_are(scene->all_nodes(), 8);
  co_await scene->until("every node on the new profile", 30min, done);
  told.took = scene->clock().monotonic() - edited;
  co_await scene->until_settled(10min);
  scene->require(scene->beyond(kBudget));
  co_return told;
}

Told play(Overload kind) {
  const std::vector<NodeSpec> nodes = a100s(kNodes);
  VirtualWorld world(nodes, {.budget = kBudget});
  StageOptions options = world.stage_options("v0.20.0");
  options.max_unavailable = static_cast<int>(kBudget);
  Scene& scene = open_scene(world, std::move(options), nodes);
  std::optional<Told> told;
  asio::co_spawn(world.io, roll(&world, &scene, kind), [&told](const std::exception_ptr& error, const Told& answer) {
    if (error) std::rethrow_exception(error);
    told = answer;
  });
  EXPECT_TRUE(world.clock.run_until([&told] { return told.has_value(); }, 4h)) << world.record();
  EXPECT_EQ(scene.failure(), "") << world.record();
  EXPECT_EQ(world.invariants.violation(), "") << world.record();
  return told.value_or(Told{});
}

// In whole seconds, for messages.
double seconds(k8s::Duration time) {
  return std::chrono::duration<double>(time).count();
}

TEST(Overload, CostsARolloutNoMoreThanItsOwnTimeAndHalfAMinute) {
  const Told usual = play(Overload::none);
  const Told refused = play(Overload::all);
  EXPECT_LT(refused.took, usual.took + kOverload + 30s) << seconds(usual.took) << " s and " << seconds(refused.took);
  // Each of its watches, lists, writes and renewals once in a while; 5,000 would be sent without a pause.
  EXPECT_LT(refused.refusals, 300U);
}

// Nobody can renew a Lease that the server refuses to renew: for a while no replica leads, and none writes.
TEST(Overload, OfTheLeaseAsWellStopsTheOperatorUntilItIsOver) {
  const Told told = play(Overload::all);
  EXPECT_FALSE(told.always_led);
  EXPECT_GT(told.lapsed, 5s) << seconds(told.lapsed);
  EXPECT_LE(told.lapsed, 11s) << "renew-deadline is 10 s, and this looks each second: " << seconds(told.lapsed);
  EXPECT_EQ(told.unled, 0U);
  EXPECT_LE(told.led_again, 10s) << seconds(told.led_again);
  EXPECT_NE(told.lease_before, "no Lease");
  EXPECT_EQ(told.lease_after, told.lease_before) << "it is the same leader";
}

TEST(Overload, OfItsWritesDoesNotCostTheOperatorItsLease) {
  const Told spared = play(Overload::all_but_the_lease);
  EXPECT_TRUE(spared.always_led);
  EXPECT_GT(spared.refusals, 0U);
}

}  // namespace
}  // namespace gso::sim::overload_test
