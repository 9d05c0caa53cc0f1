// The chapters about edits of the profile in place, and the one in which the operator dies in the middle of such a
// rollout.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/story.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {
namespace asio = boost::asio;
}  // namespace

asio::awaitable<Story::Held> Story::roll(std::string what, std::string text, bool mps_pods_too) {
  const Seen before = seen();
  const std::set<std::string> concerned = nodes_on("any");
  view_.reset_peak();
  const Held edited = co_await edit_profile("any", std::move(text));
  if (!edited) co_return edited;
  const auto budget = static_cast<std::size_t>(options_.max_unavailable);
  const Held rolled = co_await await_fleet(what, 40min);
  if (!rolled) co_return rolled;
  const Check is_replaced = [=, this] { return restarts_problem(before, concerned, mps_pods_too); };
  const Held replaced = co_await await("new pods everywhere", 20min, is_replaced);
  if (!replaced) co_return replaced;
  const Held settled = co_await await_settled(5min);
  if (!settled) co_return settled;
  if (const std::string twice = restarts_problem(before, concerned, mps_pods_too); !twice.empty()) {
    co_return k8s::fail(k8s::Reason::invalid, twice);
  }
  if (view_.peak_unavailable() > budget) {
    co_return k8s::fail(k8s::Reason::invalid, std::to_string(view_.peak_unavailable()) +
                                                  " nodes were out of service at once; the budget is " +
                                                  std::to_string(budget));
  }
  co_return Held{};
}

asio::awaitable<Story::Held> Story::more_replicas() {
  const Seen before = seen();
  // The canary: one node of each group (A100, T4; the standalone T4 is in the latter by its product) goes first, and
  // nobody else until it shows the new state.
  std::size_t before_first = 0;
  const Held edited = co_await edit_profile("any", mps_profile(8));
  if (!edited) co_return edited;
  const Check is_canary = [&, this] {
    for (const std::string& name : nodes_on("any")) {
      const auto node = std::ranges::find(nodes_, name, &NodeSpec::name);
      if (node_problem(*node).empty()) return std::string();
    }
    before_first = view_.restarted("nvidia-device-plugin", before.plugin).size();
    return std::string("no node shows 8 replicas yet");
  };
  const Held canary = co_await await("a canary that shows the new state", 15min, is_canary);
  if (!canary) co_return canary;
  if (before_first > 3) {
    co_return k8s::fail(k8s::Reason::invalid,
                        std::to_string(before_first) + " nodes were restarted before a canary had shown the new state");
  }
  const Held rolled = co_await await_fleet("8 replicas on every node that uses the profile", 40min);
  if (!rolled) co_return rolled;
  const Held settled = co_await await_settled(5min);
  if (!settled) co_return settled;
  const std::string wrong = restarts_problem(before, nodes_on("any"), true);
  if (!wrong.empty()) co_return k8s::fail(k8s::Reason::invalid, wrong);
  if (view_.peak_unavailable() > static_cast<std::size_t>(options_.max_unavailable)) {
    co_return k8s::fail(k8s::Reason::invalid,
                        std::to_string(view_.peak_unavailable()) + " nodes were out of service at once");
  }
  co_return Held{};
}

asio::awaitable<Story::Held> Story::invisible_edit() {
  const Held rolled = co_await roll("the same labels as before", mps_profile(8, false, false), false);
  co_return rolled;
}

asio::awaitable<Story::Held> Story::rename() {
  const Held rolled = co_await roll("nvidia.com/gpu.shared", mps_profile(8, true), true);
  if (!rolled) co_return rolled;
  for (const std::string& name : nodes_on("any")) {
    const auto allocatable = view_.allocatable(name);
    auto old = allocatable.find("nvidia.com/gpu");
    if (old == allocatable.end() || old->second != 0) {
      co_return k8s::fail(k8s::Reason::invalid, name + " does not show nvidia.com/gpu: 0 beside nvidia.com/gpu.shared");
    }
  }
  co_return Held{};
}

asio::awaitable<Story::Held> Story::killed_in_between() {
  const Seen before = seen();
  // What uses the profile now: time-slicing everywhere but on the standalone node (and whoever is pinned).
  const std::string key = default_key_;
  std::set<std::string> concerned = nodes_on(key);
  view_.reset_peak();
  const Held edited = co_await edit_profile(key, time_slicing_profile(6));
  if (!edited) co_return edited;
  const Check is_under_way = [&, this] {
    const std::size_t restarted = view_.restarted("nvidia-device-plugin", before.plugin).size();
    return restarted >= 3 ? std::string() : std::to_string(restarted) + " nodes have been restarted";
  };
  const Held under_way = co_await await("a rollout that is under way", 15min, is_under_way);
  if (!under_way) co_return under_way;
  const std::size_t moved = view_.restarted("nvidia-device-plugin", before.plugin).size();
  if (moved >= concerned.size()) {
    co_return k8s::fail(k8s::Reason::invalid, "the rollout was over before the operator could be killed");
  }
  co_await operator_->kill();
  say("    killed with " + std::to_string(moved) + " of " + std::to_string(concerned.size()) + " nodes restarted");
  const OperatorSettings as_usual;
  const Held again = co_await start_operator(as_usual);
  if (!again) co_return again;
  const Held rolled = co_await await_fleet("6 replicas on every node that uses the profile", 40min);
  if (!rolled) co_return rolled;
  const Held settled = co_await await_settled(5min);
  if (!settled) co_return settled;
  const std::string wrong = restarts_problem(before, concerned, false);
  if (!wrong.empty()) co_return k8s::fail(k8s::Reason::invalid, wrong);
  if (view_.peak_unavailable() > static_cast<std::size_t>(options_.max_unavailable)) {
    co_return k8s::fail(k8s::Reason::invalid,
                        std::to_string(view_.peak_unavailable()) + " nodes were out of service at once");
  }
  co_return Held{};
}

}  // namespace gso::sim
