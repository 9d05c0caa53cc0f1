// What surrounds NVIDIA's components on a node: kubelet, DaemonSets, the GPU Operator, NFD, faults, many nodes.
#include <gtest/gtest.h>

#include "tests/sim/fleet/one_node.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim::fleet_surroundings_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(Kubelet, KeepsAPodInContainerCreatingUntilItsConfigMapExists) {
  TestCluster cluster(one_node());
  cluster.create(kNamespaces, {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "gpu-operator"}}}});
  cluster.create(kClusterPolicies, cluster_policy({}));
  EXPECT_TRUE(cluster.eventually([&] { return !cluster.pod(kNode, kPluginSet).is_null(); }));
  cluster.pass(10min);
  EXPECT_EQ(cluster.pod(kNode, kPluginSet)["status"].value("phase", ""), "Pending");
  cluster.create(kConfigMaps, config_map("gpu-operator", "mps-config", {{"any", slices(4)}}));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 8; }));
}

TEST(Kubelet, TakesAllocatableAwayAtOnceAndCapacityAfterFiveMinutes) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  cluster.label(kNode, "nvidia.com/gpu.deploy.device-plugin", "paused-for-driver-upgrade");
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 0; }, 1min));
  EXPECT_EQ(cluster.capacity(kNode, kGpu), 8);
  cluster.pass(6min);
  EXPECT_EQ(cluster.capacity(kNode, kGpu), 0);
  EXPECT_TRUE(cluster.pod(kNode, kPluginSet).is_null()) << "the node is paused, so there is no pod";
}

TEST(Kubelet, RejectsConsumersThatItCannotServe) {
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  cluster.create(kPods, consumer_pod({.node = kNode, .name = "greedy", .count = 2}));
  for (int i = 0; i < 9; ++i) cluster.create(kPods, consumer_pod({.node = kNode, .name = "one-" + std::to_string(i)}));
  cluster.pass(1min);
  const auto status = [&](const std::string& name) {
    return (*cluster.server.get(kPods, {"default", name}))["status"];
  };
  EXPECT_EQ(status("greedy").value("reason", ""), "UnexpectedAdmissionError");
  EXPECT_NE(status("greedy").value("message", "").find("maximum request size for shared resources is 1; found 2"),
            std::string::npos);
  EXPECT_EQ(status("one-7").value("phase", ""), "Running");
  EXPECT_NE(status("one-8").value("message", "").find("Requested: 1, Available: 0"), std::string::npos)
      << status("one-8");
}

TEST(DaemonSets, RollWithinMaxUnavailableAfterATemplateChange) {
  FleetOptions options;
  options.nodes = *topology("uniform:4");
  options.timing.heartbeat = 0s;
  TestCluster cluster(std::move(options));
  cluster.install({}, {{"any", slices(2)}, {"other", slices(4)}});
  const auto all_at = [&](std::int64_t count) {
    for (int i = 1; i <= 4; ++i)
      if (cluster.allocatable("gpu-0" + std::to_string(i), kGpu) != count) return false;
    return true;
  };
  EXPECT_TRUE(cluster.eventually([&] { return all_at(16); }));
  cluster.patch(kClusterPolicies, {"", "cluster-policy"},
                {{"spec", {{"devicePlugin", {{"config", {{"default", "other"}}}}}}}});
  std::size_t most_missing = 0;
  EXPECT_TRUE(cluster.eventually([&] {
    std::size_t missing = 0;
    for (int i = 1; i <= 4; ++i) {
      const json pod = cluster.pod("gpu-0" + std::to_string(i), kPluginSet);
      if (pod.is_null()) ++missing;
    }
    most_missing = std::max(most_missing, missing);
    return all_at(32);
  }));
  EXPECT_EQ(most_missing, 1U);
  EXPECT_EQ(cluster.fleet.pods_run(kPluginSet),
            (std::map<std::string, std::size_t>{{"gpu-01", 2}, {"gpu-02", 2}, {"gpu-03", 2}, {"gpu-04", 2}}));
}

TEST(GpuOperatorActor, LeavesAnEditedDaemonSetAloneUntilItsOwnHashChanges) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}, {"ten", slices(10)}}, "any", 8);
  const json touched{{"spec", {{"template", {{"metadata", {{"annotations", {{"restartedAt", "now"}}}}}}}}}};
  cluster.patch(kDaemonSets, {"gpu-operator", kPluginSet}, touched);
  cluster.pass(5min);
  const auto annotations = [&] {
    return (*cluster.server.get(kDaemonSets, {"gpu-operator", kPluginSet}))["spec"]["template"]["metadata"].value(
        "annotations", json::object());
  };
  EXPECT_EQ(annotations().value("restartedAt", ""), "now");
  EXPECT_EQ(cluster.fleet.pods_run(kPluginSet).at(kNode), 2U) << "the template's change was rolled";
  cluster.patch(kClusterPolicies, {"", "cluster-policy"},
                {{"spec", {{"devicePlugin", {{"config", {{"default", "ten"}}}}}}}});
  EXPECT_TRUE(cluster.eventually([&] { return annotations().empty(); }));
}

TEST(Nfd, RemovesOnlyKeysItListedAndOverwritesForeignValues) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  cluster.label(kNode, "nvidia.com/gpu.replicas", "99");
  cluster.label(kNode, "nvidia.com/mine", "yes");
  cluster.pass(5min);
  EXPECT_EQ(cluster.label_of(kNode, "nvidia.com/gpu.replicas"), "99") << "nobody looks at the node";
  cluster.delete_pods(kNode, kDiscoverySet);  // A new timestamp makes NFD write.
  EXPECT_TRUE(cluster.eventually([&] { return cluster.label_of(kNode, "nvidia.com/gpu.replicas") == "4"; }));
  EXPECT_EQ(cluster.label_of(kNode, "nvidia.com/mine"), "yes");
}

TEST(Faults, ALostNodeIsUnknownAfterAWhileAndComesBack) {
  OneNode cluster("v0.20.0", {{"any", slices(4)}}, "any", 8);
  const auto ready = [&] {
    return (*cluster.server.get(kNodes, {"", kNode}))["status"]["conditions"][0].value("status", "");
  };
  EXPECT_EQ(ready(), "True");
  cluster.fleet.node(kNode)->lose();
  EXPECT_TRUE(cluster.eventually([&] { return ready() == "Unknown"; }, 1min));
  const std::string uid = cluster.pod(kNode, kPluginSet)["metadata"]["uid"];
  cluster.delete_pods(kNode, kPluginSet);
  cluster.pass(5min);
  EXPECT_TRUE(cluster.pod(kNode, kPluginSet).is_null()) << "nobody is there to end the pod, so none replaces it";
  cluster.fleet.node(kNode)->recover();
  EXPECT_TRUE(cluster.eventually([&] { return ready() == "True" && cluster.allocatable(kNode, kGpu) == 8; }));
  EXPECT_TRUE(cluster.eventually([&] { return !cluster.pod(kNode, kPluginSet).is_null(); }));
  EXPECT_NE(cluster.pod(kNode, kPluginSet)["metadata"]["uid"], uid);
}

TEST(Faults, ARebootRunsTheSamePodsAgainWithTodaysConfig) {
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  const std::string uid = cluster.pod(kNode, kPluginSet)["metadata"]["uid"];
  cluster.edit_key("any", mps(8));
  cluster.pass(2min);
  cluster.fleet.node(kNode)->reboot(2min);
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kGpu) == 16; }))
      << cluster.allocatable(kNode, kGpu);
  EXPECT_EQ(cluster.pod(kNode, kPluginSet)["metadata"]["uid"], uid);
  EXPECT_GE(cluster.restarts(kPluginSet, "nvidia-device-plugin"), 1);
}

TEST(QuietFleet, WritesNothingWhenNothingChanges) {
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  cluster.pass(10min);
  const std::uint64_t before = cluster.server.revision();
  cluster.pass(30min);
  EXPECT_EQ(cluster.server.revision(), before);
}

}  // namespace
}  // namespace gso::sim::fleet_surroundings_test
