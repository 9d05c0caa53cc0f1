// The parts of the fleet that need no cluster: configs, GPUs, labels, DaemonSet rules, the agenda.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/sim/fleet/agenda.h"
#include "tests/sim/fleet/daemonset_controller.h"
#include "tests/sim/fleet/gpu.h"
#include "tests/sim/fleet/plugin_config.h"
#include "tests/sim/fleet/pod_spec.h"
#include "tests/sim/fleet/topology.h"

namespace gso::sim::fleet_components_test {
namespace {

using nlohmann::json;

constexpr PluginVersion kV17{0, 17, 0};
constexpr PluginVersion kV20{0, 20, 0};

std::string sharing(const std::string& section) {
  return "version: v1\nsharing:\n" + section;
}
std::string mps(const std::string& fields, const std::string& replicas = "4") {
  return sharing("  mps:\n" + fields + "    resources:\n    - name: nvidia.com/gpu\n      replicas: " + replicas +
                 "\n");
}
std::string slicing(const std::string& resource, int replicas) {
  return sharing("  timeSlicing:\n    resources:\n    - name: " + resource +
                 "\n      replicas: " + std::to_string(replicas) + "\n");
}

TEST(PluginVersionOfImage, ReadsTheTagAndTakesTheNewestBehaviourWithoutOne) {
  EXPECT_EQ(PluginVersion::of_image("nvidia/k8s-device-plugin:v0.17.1"), (PluginVersion{0, 17, 1}));
  EXPECT_EQ(PluginVersion::of_image("v0.20.0"), kV20);
  EXPECT_GT(PluginVersion::of_image("nvidia/k8s-device-plugin@sha256:abc"), kV20);
}

TEST(PluginVersionDefects, FollowTheReleases) {
  struct Case {
    PluginVersion version;
    bool default_first;
    bool panics;
  };
  for (const Case& c : {Case{{0, 17, 0}, false, false}, Case{{0, 18, 0}, false, true}, Case{{0, 18, 1}, false, true},
                        Case{{0, 18, 2}, true, true}, Case{{0, 19, 3}, true, true}, Case{{0, 20, 0}, true, false}}) {
    EXPECT_EQ(c.version.default_first(), c.default_first) << c.version.minor << "." << c.version.patch;
    EXPECT_EQ(c.version.panics_on_kernel_threads(), c.panics) << c.version.minor << "." << c.version.patch;
  }
}

TEST(PluginConfigReading, RefusesWhatThePluginRefuses) {
  const std::pair<std::string, std::string> cases[] = {
      {mps("", "1"), ">= 2"},
      {mps("", "four"), "type int"},
      {mps("", "\"4\""), "type int"},
      {sharing("  timeSlicing: {}\n"), "no resources"},
      {sharing("  timeSlicing:\n"), "no resources"},
      {sharing("  mps:\n    resources:\n    - replicas: 2\n"), "no resource name"},
      {sharing("  mps:\n    resources:\n    - name: nvidia.com/gpu\n"), "no replicas"},
      {"version: v2\n", "unknown version"},
      {"sharing: [", "unable to parse"},
      {"just text", "no mapping"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = read_plugin_config(text, kV20);
    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_NE(config.error().find(message), std::string::npos) << text << " says " << config.error();
  }
}

TEST(PluginConfigReading, TakesNothingForNoSharing) {
  for (const std::string text : {"", "# nothing\n", "version: v1\n", "sharing: {}\n", "sharing:\n  mps:\n"}) {
    const auto config = read_plugin_config(text, kV20);
    ASSERT_TRUE(config.has_value()) << text << config.error();
    EXPECT_FALSE(config->shared) << text;
  }
}

// As encoding/json reads structs: fields in any case. The sections' own fields are read by exact name.
TEST(PluginConfigReading, TakesTheFieldsOfStructsInAnyCase) {
  const std::string entry = "resources: [{name: gpu, replicas: 4}]";
  for (const std::string& text : {"sharing: {timeslicing: {" + entry + "}}", "SHARING: {TIMESLICING: {" + entry + "}}",
                                  "Sharing: {MPS: {" + entry + "}}"}) {
    const auto config = read_plugin_config(text, kV20);
    ASSERT_TRUE(config.has_value()) << text << config.error();
    EXPECT_EQ(config->replicas_first("nvidia.com/gpu"), 4) << text;
  }
  EXPECT_EQ(read_plugin_config("Flags: {migstrategy: mixed}", kV20)->mig_strategy, "mixed");
  EXPECT_FALSE(read_plugin_config("Version: v2", kV20).has_value());
  EXPECT_FALSE(read_plugin_config("sharing: {timeSlicing: {Resources: [{name: gpu, replicas: 4}]}}", kV20).has_value());
  EXPECT_FALSE(read_plugin_config("sharing: {mps: {resources: [{name: gpu, Replicas: 4}]}}", kV20).has_value());
}

TEST(PluginConfigReading, LetsMpsWinOverTimeSlicing) {
  const auto config =
      read_plugin_config(slicing("nvidia.com/gpu", 4) + "  mps:\n    resources: [{name: gpu, replicas: 8}]\n", kV20);
  ASSERT_TRUE(config.has_value()) << config.error();
  EXPECT_TRUE(config->mps);
  EXPECT_EQ(config->replicas_first("nvidia.com/gpu"), 8);
}

TEST(PluginConfigReading, ObeysFailRequestsUnderMpsOnlyFromV20) {
  const std::string text = mps("    failRequestsGreaterThanOne: false\n");
  EXPECT_TRUE(read_plugin_config(text, kV17)->fail_requests_greater_than_one);
  EXPECT_FALSE(read_plugin_config(text, kV20)->fail_requests_greater_than_one);
  EXPECT_TRUE(read_plugin_config(mps(""), kV20)->fail_requests_greater_than_one) << "true when omitted";
}

std::map<std::string, std::string> labels(const std::string& config, const std::vector<Gpu>& gpus,
                                          const std::string& mig = "none") {
  auto read = read_plugin_config(config, kV20);
  read->mig_strategy = mig;
  return discovery_labels(*read, gpus).value_or(std::map<std::string, std::string>{{"error", "yes"}});
}

TEST(FeatureDiscoveryLabels, FollowTheSharingRules) {
  struct Case {
    std::string config;
    std::vector<Gpu> gpus;
    std::string mig;
    std::string count, replicas, strategy, product, mps;
  };
  const std::vector<Gpu> eight(8, a100());
  const Case cases[] = {
      {"", eight, "none", "8", "1", "none", "NVIDIA-A100-SXM4-40GB", "false"},
      {slicing("nvidia.com/gpu", 4), {t4()}, "none", "1", "4", "time-slicing", "Tesla-T4-SHARED", "false"},
      {mps("", "10"), eight, "none", "8", "10", "mps", "NVIDIA-A100-SXM4-40GB-SHARED", "true"},
      {mps("    renameByDefault: true\n"), {t4()}, "none", "1", "4", "mps", "Tesla-T4", "true"},
      {slicing("nvidia.com/not-gpu", 4), {t4()}, "none", "1", "1", "none", "Tesla-T4", "false"},
      {slicing("nvidia.com/gpu", 4),
       {a100_mig_1g(), a100_mig_1g()},
       "single",
       "14",
       "4",
       "time-slicing",
       "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
       "false"},
      {slicing("nvidia.com/gpu", 4), {a100_mig_1g()}, "none", "1", "0", "none", "NVIDIA-A100-SXM4-40GB", "false"},
      {"", {a100_mig_1g(), a100()}, "single", "0", "0", "", "NVIDIA-A100-SXM4-40GB-MIG-INVALID", "false"},
  };
  for (const Case& c : cases) {
    const auto found = labels(c.config, c.gpus, c.mig);
    SCOPED_TRACE(c.config + " " + c.mig);
    EXPECT_EQ(found.at("nvidia.com/gpu.count"), c.count);
    EXPECT_EQ(found.at("nvidia.com/gpu.replicas"), c.replicas);
    EXPECT_EQ(found.at("nvidia.com/gpu.sharing-strategy"), c.strategy);
    EXPECT_EQ(found.at("nvidia.com/gpu.product"), c.product);
    EXPECT_EQ(found.at("nvidia.com/mps.capable"), c.mps);
  }
}

TEST(FeatureDiscoveryLabels, AreNotMadeForMpsWithMig) {
  EXPECT_TRUE(labels(mps(""), {a100_mig_1g()}, "single").contains("error"));
}

TEST(PluginDevices, AreCountedByRegisteredName) {
  struct Case {
    std::string config;
    std::vector<Gpu> gpus;
    std::string mig;
    std::map<std::string, std::int64_t> devices;
  };
  const Case cases[] = {
      {"", {t4(), t4()}, "none", {{"nvidia.com/gpu", 2}}},
      {mps("    renameByDefault: true\n"), {t4(), t4()}, "none", {{"nvidia.com/gpu.shared", 8}}},
      {slicing("nvidia.com/gpu", 4), {a100_mig_1g(), a100_mig_1g()}, "single", {{"nvidia.com/gpu", 56}}},
      {slicing("nvidia.com/mig-1g.5gb", 2),
       {a100_mig_1g(), a100()},
       "mixed",
       {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 14}}},
  };
  for (const Case& c : cases) {
    auto config = read_plugin_config(c.config, kV20);
    config->mig_strategy = c.mig;
    const auto devices = plugin_devices(*config, c.gpus);
    ASSERT_TRUE(devices.has_value()) << devices.error();
    EXPECT_EQ(*devices, c.devices) << c.config;
  }
}

TEST(PluginDevices, AreRefusedForMpsOnMigAndForMixed) {
  auto config = read_plugin_config(mps(""), kV20);
  config->mig_strategy = "single";
  EXPECT_FALSE(plugin_devices(*config, {a100_mig_1g()}).has_value());
  config->mig_strategy = "mixed";
  EXPECT_FALSE(plugin_devices(*config, {a100()}).has_value()) << "even without MIG";
}

TEST(MpsDaemon, TakesFortyEightClientsFromTuringOnAndSixteenBefore) {
  Gpu volta = t4();
  volta.compute_minor = 0;
  const auto error = [](int replicas, const Gpu& gpu) {
    return mps_daemon_error(*read_plugin_config(mps("", std::to_string(replicas)), kV20), {gpu});
  };
  EXPECT_EQ(error(48, t4()), "");
  EXPECT_NE(error(49, t4()).find("49 > 48"), std::string::npos);
  EXPECT_EQ(error(16, volta), "");
  EXPECT_NE(error(17, volta).find("17 > 16"), std::string::npos);
}

json node_with(const json& labels, const json& taints = json::array()) {
  return {{"metadata", {{"name", "n"}, {"labels", labels}}}, {"spec", {{"taints", taints}}}};
}

TEST(DaemonSetRules, SelectBySelectorAffinityAndTaints) {
  const json operand = standalone_daemonsets({}, "edge").front();
  const json fits{{kPoolLabel, "edge"}, {"nvidia.com/gpu.present", "true"}};
  const auto taint = [](const char* key) { return json::array({{{"key", key}, {"effect", "NoSchedule"}}}); };
  EXPECT_TRUE(daemonset_selects(operand, node_with(fits)));
  EXPECT_FALSE(daemonset_selects(operand, node_with({{kPoolLabel, "other"}, {"nvidia.com/gpu.present", "true"}})));
  EXPECT_FALSE(daemonset_selects(operand, node_with({{kPoolLabel, "edge"}}))) << "no affinity term holds";
  EXPECT_TRUE(daemonset_selects(operand, node_with(fits, taint("nvidia.com/gpu"))));
  EXPECT_TRUE(daemonset_selects(operand, node_with(fits, taint("node.kubernetes.io/unschedulable"))));
  EXPECT_FALSE(daemonset_selects(operand, node_with(fits, taint("example.com/other"))));
  EXPECT_TRUE(daemonset_keeps(operand, node_with(fits, taint("example.com/other")))) << "NoSchedule ends no pod";
  const json evicting = json::array({{{"key", "example.com/other"}, {"effect", "NoExecute"}}});
  EXPECT_FALSE(daemonset_keeps(operand, node_with(fits, evicting)));
}

TEST(DaemonSetRules, HashTheTemplateAndNothingElse) {
  json daemonset = standalone_daemonsets({}, "edge").front();
  const std::string hash = template_hash(daemonset);
  daemonset["metadata"]["annotations"]["x"] = "y";
  EXPECT_EQ(template_hash(daemonset), hash);
  daemonset["spec"]["template"]["metadata"]["annotations"]["x"] = "y";
  EXPECT_NE(template_hash(daemonset), hash);
}

TEST(PodSpecReading, SumsGpusAndDistinguishesMandatoryVolumesFromOptionalOnes) {
  const json pod = json::parse(R"({"metadata":{"name":"p","namespace":"d","uid":"u"},
    "spec":{"nodeName":"n","restartPolicy":"Never","containers":[
      {"name":"a","resources":{"limits":{"nvidia.com/gpu":"2","cpu":"1"}}},{"name":"b","resources":{"limits":{"nvidia.com/gpu":1}}}],
    "volumes":[{"name":"v","configMap":{"name":"m"}},{"name":"w","configMap":{"name":"o","optional":true}}]}})");
  const PodSpec spec = read_pod_spec(pod);
  EXPECT_EQ(spec.gpus, (std::map<std::string, std::int64_t>{{"nvidia.com/gpu", 3}}));
  EXPECT_EQ(spec.config_volumes, (std::map<std::string, std::string>{{"v", "m"}}));
  EXPECT_EQ(spec.optional_volumes, (std::map<std::string, std::string>{{"w", "o"}}));
}

TEST(Topologies, HaveTheNodesOfTheStory) {
  const auto demo = topology("demo");
  ASSERT_TRUE(demo.has_value());
  EXPECT_EQ(demo->size(), 12U);
  EXPECT_EQ(topology("uniform:3")->size(), 3U);
  EXPECT_EQ(topology("nos:2")->back().labels.at("nos.nebuly.com/gpu-partitioning"), "mps");
  for (const char* name : {"", "uniform:", "uniform:-1", "uniform:x", "nos:", "other"})
    EXPECT_FALSE(topology(name)) << name;
}

}  // namespace
}  // namespace gso::sim::fleet_components_test
