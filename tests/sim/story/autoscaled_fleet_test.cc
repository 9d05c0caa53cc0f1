// Profiles change while a cluster autoscaler adds machines under new names and removes idle ones, and while people
// start jobs and end them. Each seed is another course of events; the invariants are judged on every write, and every
// machine that is left shows the last profile. GSO_AUTOSCALED_SEEDS=N plays N seeds; GSO_STORY_VERBOSE=1 says what
// happens.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/workload.h"
#include "tests/sim/story/restart_ledger.h"
#include "tests/sim/story/restart_rules.h"
#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim::autoscaled_fleet_test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr std::size_t kBudget = 2, kMost = 8;
constexpr int kFirst = 4, kActs = 14;
const std::string kGroup = "pool";

// What must not happen to a node that the operator has said is in a change.
struct Watched {
  std::set<std::string> guarded;  // Nodes as the server has them, with the operator's annotation.
  std::size_t removed = 0, changed = 0;
  std::string wrong;

  void on_write(const AuditEntry& entry) {
    if (entry.gvr.resource != "nodes" || entry.status >= 300 || entry.before == nullptr) return;
    const std::string& name = entry.key.name;
    if (entry.after == nullptr) {
      ++removed;
      guarded.erase(name);
      return;
    }
    const auto is_leaving = [](const json& node) {
      return std::ranges::any_of(items(member(node, "spec"), "taints"),
                                 [](const json& taint) { return text(taint, "key") == kToBeDeleted; });
    };
    const bool goes = is_leaving(*entry.after) && !is_leaving(*entry.before);
    if (goes && guarded.contains(name) && wrong.empty())
      wrong = name + " was taken away in a change, with its guard set";
    const bool guards = text(annotations(*entry.after), kScaleDownDisabled) == "true";
    if (guards && guarded.insert(name).second) ++changed;
    if (!guards) guarded.erase(name);
  }
};

struct Play {
  Scene* scene;
  std::mt19937_64 random;
  int jobs = 0;
  std::set<std::string> running = {};

  std::size_t one_of(std::size_t choices) { return std::uniform_int_distribution<std::size_t>(0, choices - 1)(random); }
};

NodeGroup group(std::size_t least, std::size_t most) {
  return {.machine = {.name = kGroup, .gpus = {a100(), a100()}}, .least = least, .most = most};
}

asio::awaitable<void> start_job(std::shared_ptr<Play> play) {
  const std::vector<NodeSpec> machines = play->scene->fleet().machines();
  if (machines.empty()) co_return;
  const std::string name = fmt::format("job-{}", ++play->jobs);
  json pod = consumer_pod({.node = machines[play->one_of(machines.size())].name, .name = name});
  if (play->one_of(2) == 0) pod["metadata"]["annotations"][std::string(kSafeToEvict)] = "true";
  const k8s::ObjectKey key{"default", name};
  co_await play->scene->put(kPods, key, pod);
  play->running.insert(name);
}

asio::awaitable<void> end_jobs(std::shared_ptr<Play> play) {
  for (const std::string& job : std::exchange(play->running, {})) {
    const k8s::ObjectKey key{"default", job};
    co_await play->scene->remove(kPods, key);
  }
}

asio::awaitable<void> act(std::shared_ptr<Play> play) {
  const std::vector<std::string> profiles{time_slicing_profile(2), time_slicing_profile(4), mps_profile(4),
                                          mps_profile(8)};
  const std::size_t which = play->one_of(6);
  if (which <= 1) co_await play->scene->edit("any", profiles[play->one_of(profiles.size())]);
  if (which == 2) co_await start_job(play);
  if (which == 3) co_await end_jobs(play);
  if (which >= 4) play->scene->fleet().autoscaler().manage(group(1 + play->one_of(kMost - 1), kMost));
  co_await play->scene->stays("the invariants", std::chrono::minutes(1 + play->one_of(12)));
}

std::string leftovers(const Scene& scene) {
  for (const NodeSpec& node : scene.nodes()) {
    const auto there = scene.view().nodes.find(k8s::ObjectKey{"", node.name});
    if (there == nullptr) return node.name + " is not there";
    if (test::has_change_annotations(test::annotations_of(*there)))
      return node.name + " keeps the annotations of its change";
    if (annotations(*there).contains(std::string(kScaleDownDisabled))) return node.name + " keeps its guard";
    if (!scene.view().schedulable(node.name)) return node.name + " stays cordoned";
  }
  return {};
}

asio::awaitable<std::string> tell(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  co_await scene->open();
  const OperatorSettings short_soak{{"canary-soak", "30s"}};
  co_await scene->begin(time_slicing_profile(2), short_soak);
  scene->fleet().autoscaler().manage(group(kFirst, kMost));
  for (int acts = 0; acts < kActs && scene->failure().empty(); ++acts) {
    // Whatever the seed is, the fleet grows once.
    if (acts == kActs / 2) {
      scene->fleet().autoscaler().manage(group(kMost - 1, kMost));
      co_await scene->clock().sleep_for(3min);
    }
    co_await act(play);
  }
  co_await end_jobs(play);
  scene->fleet().autoscaler().release();
  const Scene::Check at_rest = [scene] {
    return scene->fleet().autoscaler().at_work() ? std::string("machines come or go") : std::string();
  };
  co_await scene->until("the autoscaler to be done", 10min, at_rest);
  scene->expect_nodes(scene->fleet().machines());
  co_await scene->edit("any", mps_profile(6));
  co_await scene->until_fleet_shows("every machine that is left on the last profile", 2h);
  co_await scene->until_settled(30min);
  scene->require(leftovers(*scene));
  co_await scene->clock().sleep_for(90s);  // The last Events.
  const std::string traces = scene->operator_traces();
  co_await scene->stays("the invariants", 10min);
  scene->require(scene->operator_traces() == traces, "S6: it writes although everything has converged");
  co_return scene->failure();
}

std::uint64_t seeds() {
  const char* wanted = std::getenv("GSO_AUTOSCALED_SEEDS");
  return wanted == nullptr ? 4 : std::strtoull(wanted, nullptr, 10);
}

class AutoscaledFleet : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AutoscaledFleet, KeepsTheInvariantsAndArrives) {
  std::vector<NodeSpec> nodes = alike(kGroup, kFirst, {a100(), a100()});
  for (NodeSpec& node : nodes) node.labels[kNodeGroupLabel] = kGroup;
  RestartLedger ledger(VirtualWorld::kOperatorUser);
  RestartRules rules(VirtualWorld::kOperatorUser, {});
  Watched watched;
  FleetTiming timing;
  timing.heartbeat = 0s;
  timing.seed = GetParam();
  VirtualWorld world(nodes, {.budget = kBudget}, timing);
  ledger.attach(&world.server);
  rules.attach(&world.server);
  world.server.add_audit_listener([&watched](const AuditEntry& entry) { watched.on_write(entry); });
  Scene& scene = open_scene(world, world.stage_options());
  scene.invariant = [&] {
    for (const std::string& violation :
         {world.invariants.violation(), ledger.violation(), rules.violation(), watched.wrong})
      if (!violation.empty()) return violation;
    return std::string();
  };
  auto play = std::make_shared<Play>(Play{&scene, std::mt19937_64(GetParam())});
  const auto wrong = world.hear(tell(play), 48h);
  EXPECT_EQ(wrong.value_or("it does not end"), "") << world.record();
  EXPECT_EQ(scene.invariant(), "") << world.record();
  EXPECT_GT(watched.changed, 0U) << "no node was ever changed";
  const ClusterAutoscaler& autoscaler = world.fleet.autoscaler();
  EXPECT_GT(autoscaler.added().size(), 0U) << "no machine was added";
  EXPECT_EQ(watched.removed, autoscaler.removed().size());
  std::printf("%zu machines added, %zu removed, %zu changes of nodes\n", autoscaler.added().size(),
              autoscaler.removed().size(), watched.changed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AutoscaledFleet, testing::Range<std::uint64_t>(1, 1 + seeds()));

}  // namespace
}  // namespace gso::sim::autoscaled_fleet_test
