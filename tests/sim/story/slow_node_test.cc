// One node behind a webhook that takes ten seconds for each of its writes: the other nodes of its rollout do not wait
// for it, and it holds its slot all the while.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::slow_node_test {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr int kNodes = 16;
constexpr std::size_t kBudget = 4;
const std::string kSlow = "a100-03";

// From an edit until every node but kSlow shows it.
asio::awaitable<k8s::Duration> roll_the_others(Scene* scene) {
  co_await scene->open();
  const OperatorSettings as_usual;
  co_await scene->begin(mps_profile(4), as_usual);
  const k8s::MonoTime edited = scene->clock().monotonic();
  const std::string text = mps_profile(8);
  co_await scene->edit("any", text);
  std::set<std::string> others = scene->all_nodes();
  others.erase(kSlow);
  co_await scene->until("the other nodes on the new profile", 30min, scene->replicas_are(others, 8));
  const k8s::Duration took = scene->clock().monotonic() - edited;
  co_await scene->until_settled(10min);
  scene->require(scene->beyond(kBudget));
  co_return took;
}

k8s::Duration play(const std::optional<FaultRule>& fault) {
  const std::vector<NodeSpec> nodes = a100s(kNodes);
  VirtualWorld world(nodes, {.budget = kBudget});
  if (fault) world.operator_transport.faults().add(*fault);
  StageOptions options = world.stage_options("v0.20.0");
  options.max_unavailable = static_cast<int>(kBudget);
  Scene& scene = open_scene(world, std::move(options), nodes);
  std::optional<k8s::Duration> took;
  asio::co_spawn(world.io, roll_the_others(&scene), [&took](const std::exception_ptr& error, k8s::Duration answer) {
    if (error) std::rethrow_exception(error);
    took = answer;
  });
  EXPECT_TRUE(world.clock.run_until([&took] { return took.has_value(); }, 4h)) << world.record();
  EXPECT_EQ(scene.failure(), "") << world.record();
  EXPECT_EQ(world.invariants.violation(), "") << world.record();
  return took.value_or(k8s::Duration::max());
}

void expect_as_quick(k8s::Duration beside) {
  const k8s::Duration usual = play(std::nullopt);
  EXPECT_LT(beside, usual + usual / 20) << std::chrono::duration<double>(usual).count() << " s and "
                                        << std::chrono::duration<double>(beside).count() << " s";
}

// It needs two writes, and holds one of four slots that much longer.
TEST(SlowNode, HoldsUpNoOtherNodeOfItsRollout) {
  FaultRule webhook;
  webhook.fault = Fault::webhook;
  webhook.verb = "write";
  webhook.resource = "nodes";
  webhook.name = kSlow;
  webhook.delay = 10s;
  expect_as_quick(play(webhook));
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
  expect_as_quick(play(list));
}

}  // namespace
}  // namespace gso::sim::slow_node_test
