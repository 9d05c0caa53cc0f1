// Who else works on the nodes of the fleet: NFD's worker, driver upgrades, the MIG manager, the DRA driver, the cluster
// autoscaler.
#include <gtest/gtest.h>

#include "tests/sim/fleet/one_node.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim::fleet_neighbours_test {
namespace {

using namespace std::chrono_literals;

const std::string kProduct = "nvidia.com/gpu.product", kDeploy = "nvidia.com/gpu.deploy.device-plugin";

TEST(FeatureDiscovery, LeavesItsLabelsWhenItsPodGoes) {
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

TEST(MigManager, FailsAtOnceForAConfigThatItDoesNotKnow) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8, {a100(), a100()});
  cluster.label(kNode, "nvidia.com/mig.config", "all-9g.90gb");
  const auto state = [&] { return cluster.label_of(kNode, "nvidia.com/mig.config.state"); };
  EXPECT_TRUE(cluster.eventually([&] { return state() == "failed"; }, 10s));
  EXPECT_FALSE(cluster.pod(kNode, kPluginSet).is_null());
}

// A node group that has one machine so far.
class Autoscaled : public TestCluster {
 public:
  Autoscaled() : TestCluster(options()) {
    install({}, {{"any", slices(4)}});
    EXPECT_TRUE(eventually([&] { return serves(kNode); }));
  }
  void manage(std::size_t least, std::size_t most) {
    fleet.autoscaler().manage({.machine = {.name = "pool", .gpus = {t4(), t4()}}, .least = least, .most = most});
  }
  bool serves(const std::string& node) const { return allocatable(node, kGpu) == 8; }
  bool is_there(const std::string& node) const { return server.get(kNodes, {"", node}).has_value(); }
  // A pod that asks for so many devices, on that node or wherever a scheduler finds them.
  void ask_for(std::int64_t devices, const std::string& node, const std::string& safe_to_evict = "") {
    nlohmann::json pod = consumer_pod({.node = node, .name = "train", .count = devices});
    if (!safe_to_evict.empty())
      pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] = safe_to_evict;
    create(kPods, pod);
  }

 private:
  static FleetOptions options() {
    FleetOptions options = one_node();
    options.nodes.front().labels[kNodeGroupLabel] = "pool";
    options.act_as_scheduler = true;
    return options;
  }
};

TEST(ClusterAutoscaler, AddsAMachineUnderANewNameForAPodThatFitsNowhereAndRemovesItOnceItIsIdle) {
  Autoscaled cluster;
  cluster.manage(1, 3);
  cluster.ask_for(8, kNode, "false");
  nlohmann::json waiting = consumer_pod({.name = "waiting", .count = 8});
  cluster.create(kPods, waiting);
  ASSERT_TRUE(cluster.eventually([&] { return cluster.serves("pool-x1"); }));
  ASSERT_TRUE(cluster.eventually(
      [&] { return (*cluster.server.get(kPods, {"default", "waiting"}))["spec"].value("nodeName", "") == "pool-x1"; }));
  cluster.pass(15min);
  EXPECT_EQ(cluster.fleet.autoscaler().added().size(), 1U);
  EXPECT_TRUE(cluster.is_there("pool-x1")) << "it is in use";
  cluster.remove(kPods, {"default", "waiting"});
  cluster.pass(9min);
  EXPECT_TRUE(cluster.is_there("pool-x1"));
  EXPECT_TRUE(cluster.eventually([&] { return !cluster.is_there("pool-x1"); }, 3min));
  cluster.pass(2min);
  EXPECT_TRUE(cluster.pod("pool-x1", kPluginSet).is_null());
  EXPECT_TRUE(cluster.is_there(kNode));
}

TEST(ClusterAutoscaler, LeavesANodeThatSaysSoUntilItNoLongerDoes) {
  Autoscaled cluster;
  const auto disable = [&](nlohmann::json value) {
    nlohmann::json body;
    body["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = std::move(value);
    cluster.patch(kNodes, {"", kNode}, body);
  };
  disable("true");
  cluster.manage(0, 3);
  cluster.pass(30min);
  EXPECT_TRUE(cluster.is_there(kNode));
  disable(nullptr);
  cluster.pass(9min);
  EXPECT_TRUE(cluster.is_there(kNode)) << "it has been unneeded for nine minutes";
  EXPECT_TRUE(cluster.eventually([&] { return !cluster.is_there(kNode); }, 3min));
}

TEST(ClusterAutoscaler, EvictsWhatMayGoAndNothingElse) {
  for (const char* safe : {"", "false", "true"}) {
    Autoscaled cluster;
    cluster.ask_for(1, kNode, safe);
    cluster.manage(0, 3);
    cluster.pass(15min);
    EXPECT_EQ(cluster.is_there(kNode), safe != std::string("true")) << "safe-to-evict is '" << safe << "'";
  }
}

}  // namespace
}  // namespace gso::sim::fleet_neighbours_test
