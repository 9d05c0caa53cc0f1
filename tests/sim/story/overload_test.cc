// The API server answers 429 for a minute while a rollout runs: the operator asks seldom meanwhile, keeps its Lease,
// and has caught up half a minute later.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim {
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
};

asio::awaitable<void> overload(VirtualWorld* world, Overload kind, Told* told) {
  FaultRule rule;
  rule.fault = Fault::throttle;
  if (kind == Overload::all_but_the_lease) rule.spared = "leases";
  world->operator_transport.faults().add(rule);
  const k8s::MonoTime end = world->clock.monotonic() + kOverload;
  while (world->clock.monotonic() < end) {
    told->always_led = told->always_led && world->op.view()->leading;
    co_await world->clock.sleep_for(1s);
  }
  told->refusals = world->operator_transport.faults().count(Fault::throttle);
  world->operator_transport.faults().clear();
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

TEST(Overload, OfItsWritesDoesNotCostTheOperatorItsLease) {
  const Told spared = play(Overload::all_but_the_lease);
  EXPECT_TRUE(spared.always_led);
  EXPECT_GT(spared.refusals, 0U);
}

}  // namespace
}  // namespace gso::sim
