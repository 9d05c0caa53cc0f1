// Stories about who goes when: canary, soak, budgets, nodes that are away.
#include <algorithm>
#include <utility>

#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

// Once the default key says `text`: every node once, canary first, within the budgets; and the record says so.
asio::awaitable<void> roll(Scene* scene, std::string text) {
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  scene->reset_peak();
  co_await scene->edit("any", text);
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->beyond(2));
  scene->require(scene->canary_problem(from, scene->all_nodes(), 60s));
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  co_await scene->until("its record to be complete", 5min, scene->phase_is("default", text, "Completed"));
  const json counts =
      scene->rollout_of("default", text).value("status", json::object()).value("counts", json::object());
  scene->require(counts.value("updated", 0) == 8 && counts.value("total", 0) == 8,
                 "the record counts " + counts.dump() + ", not 8 of 8 nodes");
  co_await scene->until("an Event about its end", 2min, scene->event_says("Completed", "any to "));
}

}  // namespace

asio::awaitable<void> strategy_change(Scene* scene) {
  const OperatorSettings budgets{
      {"max-unavailable", "25%"}, {"max-unavailable-per-group", "34%"}, {"cluster-max-unavailable", "25%"}};
  co_await scene->begin(mps_profile(4), budgets);
  co_await roll(scene, time_slicing_profile(6));
  scene->require(scene->cluster().ready_pods("mps-control-daemon", "a100-01") == 0,
                 "an MPS daemon still runs on a100-01");
  // Not the verified text of before: it has its canary as well.
  co_await roll(scene, mps_profile(3));
  co_await scene->until("the policy to say so", 0s, scene->condition_is("default", "Ready", "True", "UpToDate", ""));
}

asio::awaitable<void> not_ready(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  if (!scene->failure().empty()) co_return;
  for (const char* node : {"a100-02", "a100-04"}) scene->fleet().node(node)->set_runtime(false);
  const Scene::Check are_away = [scene] {
    const std::size_t away = scene->cluster().unavailable().size();
    return away == 2 ? std::string() : std::to_string(away) + " nodes are NotReady";
  };
  co_await scene->until("two nodes that are NotReady", 5min, are_away);
  scene->reset_peak();
  // They hold the whole budget: nothing starts, and the policy says who holds it.
  const Scene::Seen before = scene->seen();
  co_await scene->edit("any", time_slicing_profile(4));
  co_await scene->until("the budget to be named as the reason", 5min,
                        scene->condition_is("default", "Progressing", "False", "BudgetExhausted", "a100-02"));
  co_await scene->stays("no node is touched", 5min, scene->undisturbed(before));
  if (!scene->failure().empty()) co_return;
  // One comes back: its slot is free, and the others go one by one. The other one stays away.
  scene->fleet().node("a100-02")->set_runtime(true);
  scene->excused = {"a100-04"};
  co_await scene->until_fleet_shows("every node but the one that is away", 60min);
  const std::set<std::string> others{"a100-01", "a100-02", "a100-03", "a100-05"};
  const Scene::Check others_rolled = [scene, before, others] { return scene->restarts_problem(before, others, false); };
  co_await scene->until("new pods on every node but the one that is away", 10min, others_rolled);
  scene->require(
      scene->phase_of("default", time_slicing_profile(4)) == "Progressing",
      "the rollout is '" + scene->phase_of("default", time_slicing_profile(4)) + "' although a node is missing");
  scene->require(scene->beyond(2));
  if (!scene->failure().empty()) co_return;
  scene->fleet().node("a100-04")->set_runtime(true);
  scene->excused.clear();
  co_await scene->until_fleet_shows("the last node, too", 20min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  co_await scene->until("its record to be complete", 5min,
                        scene->phase_is("default", time_slicing_profile(4), "Completed"));
}

}  // namespace gso::sim
