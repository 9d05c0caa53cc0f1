// The baseline when a namespace cannot be read, and in a fleet whose record needs several ConfigMaps.
#include <gtest/gtest.h>

#include <algorithm>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::baseline_test {
namespace {

// A second device plugin in a tenant's namespace, on one node of its own.
void add_tenant(FleetModel& fleet) {
  DaemonSet tenants = *fleet.world.daemonsets.find(ObjectKey{"gpu-operator", "nvidia-device-plugin-daemonset"});
  tenants.meta.ns = k8s::Interned("tenant");
  tenants.meta.uid = "ds-tenant";
  tenants.meta.owners.clear();
  tenants.node_selector = {{"tenant", "true"}};
  fleet.world.daemonsets.apply(std::move(tenants));
  fleet.label("n03", "nvidia.com/gpu.deploy.device-plugin", std::nullopt);
  fleet.label("n03", "nvidia.com/gpu.deploy.gpu-feature-discovery", std::nullopt);
  fleet.label("n03", "tenant", "true");
}

TEST(Baseline, ANamespaceThatIsRefusedKeepsOnlyItsOwnNodesWithoutOne) {
  FleetModel fleet(spec_of(3));
  let_all_go_at_once(fleet);
  add_tenant(fleet);
  fleet.world.unsynced_namespaces = {"tenant"};
  fleet.settle();
  EXPECT_FALSE(fleet.index.impl().record) << "it may just be loading";
  fleet.world.refused_namespaces = {"tenant"};
  fleet.settle();
  ASSERT_TRUE(fleet.index.impl().record);
  EXPECT_EQ(fleet.index.assessment("n01")->phase, Phase::up_to_date);
  EXPECT_EQ(fleet.index.assessment("n03")->phase, Phase::unrecorded);
  fleet.advance(std::chrono::minutes(1));
  fleet.edit("any", "ts-8");
  fleet.settle();
  EXPECT_EQ(fleet.allocatable("n01", kGpuResource), 16) << "the others are rolled";
  EXPECT_EQ(fleet.patches("n03"), 0);

  fleet.world.unsynced_namespaces.clear();
  fleet.world.refused_namespaces.clear();
  fleet.settle();
  EXPECT_TRUE(fleet.index.impl().record->without_baseline.empty());
  EXPECT_NE(fleet.index.assessment("n03")->phase, Phase::unrecorded);
  EXPECT_EQ(fleet.patches("n03"), 0) << "first sight of it changes nothing";
}

// The ConfigMap was applied again after the pods had started: they show this text, and may have read another one.
TEST(Baseline, KeepsTheTextOfAKeyThatEveryNodeShowsForAnUndoButDoesNotCallItVerified) {
  FleetModel fleet(spec_of(3));
  fleet.advance(std::chrono::minutes(1));
  fleet.replace_config_map({{"any", "ts-4"}});
  fleet.advance(std::chrono::minutes(5));
  fleet.settle();
  const auto& record = fleet.index.impl().record;
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->verified.empty());
  ASSERT_EQ(record->previous.size(), 1U);
  EXPECT_EQ(record->previous.begin()->first, "gpu-operator/mps-config/any");
  EXPECT_EQ(record->texts.size(), 1U);

  fleet.edit("any", "ts-8");
  fleet.settle();
  EXPECT_EQ(record->verified.size(), 1U);
  EXPECT_EQ(record->previous.size(), 1U) << "the text from before the edit";
  EXPECT_EQ(record->texts.size(), 2U);
}

// GitOps applies the policy first. The labels of its nodes have still to be written.
TEST(Baseline, HasTheKeyThatNodesRunWhereAPolicyWantsAnotherOne) {
  FleetSpec spec = spec_of(2);
  spec.profiles["less"] = "ts-2";
  spec.nodes[1].gfd = false;
  FleetModel fleet(spec);
  fleet.policy(policy_of("profile: {configMapKey: less}, rollout: {paused: true}", "p"));
  fleet.settle();
  const auto& record = fleet.index.impl().record;
  ASSERT_TRUE(record);
  for (const std::string node : {"n01", "n02"}) {
    const NodeAssessment& a = *fleet.index.assessment(node);
    const Node& object = *fleet.world.nodes.find(node);
    const MachineRecord* entry = record->machines.find(machine_id(object.meta.uid.str()));
    ASSERT_NE(entry, nullptr) << node;
    EXPECT_EQ(entry->key, "any") << node;
    EXPECT_FALSE(entry->drift) << node;
    EXPECT_NE(entry->revision, a.target) << node;
    EXPECT_EQ(a.phase, Phase::pending) << node;
    EXPECT_TRUE(a.shrinks) << node;
  }
  EXPECT_EQ(fleet.index.assessment("n02")->recorded_gpus, 2) << "8 replicas, 4 of each GPU";
  EXPECT_FALSE(record->verified.contains("gpu-operator/mps-config/less"));
}

// What the operator sees when it writes the record for another reason, after the DaemonSet of the MPS daemon was
// deleted.
const struct {
  const char* what;
  void (*see)(World& world, const DaemonSet& gone);
  bool forgets;
} kTemplateCases[] = {
    {"it is gone", [](World&, const DaemonSet&) {}, true},
    {"a namespace is loading", [](World& world, const DaemonSet&) { world.unsynced_namespaces = {"tenant"}; }, false},
    {"a view does not deliver",
     [](World& world, const DaemonSet&) { world.stale_views = {{"events of tenant", {}, "tenant", {}, true}}; }, false},
    {"its namespace is no operand namespace any more",
     [](World& world, const DaemonSet& gone) { world.foreign_daemonsets.apply(gone); }, false},
    {"more DaemonSets are elsewhere than the operator keeps",
     [](World& world, const DaemonSet&) { world.foreign_daemonsets_beyond = 1; }, false},
};

TEST(Baseline, ForgetsTheTemplateOfADaemonSetThatIsCertainlyGone) {
  for (const auto& each : kTemplateCases) {
    SCOPED_TRACE(each.what);
    FleetModel fleet(spec_of(2));
    fleet.settle();
    const auto& record = fleet.index.impl().record;
    ASSERT_EQ(record->templates.size(), 3U);
    const DaemonSet gone =
        *fleet.world.daemonsets.find(ObjectKey{"gpu-operator", "nvidia-device-plugin-mps-control-daemon"});
    fleet.world.daemonsets.erase(gone.meta.key());
    each.see(fleet.world, gone);
    fleet.edit("any", "ts-8");
    fleet.settle();
    EXPECT_EQ(fleet.allocatable("n01", kGpuResource), 16) << "the record was written";
    EXPECT_EQ(record->templates.size(), each.forgets ? 2U : 3U);
  }
}

TEST(Baseline, OfALargeFleetIsWrittenInPartsAndRestartsNothing) {
  FleetModel fleet(spec_of(1200));
  fleet.on_plan = [&](const Plan& plan) { EXPECT_EQ(disruptive_in(plan), 0); };
  ASSERT_TRUE(fleet.settle());
  ASSERT_TRUE(fleet.index.impl().record) << fleet.index.impl().record_problem;
  EXPECT_EQ(fleet.index.impl().record->machines.size(), 1200U);
  EXPECT_EQ(
      std::ranges::count_if(fleet.world.configmaps.all(),
                            [&](const auto& entry) { return entry.first.ns == fleet.settings.operator_namespace; }),
      17);
  // A part of the record is deleted: the remaining parts start no rollout.
  fleet.world.configmaps.erase(shard_key(state_key(fleet.settings), 2));
  fleet.edit("any", "ts-8");
  fleet.advance(std::chrono::minutes(1));
  const Plan plan = fleet.plan();
  EXPECT_EQ(disruptive_in(plan), 0);
  EXPECT_TRUE(std::ranges::any_of(said_with(plan, kRecordUnreadable), [](const std::string& said) {
    return said.starts_with("gpu-sharing-operator-state-2: ");
  }));
}

}  // namespace
}  // namespace gso::test::baseline_test
