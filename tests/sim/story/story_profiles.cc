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

bool is_updating(const JsonPtr& node) {
  if (node == nullptr) return false;
  return (*node)["metadata"].value("labels", json::object()).value("gpusharing.dev/state", "") == "Updating";
}

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
  if (const std::string twice = restarts_problem(before, concerned, mps_pods_too); !twice.empty())
    co_return k8s::fail(k8s::Reason::invalid, twice);
  if (view_.peak_unavailable() > budget) {
    co_return k8s::fail(k8s::Reason::invalid, std::to_string(view_.peak_unavailable()) +
                                                  " nodes were out of service at once; the budget is " +
                                                  std::to_string(budget));
  }
  co_return Held{};
}

void Story::note_turn(const std::string& node, const JsonPtr& before, const JsonPtr& after) {
  const bool was = is_updating(before);
  const bool is = is_updating(after);
  if (was != is) turns_.push_back({clock_->monotonic(), node, is});
}

std::string Story::canary_problem(std::size_t from, const std::set<std::string>& nodes, k8s::Duration soak) const {
  struct Group {
    std::set<std::string> begun;
    std::optional<k8s::MonoTime> canary_done;
  };
  std::map<std::string, Group> groups;
  for (std::size_t i = from; i < turns_.size(); ++i) {
    const Turn& turn = turns_[i];
    const auto node = std::ranges::find(nodes_, turn.node, &NodeSpec::name);
    if (node == nodes_.end() || !nodes.contains(turn.node)) return turn.node + " had a turn, too";
    const std::string& product = node->gpus.front().product;
    Group& group = groups[product];
    if (!turn.begins) {
      if (!group.canary_done) group.canary_done = turn.at;
      continue;
    }
    if (!group.begun.insert(turn.node).second) return turn.node + " had a second turn";
    if (group.begun.size() == 1) continue;
    if (!group.canary_done) return turn.node + " started while the canary with " + product + " was under way";
    if (turn.at - *group.canary_done < soak) {
      return turn.node + " started " + seconds(turn.at - *group.canary_done) + " after the canary with " + product +
             " was done, not after " + seconds(soak);
    }
  }
  std::size_t begun = 0;
  for (const auto& [product, group] : groups) begun += group.begun.size();
  return begun == nodes.size() ? std::string()
                               : std::to_string(begun) + " nodes of " + std::to_string(nodes.size()) + " had a turn";
}

asio::awaitable<Story::Held> Story::more_replicas() {
  const Seen before = seen();
  const std::size_t from = turns_.size();
  const Held edited = co_await edit_profile("any", mps_profile(8));
  if (!edited) co_return edited;
  const Held rolled = co_await await_fleet("8 replicas on every node that uses the profile", 40min);
  if (!rolled) co_return rolled;
  const Held settled = co_await await_settled(5min);
  if (!settled) co_return settled;
  // One node of each group goes first (the A100s; the T4s, to which the standalone node belongs by its product). On a
  // busy machine a watch comes late.
  const k8s::Duration late = options_.slack > k8s::Duration(0) ? k8s::Duration(1s) : k8s::Duration(0);
  const std::string overtaken = canary_problem(from, nodes_on("any"), scaled(60s) - late);
  if (!overtaken.empty()) co_return k8s::fail(k8s::Reason::invalid, overtaken);
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
    if (old == allocatable.end() || old->second != 0)
      co_return k8s::fail(k8s::Reason::invalid, name + " does not show nvidia.com/gpu: 0 beside nvidia.com/gpu.shared");
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
  if (moved >= concerned.size())
    co_return k8s::fail(k8s::Reason::invalid, "the rollout was over before the operator could be killed");
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
