// The fleet on the simulated API server: what NVIDIA's components do to each other, by version, defects included.
#include <gtest/gtest.h>

#include "tests/sim/fleet/one_node.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim::fleet_cluster_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(GpuOperatorFleet, WritesItsFeatureLabelsIntoTheNfdAnnotation) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  const auto node = cluster.server.get(kNodes, {"", kNode});
  const std::string list = (*node)["metadata"]["annotations"].value(kFeatureLabels, "");
  EXPECT_NE(list.find("nvidia.com/gpu.replicas"), std::string::npos) << list;
  EXPECT_NE(list.find("pci-10de.present"), std::string::npos) << list;
  EXPECT_EQ(list.find("feature.node.kubernetes.io/"), std::string::npos) << "its own prefix is left out: " << list;
  EXPECT_EQ(list.find("gpu.deploy"), std::string::npos) << "the GPU Operator's labels are not NFD's: " << list;
}

TEST(ConfigMapEdits, LeaveTheDaemonOnTheOldReplicasWhenOnlyThePluginRestarts) {
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  cluster.edit_key("any", mps(8));
  cluster.delete_pods(kNode, kPluginSet);
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 16; }));
  EXPECT_EQ(cluster.fleet.node(kNode)->machine().mps().at(kGpu).replicas, 4)
      << "the plugin does not look at its limits";
}

TEST(ConfigMapEdits, ThatDoNotParseTakeANodesGpusAway) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  cluster.edit_key("any", slices(1));
  cluster.delete_pods(kNode, kPluginSet);
  EXPECT_TRUE(cluster.eventually([&] {
    return cluster.allocatable(kNode, kGpu) == 0 && cluster.restarts(kPluginSet, "nvidia-device-plugin") >= 2;
  }));
  const json status = cluster.container(kNode, kPluginSet, "nvidia-device-plugin");
  EXPECT_EQ(status["lastState"]["terminated"].value("exitCode", 0), 1) << status;
}

TEST(NodeLabel, MovesPluginAndDiscoveryWithoutNewPods) {
  for (const char* version : {"v0.17.0", "v0.20.0"}) {
    OneNode cluster(version, {{"any", slices(4)}, {"ten", slices(10)}}, "any", 8);
    const std::string uid = cluster.pod(kNode, kPluginSet)["metadata"]["uid"];
    cluster.label(kNode, kConfigLabel, "ten");
    EXPECT_TRUE(cluster.eventually([&] {
      return cluster.allocatable(kNode, kGpu) == 20 && cluster.label_of(kNode, "nvidia.com/gpu.replicas") == "10";
    })) << version;
    EXPECT_EQ(cluster.pod(kNode, kPluginSet)["metadata"]["uid"], uid) << version;
    EXPECT_EQ(cluster.restarts(kPluginSet, "config-manager"), 0) << version;
    cluster.label(kNode, kConfigLabel, std::nullopt);
    EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 8; })) << version;
  }
}

TEST(NodeLabel, IsPrecededByTheDefaultOnEveryStartFromV18_2) {
  for (const auto& [version, default_first] :
       {std::pair{"v0.17.0", false}, {"v0.18.1", false}, {"v0.18.2", true}, {"v0.20.0", true}}) {
    OneNode cluster(version, {{"any", slices(4)}, {"ten", slices(10)}}, "any", 8);
    cluster.label(kNode, kConfigLabel, "ten");
    EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 20; })) << version;
    cluster.delete_pods(kNode, kPluginSet);
    // What the new pod's link points at when its main container starts.
    std::string first;
    EXPECT_TRUE(cluster.eventually([&] {
      PodRunner* pod = cluster.fleet.node(kNode)->pod_of(kPluginSet);
      const json status = cluster.container(kNode, kPluginSet, "nvidia-device-plugin");
      if (pod == nullptr || pod->terminating() || !pod->link() || !first.empty()) return !first.empty();
      first = *pod->link();
      return true;
    })) << version;
    EXPECT_EQ(first, default_first ? "/available-configs/any" : "/available-configs/ten") << version;
    EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 20; }))
        << "it ends up there anyway";
  }
}

TEST(NodeLabel, WithAKeyThatIsNotThereCrashesTheSidecar) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  cluster.label(kNode, kConfigLabel, "missing");
  EXPECT_TRUE(cluster.eventually([&] { return cluster.restarts(kPluginSet, "config-manager") >= 3; }));
  const json status = cluster.container(kNode, kPluginSet, "config-manager");
  EXPECT_TRUE(cluster.eventually([&] {
    const json state = cluster.container(kNode, kPluginSet, "config-manager")["state"];
    return state.contains("waiting") && state["waiting"].value("reason", "") == "CrashLoopBackOff";
  })) << status;
  EXPECT_EQ(cluster.fleet.node(kNode)->pod_of(kPluginSet)->last_log("config-manager"),
            "error: specified config missing does not exist");
  // The key arrives: once the kubelet has projected it and the back-off has passed, the sidecar gets there.
  cluster.edit_key("missing", slices(10));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 20; }, 20min));
}

TEST(NodeLabel, IsSafeOnceTheKeyIsProjectedAndAPodAnnotationMakesThatPrompt) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  cluster.fleet.faults().late_projection = 1h;
  cluster.pass(2min);  // The sync that was already due.
  cluster.edit_key("ten", slices(10));
  for (const char* daemonset : {kPluginSet, kDiscoverySet}) {
    const json pod = cluster.pod(kNode, daemonset);
    cluster.patch(kPods, {"gpu-operator", pod["metadata"]["name"]},
                  {{"metadata", {{"annotations", {{"touched", "1"}}}}}});
  }
  cluster.pass(5s);
  cluster.label(kNode, kConfigLabel, "ten");
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 20; }, 1min));
  EXPECT_EQ(cluster.restarts(kPluginSet, "config-manager"), 0);
}

TEST(KeyInUse, WhenDeletedLeavesTheSidecarCrashLoopingUntilThePodIsDeleted) {
  for (const char* version : {"v0.17.0", "v0.20.0"}) {
    OneNode cluster(version, {{"any", slices(4)}, {"ten", slices(10)}}, "any", 8);
    cluster.label(kNode, kConfigLabel, "ten");
    EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 20; })) << version;
    cluster.edit_key("ten", std::nullopt);
    cluster.pass(3min);
    EXPECT_EQ(cluster.allocatable(kNode, kGpu), 20) << version << ": nobody looks until the label moves";
    cluster.label(kNode, kConfigLabel, "any");
    EXPECT_TRUE(cluster.eventually([&] { return cluster.restarts(kPluginSet, "config-manager") >= 4; })) << version;
    cluster.pass(20min);
    EXPECT_NE(cluster.fleet.node(kNode)->pod_of(kPluginSet)->last_log("config-manager").find("file exists"),
              std::string::npos);
    EXPECT_EQ(cluster.allocatable(kNode, kGpu), 20) << version << ": relabelling does not help";
    cluster.delete_pods(kNode, kPluginSet);
    EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 8; })) << version;
  }
}

TEST(MpsByLabel, WorksOnFreshPodsUpToV18_1AndNeverAfter) {
  for (const auto& [version, works] :
       {std::pair{"v0.17.0", true}, {"v0.18.1", true}, {"v0.18.2", false}, {"v0.20.0", false}}) {
    OneNode cluster(version, {{"any", slices(4)}, {"mps", mps(10)}}, "any", 8);
    cluster.label(kNode, kConfigLabel, "mps");
    EXPECT_EQ(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 20; }, 30min), works) << version;
    EXPECT_EQ(cluster.label_of(kNode, "nvidia.com/mps.capable"), "true")
        << version << ": follows the config, not the daemon";
    if (works) continue;
    EXPECT_EQ(cluster.allocatable(kNode, kGpu), 0)
        << version << ": the plugin waits for a daemon on the default config";
    EXPECT_GE(cluster.restarts(kMpsSet, "config-manager"), 3) << version;
    EXPECT_EQ(cluster.container(kNode, kMpsSet, "mps-control-daemon-ctr")["ready"], true)
        << version << ": ready proves nothing";
  }
}

TEST(MpsSidecar, FailsToSignalByPanicOrByName) {
  for (const auto& [version, message] :
       {std::pair{"v0.17.0", "no process found"}, {"v0.18.1", "index out of range"}, {"v0.20.0", "no process found"}}) {
    OneNode cluster(version, {{"any", mps(4)}, {"other", mps(8)}}, "any", 8);
    cluster.label(kNode, kConfigLabel, "other");
    const PodRunner* pod = cluster.fleet.node(kNode)->pod_of(kMpsSet);
    EXPECT_TRUE(cluster.eventually([&] { return pod->last_log("config-manager").contains(message); })) << version;
    EXPECT_TRUE(cluster.eventually([&] { return cluster.restarts(kMpsSet, "config-manager") >= 1; })) << version;
    EXPECT_EQ(cluster.fleet.node(kNode)->machine().mps().at(kGpu).replicas, 4)
        << version << ": the daemon keeps its config";
  }
}

TEST(MpsDaemon, BreaksRunningClientsWhenItStopsAndLeavesGpusExclusiveWhenKilled) {
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  cluster.create(kPods, consumer_pod({.node = kNode, .name = "client"}));
  const auto phase = [&](const char* name) {
    const auto pod = cluster.server.get(kPods, {"default", name});
    return pod ? pod->value("status", json::object()).value("phase", "") : "";
  };
  EXPECT_TRUE(cluster.eventually([&] { return phase("client") == "Running"; }));
  cluster.fleet.faults().mps_unclean_exit = true;
  cluster.delete_pods(kNode, kMpsSet);
  EXPECT_TRUE(cluster.eventually([&] { return phase("client") == "Failed"; }));
  EXPECT_TRUE(cluster.fleet.node(kNode)->machine().exclusive_process());
}

}  // namespace
}  // namespace gso::sim::fleet_cluster_test
