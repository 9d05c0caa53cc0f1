// Who else works on the nodes of the fleet: NFD's worker, driver upgrades, the MIG manager, the DRA driver.
#include <gtest/gtest.h>

#include "tests/sim/fleet/one_node.h"

namespace gso::sim {
namespace {

using namespace std::chrono_literals;

const std::string kProduct = "nvidia.com/gpu.product", kDeploy = "nvidia.com/gpu.deploy.device-plugin";

TEST(FeatureFiles, LabelsAreAwayUntilTheWorkerLooksAgain) {
  TestCluster cluster(one_node());
  cluster.fleet.faults().feature_files = cluster.fleet.faults().worker_looks_in_the_gap = true;
  cluster.install({}, {{"any", slices(4)}});
  ASSERT_TRUE(cluster.eventually([&] { return cluster.label_of(kNode, kProduct) == "Tesla-T4-SHARED"; }));
  cluster.delete_pods(kNode, kDiscoverySet);
  EXPECT_TRUE(cluster.eventually([&] { return cluster.label_of(kNode, kProduct).empty(); }, 30s));
  cluster.pass(30s);
  EXPECT_EQ(cluster.label_of(kNode, kProduct), "") << "the file is back, and nobody has looked";
  EXPECT_FALSE(cluster.pod(kNode, kDiscoverySet).is_null());
  EXPECT_TRUE(cluster.eventually([&] { return cluster.label_of(kNode, kProduct) == "Tesla-T4-SHARED"; }, 1min));
}

TEST(FeatureFiles, ANodeFeatureOutlivesItsPod) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  cluster.delete_pods(kNode, kDiscoverySet);
  EXPECT_FALSE(cluster.eventually([&] { return cluster.label_of(kNode, kProduct).empty(); }, 3min));
}

TEST(DriverUpgrade, TakesThePluginOffTheNodeAndLeavesACordonThatWasThere) {
  for (const bool cordoned : {false, true}) {
    OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
    if (cordoned) cluster.patch(kNodes, {"", kNode}, {{"spec", {{"unschedulable", true}}}});
    cluster.pass(5s);
    const auto is_cordoned = [&] {
      return (*cluster.server.get(kNodes, {"", kNode}))["spec"].value("unschedulable", false);
    };
    const auto state = [&] { return cluster.label_of(kNode, "nvidia.com/gpu-driver-upgrade-state"); };
    cluster.fleet.driver_upgrader().upgrade(kNode);
    EXPECT_TRUE(cluster.eventually([&] { return state() == "pod-restart-required"; }));
    EXPECT_TRUE(is_cordoned());
    EXPECT_EQ(cluster.label_of(kNode, kDeploy), "paused-for-driver-upgrade");
    EXPECT_TRUE(cluster.eventually([&] { return cluster.pod(kNode, kPluginSet).is_null(); }, 30s));
    EXPECT_TRUE(cluster.eventually([&] { return state() == "upgrade-done"; }));
    EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 8; }));
    EXPECT_EQ(is_cordoned(), cordoned);
  }
}

TEST(MigManager, CutsTheGpusOnceTheirPodsAreGone) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8, {a100(), a100()});
  const auto state = [&] { return cluster.label_of(kNode, "nvidia.com/mig.config.state"); };
  cluster.label(kNode, "nvidia.com/mig.config", "all-1g.5gb");
  EXPECT_TRUE(cluster.eventually([&] { return state() == "pending"; }, 10s));
  EXPECT_EQ(cluster.label_of(kNode, kDeploy), "paused-for-mig-change");
  EXPECT_TRUE(cluster.eventually([&] { return state() == "success"; }));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 2 * 7 * 4; }));
  EXPECT_EQ(cluster.label_of(kNode, kDeploy), "true");
}

TEST(MigManager, FailsAtOnceForAConfigThatItDoesNotKnow) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8, {a100(), a100()});
  cluster.label(kNode, "nvidia.com/mig.config", "all-9g.90gb");
  const auto state = [&] { return cluster.label_of(kNode, "nvidia.com/mig.config.state"); };
  EXPECT_TRUE(cluster.eventually([&] { return state() == "failed"; }, 10s));
  EXPECT_FALSE(cluster.pod(kNode, kPluginSet).is_null());
}

TEST(DraDriver, OffersTheGpusOfANodeAndTakesThemBack) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  nlohmann::json definition = open_definition("resource.k8s.io", "resourceslices", "ResourceSlice", "v1", false);
  definition["metadata"]["annotations"]["api-approved.kubernetes.io"] = "unapproved, for a test";
  cluster.create(kCustomResourceDefinitions, definition);
  cluster.pass(5s);
  const k8s::ObjectKey key{"", kNode + "-gpu.nvidia.com"};
  cluster.fleet.dra_driver().offer(kNode, 2);
  ASSERT_TRUE(cluster.eventually([&] { return cluster.server.get(kResourceSlices, key).has_value(); }, 10s));
  EXPECT_EQ((*cluster.server.get(kResourceSlices, key))["spec"]["devices"].size(), 2U);
  cluster.fleet.dra_driver().withdraw(kNode);
  EXPECT_TRUE(cluster.eventually([&] { return !cluster.server.get(kResourceSlices, key).has_value(); }, 10s));
}

}  // namespace
}  // namespace gso::sim
