// A slot that a verified node leaves is used within a second: no time is lost between waves, and a node whose patch
// fails keeps no slot from the others.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::free_slots_test {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

struct Setting {
  int nodes = 40;
  std::size_t budget = 4;
  std::optional<FaultRule> fault = {};  // Of the node `failing`.
  std::string failing = {};
  k8s::Duration most = 1s;  // That a slot may be free while a node waits.
};

// Empty, or which slot was free for too long. From the second start on: before that the canary is alone, and soaks.
// What has failed keeps its slot.
std::string unused_slot(const std::vector<Moment>& journal, std::size_t from, const Setting& setting) {
  const std::size_t startable = static_cast<std::size_t>(setting.nodes) - (setting.failing.empty() ? 0 : 1);
  std::set<std::string> started;
  std::size_t in_change = 0;
  std::optional<k8s::MonoTime> free_since;
  for (std::size_t i = from; i < journal.size(); ++i) {
    const Moment& moment = journal[i];
    if (moment.what != Happening::started && moment.what != Happening::finished) continue;
    if (free_since && moment.at - *free_since > setting.most)
      return "a slot was free for " + seconds(moment.at - *free_since) + " before " + moment.node;
    if (moment.what == Happening::started) {
      started.insert(moment.node);
      ++in_change;
    } else if (in_change > 0) {
      --in_change;
    }
    const bool is_wanted = started.size() > 1 && started.size() < startable && in_change < setting.budget;
    if (!is_wanted)
      free_since.reset();
    else if (!free_since)
      free_since = moment.at;
  }
  return {};
}

asio::awaitable<std::string> roll(Scene* scene, Setting setting) {
  co_await scene->open();
  co_await scene->begin(mps_profile(4));
  const std::size_t from = scene->journal().size();
  co_await scene->edit("any", mps_profile(8));
  std::set<std::string> others = scene->all_nodes();
  others.erase(setting.failing);
  const Scene::Check are_done = scene->replicas_are(others, 8);
  co_await scene->until("the nodes on the new profile", 60min, are_done);
  scene->require(unused_slot(scene->journal(), from, setting));
  scene->require(scene->beyond(setting.budget));
  co_return scene->failure();
}

// How often the fault was met.
std::uint64_t play(const Setting& setting) {
  VirtualWorld world(a100s(setting.nodes), {.budget = setting.budget});
  if (setting.fault) world.operator_transport.faults().add(*setting.fault);
  Scene& scene = open_scene(world, world.stage_options());
  const auto wrong = world.hear(roll(&scene, setting), 4h);
  EXPECT_EQ(wrong.value_or("it does not end"), "") << world.record();
  EXPECT_EQ(world.invariants.violation(), "") << world.record();
  return setting.fault ? world.operator_transport.faults().count(setting.fault->fault) : 0;
}

Setting with_failing_node(Fault fault) {
  Setting setting{.nodes = 12, .budget = 1, .failing = "a100-03"};
  setting.fault.emplace();
  setting.fault->fault = fault;
  setting.fault->verb = "patch";
  setting.fault->resource = "nodes";
  setting.fault->name = setting.failing;
  return setting;
}

TEST(FreeSlots, AreUsedWithinASecondOfAVerifiedNode) {
  play({});
}

// As by an admission webhook. It is asked again seldom.
TEST(FreeSlots, AreNotKeptForANodeWhosePatchIsRefused) {
  EXPECT_LT(play(with_failing_node(Fault::forbidden)), 10U);
}

// The server can still execute it for 15 seconds, and that long it holds the slot (S1).
TEST(FreeSlots, AreNotKeptForANodeWhosePatchHasNoAnswer) {
  Setting setting = with_failing_node(Fault::server_error);
  setting.most = 17s;
  EXPECT_LT(play(setting), 10U);
}

}  // namespace
}  // namespace gso::sim::free_slots_test
