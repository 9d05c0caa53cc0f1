// The chapters about edits of the profile in place, and the one in which the operator dies in the middle of such a
// rollout.
#include <utility>

#include "tests/sim/story/story.h"

namespace gso::sim {

using namespace std::chrono_literals;

namespace {
namespace asio = boost::asio;
}  // namespace

Scene::Seen Story::look() {
  reset_peak();
  return seen();
}

asio::awaitable<void> Story::roll(std::string what, std::string text, bool mps_pods_too) {
  const Seen before = look();
  const std::set<std::string> concerned = nodes_on("any");
  co_await edit("any", text);
  co_await until_fleet_shows(what, 40min);
  const Check is_replaced = [=, this] { return restarts_problem(before, concerned, mps_pods_too); };
  co_await until("new pods everywhere", 20min, is_replaced);
  co_await until_settled(5min);
  co_await until("its record to be complete", 5min, phase_is("default", text, "Completed"));
  require(is_replaced());
  require(beyond(budget()));
}

// One node of each group goes first (the A100s; the T4s, to which the standalone node belongs by its product).
asio::awaitable<void> Story::more_replicas() {
  const std::size_t from = journal().size();
  co_await roll("8 replicas on every node that uses the profile", mps_profile(8), true);
  require(canary_problem(from, nodes_on("any"), 60s));
}

asio::awaitable<void> Story::invisible_edit() {
  co_await roll("the same labels as before", mps_profile(8, false, false), false);
}

asio::awaitable<void> Story::rename() {
  co_await roll("nvidia.com/gpu.shared", mps_profile(8, true), true);
  for (const std::string& name : nodes_on("any")) {
    const auto allocatable = view_.allocatable(name);
    const auto old = allocatable.find("nvidia.com/gpu");
    require(old != allocatable.end() && old->second == 0,
            name + " does not show nvidia.com/gpu: 0 beside nvidia.com/gpu.shared");
  }
}

asio::awaitable<void> Story::killed_in_between() {
  const Seen before = look();
  // What uses the profile now: time-slicing everywhere but on the standalone node (and whoever is pinned).
  const std::set<std::string> concerned = nodes_on(default_key_);
  co_await edit(default_key_, time_slicing_profile(6));
  const Check is_under_way = [&, this] {
    const std::size_t restarted = plugins_restarted(before);
    return restarted >= 3 ? std::string() : std::to_string(restarted) + " nodes have been restarted";
  };
  co_await until("a rollout that is under way", 15min, is_under_way);
  const std::size_t moved = plugins_restarted(before);
  require(moved < concerned.size(), "the rollout was over before the operator could be killed");
  co_await kill();
  tell("killed with " + std::to_string(moved) + " of " + std::to_string(concerned.size()) + " nodes restarted");
  co_await start();
  co_await until_fleet_shows("6 replicas on every node that uses the profile", 40min);
  co_await until_settled(5min);
  require(restarts_problem(before, concerned, false));
  require(beyond(budget()));
}

}  // namespace gso::sim
