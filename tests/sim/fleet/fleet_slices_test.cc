// Nebuly's fork of the device plugin, nos's gpu-agent, and the scheduler, as the fleet plays them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/nos_install.h"
#include "tests/sim/fleet/slice_config.h"
#include "tests/sim/fleet/test_cluster.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim::fleet_slices_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const std::string kNode = "gpu-01", kTen = "nvidia.com/gpu-10gb", kTwenty = "nvidia.com/gpu-20gb";
const std::string kStatus = "nos.nebuly.com/status-gpu-";
const k8s::ObjectKey kMap{"nebuly-nvidia", "nos-device-plugin-configs"};

FleetOptions options() {
  FleetOptions options;
  options.nodes = {nos_node(kNode, {a100(), a100()})};
  options.timing.heartbeat = 0s;
  options.act_as_scheduler = true;
  options.gpu_operator_namespace = "";
  return options;
}

// Two slices of 10 GB on GPU 0, one of 20 GB on GPU 1, under the key "first".
class SliceNode : public TestCluster {
 public:
  SliceNode() : TestCluster(options()) {
    const SliceCounts first{{0, {{10, 2}}}, {1, {{20, 1}}}};
    for (const json& object : nos_manifests({}, {{"first", nos_document(first)}})) {
      const std::string kind = object["kind"];
      create(kind == "Namespace" ? kNamespaces : kind == "ConfigMap" ? kConfigMaps : kDaemonSets, object);
    }
    EXPECT_TRUE(eventually([&] { return server.get(kNodes, {"", kNode}).has_value(); }, 1min)) << "registered";
    label(kNode, kConfigLabel, "first");
    EXPECT_TRUE(eventually([&] { return allocatable(kNode, kTen) == 2 && report("0-10gb-free") == "2"; }));
  }
  std::string report(const std::string& what) const {
    return text(annotations(*server.get(kNodes, {"", kNode})), kStatus + what);
  }
  void write_key(const std::string& key, const std::optional<std::string>& text) {
    json body;
    body["data"][key] = text ? json(*text) : json();
    patch(kConfigMaps, kMap, body);
  }
  // Writes the key, and labels the node with it once it is projected.
  void choose(const std::string& key, const std::string& text) {
    write_key(key, text);
    pass(2min);
    label(kNode, kConfigLabel, key);
  }
  void start_client() {
    create(kPods, consumer_pod({.name = "client", .resource = kTen}));
    EXPECT_TRUE(runs("client"));
  }
  std::string phase_of(const std::string& pod) const {
    return text((*server.get(kPods, {"default", pod}))["status"], "phase");
  }
  std::string waits_for(const char* container_name) const {
    const json status = container(kNode, kForkSet, container_name);
    return status.is_null() ? "" : text(member(member(status, "state"), "waiting"), "reason");
  }
  bool runs(const std::string& pod) {
    return eventually([&] { return phase_of(pod) == "Running"; }, 1min);
  }
};

TEST(SliceConfig, RefusesWhatTheForkCannotServe) {
  const auto document = [](const std::string& entry) {
    return "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, " + entry + "}]}}\n";
  };
  const std::pair<std::string, std::string> cases[] = {
      {document("rename: gpu-10gb, memoryGB: 10, replicas: 0, devices: [\"0\"]"), "replicas must be >= 1"},
      {document("rename: gpu-10gb, memoryGB: 0, replicas: 1, devices: [\"0\"]"), "memoryGB must be >= 1"},
      {document("rename: gpu-20gb, memoryGB: 10, replicas: 1, devices: [\"0\"]"), "rename"},
      {document("rename: gpu-10gb, memoryGB: 10, replicas: 1, devices: [\"2\"]"), "no such device: 2"},
      {document("rename: gpu-10gb, memoryGB: 10, replicas: 1, devices: [\"0\", \"1\"]"), "one GPU"},
      {document("rename: gpu-10gb, memoryGB: 10, replicas: 1, devices: all"), "one GPU"},
      {"version: v1\nsharing: {timeSlicing: {}}\n", "cannot unmarshal sharing"},
      {"version: v2\n", "unknown version"},
      {"sharing: [", "unable to parse"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = read_slice_config(text, 2);
    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_NE(config.error().find(message), std::string::npos) << text << " says " << config.error();
  }
}

TEST(SliceNames, AreThoseOfTheForkAlone) {
  EXPECT_EQ(slice_resource(10), kTen);
  EXPECT_EQ(slice_size(kTen), 10);
  for (const char* other : {"nvidia.com/gpu", "nvidia.com/gpu-gb", "nvidia.com/gpu-10gbx", "nvidia.com/gpu-10gb.shared",
                            "example.com/gpu-10gb", "nvidia.com/mig-1g.10gb"}) {
    EXPECT_EQ(slice_size(other), 0) << other;
  }
}

TEST(SlicePlugin, ServesTheSlicesOfTheLabelledKeyAndWholeGpusBesideThem) {
  SliceNode cluster;
  EXPECT_EQ(cluster.allocatable(kNode, kTwenty), 1);
  EXPECT_LE(cluster.allocatable(kNode, "nvidia.com/gpu"), 0) << "both GPUs have slices";
  cluster.choose("second", nos_document({{1, {{20, 1}}}}));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, "nvidia.com/gpu") == 1; }, 1min));
  EXPECT_EQ(cluster.allocatable(kNode, kTen), 0);
  EXPECT_EQ(cluster.allocatable(kNode, kTwenty), 1);
}

TEST(SlicePlugin, BreaksClientsWhoseSlicesGo) {
  SliceNode cluster;
  cluster.start_client();
  cluster.choose("second", nos_document({{0, {{20, 2}}}}));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.phase_of("client") == "Failed"; }, 1min));
}

TEST(SlicePlugin, LosesItsClientsWithItsPod) {
  SliceNode cluster;
  cluster.start_client();
  cluster.delete_pods(kNode, kForkSet);
  EXPECT_TRUE(cluster.eventually([&] { return cluster.phase_of("client") == "Failed"; }, 1min));
}

TEST(SlicePlugin, CrashesOnAConfigThatItCannotReadAndKeepsItsClients) {
  SliceNode cluster;
  cluster.start_client();
  cluster.choose("bad", "version: v1\nsharing: [");
  EXPECT_TRUE(cluster.eventually([&] { return cluster.waits_for(kForkContainer) == "CrashLoopBackOff"; }, 2min));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kTen) == 0; }, 1min));
  EXPECT_EQ(cluster.phase_of("client"), "Running");
  // Back to the old key: the plugin reads it at its next start.
  cluster.label(kNode, kConfigLabel, "first");
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kTen) == 2; }, 10min));
  EXPECT_EQ(cluster.phase_of("client"), "Running");
}

TEST(SliceConfigManager, CrashesUntilAKeyIsProjected) {
  SliceNode cluster;
  cluster.fleet.faults().late_projection = 2min;
  cluster.pass(3min);
  cluster.write_key("second", nos_document({{0, {{10, 3}}}}));
  cluster.label(kNode, kConfigLabel, "second");
  EXPECT_TRUE(cluster.eventually([&] { return cluster.waits_for(kForkManager) == "CrashLoopBackOff"; }, 1min));
  EXPECT_EQ(cluster.allocatable(kNode, kTen), 2) << "the plugin has got no signal";
  EXPECT_TRUE(cluster.eventually([&] { return cluster.allocatable(kNode, kTen) == 3; }, 20min));
}

TEST(SliceConfigManager, NeverRecoversWhereTheOldKeyGoesBeforeTheNewOneIsThere) {
  SliceNode cluster;
  cluster.write_key("first", std::nullopt);
  cluster.write_key("second", nos_document({{0, {{10, 3}}}}));
  cluster.pass(3min);
  cluster.label(kNode, kConfigLabel, "second");
  EXPECT_FALSE(cluster.eventually([&] { return cluster.allocatable(kNode, kTen) == 3; }, 20min));
  EXPECT_EQ(cluster.waits_for(kForkManager), "CrashLoopBackOff");
}

TEST(SliceReports, ComeLate) {
  SliceNode cluster;
  cluster.fleet.faults().late_slice_reports = 2min;
  cluster.start_client();
  EXPECT_FALSE(cluster.eventually([&] { return cluster.report("0-10gb-used") == "1"; }, 1min));
  EXPECT_TRUE(cluster.eventually([&] { return cluster.report("0-10gb-used") == "1"; }, 3min));
}

TEST(Scheduler, PrefersPriorityAndRespectsCordonsTaintsAndSelectors) {
  SliceNode cluster;
  cluster.fleet.scheduler().set_up(false);
  const auto pod = [](const std::string& name, std::int64_t priority, json more) {
    json object = consumer_pod({.name = name, .resource = kTwenty});
    object["spec"]["priority"] = priority;
    object["spec"].update(more);
    return object;
  };
  cluster.create(kPods, pod("low", 1, json::object()));
  cluster.create(kPods, pod("high", 2, json::object()));
  cluster.create(kPods, pod("elsewhere", 3, {{"nodeSelector", {{"zone", "b"}}}}));
  cluster.create(kPods, pod("gated", 4, {{"schedulingGates", {{{"name", "quota"}}}}}));
  cluster.patch(kNodes, {"", kNode}, {{"spec", {{"unschedulable", true}}}});
  cluster.fleet.scheduler().set_up(true);
  cluster.pass(1min);
  EXPECT_EQ(cluster.phase_of("high"), "Pending") << "the node is cordoned";
  cluster.patch(kNodes, {"", kNode}, {{"spec", {{"unschedulable", false}}}});
  EXPECT_TRUE(cluster.runs("high"));
  for (const char* waiting : {"low", "elsewhere", "gated"}) EXPECT_EQ(cluster.phase_of(waiting), "Pending") << waiting;
}

}  // namespace
}  // namespace gso::sim::fleet_slices_test
