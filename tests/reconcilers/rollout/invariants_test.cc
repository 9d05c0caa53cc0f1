// The invariants of the design, checked at every step of random stories over the model fleet. Also checks that the
// index that follows events plans the same as an index that reads everything again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/fleet_model/invariant_checks.h"
#include "tests/reconcilers/fleet_model/same_plan_checks.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::invariants_test {
namespace {

FleetSpec mixed_fleet() {
  FleetSpec spec = spec_of(6, "mps-4", "a");
  spec.profiles.insert({{"ts", "ts-2"}, {"more", "ts-4"}});
  for (NodeSpec& node : alike_nodes(3, "Tesla-T4", "t")) spec.nodes.push_back(std::move(node));
  NodeSpec mig, bare, cordoned;
  mig.name = "mig";
  mig.gpus = 7;
  mig.mig = true;
  mig.labels = {{std::string(kConfigLabel), "ts"}};
  bare.name = "bare";
  bare.gfd = false;
  cordoned.name = "z-cordoned";
  cordoned.cordoned = true;
  spec.nodes.insert(spec.nodes.end(), {mig, bare, cordoned});
  return spec;
}

// One that selects a product. `profile`: its profile and deletionPolicy; `more`: more of its spec.rollout.
std::string by_product(std::string_view product, std::string_view profile, std::string_view more) {
  return policy_of(
      fmt::format("nodeSelector: {{matchExpressions: [{{key: nvidia.com/gpu.product, operator: In, values: [{0}, "
                  "{0}-SHARED]}}]}}, {1}, rollout: {{maxUnavailable: 30%, canary: {{soak: 3s}}, verifyTimeout: 40s, "
                  "idleTimeout: 30s{2}}}",
                  product, profile, more),
      "by-key");
}

void show(const FleetModel& fleet, const Plan& plan) {
  if (std::getenv("GSO_SHOW_STORY") == nullptr) return;
  for (const PlannedAction& action : plan.actions)
    if (!std::holds_alternative<PatchStatus>(action.action))
      fmt::print("{} {}\n", k8s::format_time(fleet.now), print(action));
}

class Stories : public testing::TestWithParam<int> {};

TEST_P(Stories, KeepTheInvariantsAtEveryStepAndConverge) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto coin = [&] { return pick(2) == 0; };
  const auto product = [&] { return coin() ? "Tesla-T4" : "NVIDIA-A100-SXM4-40GB"; };
  FleetSpec spec = mixed_fleet();
  spec.on_delete = pick(4) == 0;
  spec.crds = pick(5) != 0;
  if (pick(3) == 0) spec.plugin = "v0.17.1";
  FleetModel fleet(spec);
  fleet.settings.settle = std::chrono::seconds(pick(2) * 3);
  fleet.settings.cluster_max_unavailable = {50, true};
  fleet.settings.rollout.max_unavailable = {30, true};
  fleet.settings.rollout.canary_soak = std::chrono::seconds(3);
  fleet.settings.projection = std::chrono::seconds(2);
  fleet.settings.keep_unused_keys = std::chrono::seconds(20);
  fleet.settings.rollout.verify_timeout = std::chrono::seconds(40);
  fleet.settings.rollout.idle_timeout = std::chrono::seconds(30);
  auto checked_tick = [&] {
    const Plan again = fleet.plan_from_scratch(fleet.world);
    const Plan plan = fleet.plan();
    check_plan(fleet, plan);
    check_same(plan, again);
    check_shown_sums(fleet);
    show(fleet, plan);
    if (pick(25) == 0) {
      // The operator is killed after some of its writes, and starts again.
      const int done = plan.actions.empty() ? 0 : pick(static_cast<int>(plan.actions.size()));
      for (int i = 0; i < done; ++i) fleet.apply(plan.actions[static_cast<std::size_t>(i)]);
      fleet.restart_operator();
    } else {
      fleet.apply(plan);
    }
    fleet.advance(std::chrono::seconds(1));
  };
  for (int i = 0; i < 5; ++i) checked_tick();
  for (const NodeSpec& node : spec.nodes) EXPECT_EQ(fleet.restarts(node.name, "plugin"), 0) << "S9";

  const char* const profiles[] = {"mps-4", "mps-8",        "mps-8-many", "mps-6-renamed", "ts-4",
                                  "ts-8",  "ts-2-renamed", "none",       "broken"};
  const char* const nodes[] = {"a01", "a02", "a03", "t01", "mig", "bare", "z-cordoned"};
  for (int event = 0; event < 12; ++event) {
    const std::string node = nodes[pick(7)];
    const int what = pick(18);
    if (std::getenv("GSO_SHOW_STORY") != nullptr)
      fmt::print("{} event {} at {}\n", k8s::format_time(fleet.now), what, node);
    switch (what) {
      case 0:
      case 1:
      case 2:
        fleet.edit("any", profiles[pick(9)]);
        break;
      case 3:
        fleet.edit("ts", profiles[4 + pick(3)]);
        break;
      case 4:
        fleet.label(node, std::string(kConfigLabel), coin() ? std::optional<std::string>("ts") : std::nullopt);
        break;
      case 5:
        fleet.set_ready(node, coin());
        break;
      case 6:
        fleet.restart_operator();
        break;
      case 7:
        fleet.use(node, fmt::format("job{}", event), "nvidia.com/gpu", 1);
        break;
      case 8:
        fleet.annotate(node, kHoldAnnotation, coin() ? std::optional<std::string>("true") : std::nullopt);
        break;
      case 9:
        fleet.delete_pod_of(node, coin() ? "plugin" : "gfd");
        break;
      case 10:
        fleet.roll_templates(coin() ? "any" : "more");
        break;
      case 11:
        fleet.crash_pods(node, coin());
        break;
      case 12:
        if (spec.crds)
          fleet.policy(
              by_product(product(), coin() ? "profile: {configMapKey: ts}" : "profile: {configMapKey: more}", ""));
        break;
      case 13:
        fleet.remove_policy("by-key");
        break;
      case 14:
      case 15:
        if (spec.crds) {
          const char* on_failure = coin() ? ", onFailure: Rollback" : ", onFailure: Pause";
          const char* deletion = coin() ? "Revert" : "Retain";
          const int replicas = coin() ? 3 : 5;
          const std::string profile = fmt::format(
              "deletionPolicy: {}, profile: {{inline: {{strategy: time-slicing, replicas: {}}}}}", deletion, replicas);
          fleet.policy(by_product(product(), profile, on_failure));
        }
        break;
      case 17:
        fleet.stick_sidecars(node, pick(3) != 0);
        break;
      case 16:
        fleet.replace_config_map({{"any", "mps-4"}, {"ts", "ts-2"}, {"more", "ts-4"}});
        break;
      default:
        break;
    }
    for (int i = pick(14); i > 0 && !HasFatalFailure(); --i) checked_tick();
    if (HasFailure()) return;
  }
  // The inputs stop changing, and nothing blocks the rollout any more.
  fleet.edit("any", "mps-8");
  for (const char* node : nodes) {
    fleet.set_ready(node, true);
    fleet.annotate(node, kHoldAnnotation, std::nullopt);
    fleet.release(node);
    fleet.crash_pods(node, false);
    fleet.stick_sidecars(node, false);
  }
  fleet.on_plan = [&](const Plan& plan) { show(fleet, plan); };
  EXPECT_TRUE(fleet.settle(3000)) << "L1: did not come to rest";
  fleet.on_plan = nullptr;
  const Plan rest = fleet.plan();
  for (const PlannedAction& action : rest.actions) ADD_FAILURE() << "S6: " << print(action);
  check_converged_or_named(fleet, rest);
  for (const auto& [key, node] : fleet.world.nodes.all()) {
    const bool named = !named_reason(fleet, rest, key.name).empty();
    EXPECT_TRUE(named || node->unschedulable == (key.name == "z-cordoned")) << "S7: " << key.name;
  }
}

// GSO_SEEDS=801 plays the first 800 seeds.
int last_seed() {
  const char* wanted = std::getenv("GSO_SEEDS");
  return wanted ? std::atoi(wanted) : 41;
}
INSTANTIATE_TEST_SUITE_P(Seeds, Stories, testing::Range(1, last_seed()));

TEST(Writes, AreThreePatchesForADrainedNodeAndNoneForAnother) {
  FleetSpec spec = spec_of(5, "mps-4");
  spec.profiles["ts"] = "ts-2";
  spec.nodes[4].labels = {{std::string(kConfigLabel), "ts"}};
  FleetModel fleet(spec);
  ASSERT_TRUE(fleet.settle());
  for (const NodeSpec& node : spec.nodes) EXPECT_EQ(fleet.patches(node.name), 0) << "S9: " << node.name;
  fleet.edit("any", "mps-8");
  ASSERT_TRUE(fleet.settle());
  for (const NodeSpec& node : spec.nodes) {
    EXPECT_EQ(fleet.patches(node.name), node.name == "n05" ? 0 : 3) << node.name;
    EXPECT_EQ(fleet.restarts(node.name, "plugin"), node.name == "n05" ? 0 : 1) << node.name;
  }
}

TEST(Unsynced, NothingIsPlannedBeforeEveryStoreHasSynced) {
  FleetModel fleet(spec_of(2, "mps-4"));
  fleet.edit("any", "mps-8");
  check_incomplete_views(fleet);
  EXPECT_TRUE(fleet.plan().timers_complete);
  fleet.world.rollouts = {};
  EXPECT_FALSE(fleet.plan().timers_complete) << "a plan without changes of nodes says that timers are missing";
}

TEST(Unsynced, ANamespaceWhoseWatchesHaveNotSyncedIsLeftAlone) {
  FleetModel fleet(spec_of(2, "mps-4"));
  fleet.world.unsynced_namespaces = {"gpu-operator"};
  EXPECT_EQ(count_of<WriteConfigMap>(fleet.plan()), 0) << "a baseline from an incomplete view";
  fleet.world.unsynced_namespaces.clear();
  ASSERT_TRUE(fleet.settle());
  fleet.edit("any", "mps-8");
  fleet.world.unsynced_namespaces = {"gpu-operator"};
  fleet.plan();
  fleet.advance(std::chrono::seconds(20));
  EXPECT_EQ(disruptive_in(fleet.plan()), 0);
}

// The nodes that plans disrupt, while so many seconds pass.
std::set<std::string> disrupted_within(FleetModel& fleet, int seconds) {
  std::set<std::string> out;
  for (int i = 0; i < seconds; ++i) {
    for (const PlannedAction& action : fleet.tick().actions)
      if (action.disruptive) out.insert(action.node);
  }
  return out;
}

TEST(StaleViews, StartNoNode) {
  const struct {
    const char* what;
    StaleView view;
    bool starts;
  } cases[] = {
      {"the nodes", {"nodes", resources::nodes, "", {}, true}, false},
      {"the policies, where a pause would be", {"sharingpolicies", resources::sharing_policies, "", {}, true}, false},
      {"a moment ago, which is not reported", {"nodes", resources::nodes, "", {}, false}, false},
      {"the plugin's pods", {"pods of gpu-operator", resources::pods, "gpu-operator", {}, true}, false},
      {"the record", {"configmaps", resources::config_maps, "gpu-sharing-operator", {}, true}, false},
      {"the pods of another installation", {"pods of other", resources::pods, "other", {}, true}, true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    FleetModel fleet(spec_of(3, "mps-4"));
    ASSERT_TRUE(fleet.settle());
    fleet.edit("any", "mps-8");
    fleet.world.stale_views = {c.view};
    EXPECT_EQ(!disrupted_within(fleet, 300).empty(), c.starts);
    EXPECT_EQ(said_with(fleet.plan(), kViewStale).size(), c.view.reported ? 1U : 0U);
    EXPECT_EQ(fleet.policy_status("default").contains(kViewStale), c.view.reported && !c.starts);
    fleet.world.stale_views.clear();
    ASSERT_TRUE(fleet.settle());
    EXPECT_EQ(fleet.restarts("n01", "plugin"), 1);
  }
}

TEST(StaleViews, LetANodeFinishThatHasLostItsFirstPod) {
  FleetModel fleet(spec_of(3, "mps-4"));
  ASSERT_TRUE(fleet.settle());
  fleet.edit("any", "mps-8");
  std::set<std::string> first;  // With a deleted pod.
  for (int i = 0; i < 300 && first.empty(); ++i) {
    for (const PlannedAction& action : fleet.tick().actions)
      if (std::holds_alternative<DeletePod>(action.action)) first.insert(action.node);
  }
  ASSERT_EQ(first.size(), 1U) << "the canary";
  fleet.world.stale_views = {{"nodes", resources::nodes, "", fleet.now, true}};
  std::set<std::string> later = disrupted_within(fleet, 600);
  later.erase(*first.begin());
  EXPECT_EQ(later, std::set<std::string>{});
  EXPECT_EQ(fleet.restarts(*first.begin(), "plugin"), 1);
  EXPECT_EQ(fleet.label_of(*first.begin(), kStateLabel), "") << "it has left its change";
}

// RBAC can deny the pods alone: none in the view does not mean that none runs.
TEST(Unsynced, PodsThatCannotBeReadAreNoDriftAndAConfigMapIsNotCalledMissing) {
  FleetModel fleet(spec_of(2, "mps-4"));
  ASSERT_TRUE(fleet.settle());
  const auto planned = [&] {
    fleet.index.note_everything_changed();  // As the runtime does when a namespace can be read, or cannot any more.
    return fleet.plan();
  };
  const World before = fleet.world;
  for (const auto& [key, pod] : before.operand_pods.all()) fleet.world.operand_pods.erase(key);
  EXPECT_EQ(said_with(planned(), kDrift).size(), 2U) << "pods that are gone are";
  fleet.world.unsynced_namespaces = {"gpu-operator"};
  EXPECT_EQ(said_with(planned(), kDrift).size(), 0U);

  fleet.world = before;
  fleet.world.configmaps.erase({"gpu-operator", "mps-config"});
  planned();
  EXPECT_EQ(fleet.index.assessment("n01")->obstacle.message, "ConfigMap gpu-operator/mps-config does not exist");
  fleet.world.unsynced_namespaces = {"gpu-operator"};
  planned();
  EXPECT_EQ(fleet.index.assessment("n01")->obstacle.message, "ConfigMap gpu-operator/mps-config cannot be read");
  EXPECT_TRUE(fleet.index.assessment("n01")->would_break.view().empty()) << "nobody knows that";
}

// Conditions with a running timer count as not done yet (gpusharing_convergence_seconds): a node that has failed waits
// for people.
TEST(Conditions, OfAFailedNodeNameNothingThatIsWaitedFor) {
  FleetModel fleet(spec_of(2));
  ASSERT_TRUE(fleet.settle());
  fleet.advance(std::chrono::seconds(5));
  fleet.policy(rollout_of("verifyTimeout: 30s"));
  fleet.crash_pods("n01", true);
  fleet.edit("any", "ts-8");
  tick(fleet, 60);
  ASSERT_EQ(fleet.label_of("n01", kStateLabel), kStateFailed);
  for (const TimerKey& key : fleet.plan().timers) EXPECT_FALSE(shows_progress(key.timer)) << to_string(key);
}

}  // namespace
}  // namespace gso::test::invariants_test
