// Facts of upstream without a call of the command line, against the code that must agree with them: what the operator
// reads in a cluster, and the simulated components. README.md names the facts that no test reads, and why.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/source_files.h"
#include "tests/sim/fleet/config_choice.h"
#include "tests/sim/fleet/gpu_operator.h"
#include "tests/sim/fleet/one_node.h"

namespace gso::upstream_facts_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Strings = std::map<std::string, std::string>;

std::vector<json> facts_in(const std::string& group) {
  static const json kFacts = testing::vector_facts("gpu_operator");
  std::vector<json> out;
  for (const json& fact : kFacts)
    if (fact.at("group") == group) out.push_back(fact);
  EXPECT_FALSE(out.empty()) << group;
  return out;
}

Node node_with(const json& labels) {
  Node node;
  node.meta.name = "n";
  for (const auto& [key, value] : labels.items()) node.meta.labels.set(key, value.get<std::string>());
  return node;
}

// --- config-manager.

TEST(GpuOperatorFacts, ConfigManagerChoosesTheKey) {
  for (const json& fact : facts_in("config_key_selection")) {
    const std::string label = fact.at("label");
    const std::string default_key = fact.at("default");
    const auto fallbacks = fact.at("fallback").get<std::vector<std::string>>();
    const auto files = fact.at("files").get<std::vector<std::string>>();
    std::string strategies;
    for (const std::string& fallback : fallbacks) strategies += (strategies.empty() ? "" : ",") + fallback;
    const EffectiveKey resolved = resolve_effective_key(label, default_key, fallbacks, files);
    const auto chosen = sim::choose_config(label, default_key, strategies, files);
    if (fact.contains("error")) {
      EXPECT_FALSE(resolved.error.empty()) << fact;
      EXPECT_FALSE(chosen.has_value()) << fact;
      continue;
    }
    const std::string want = fact.at("select").is_null() ? "" : fact.at("select").get<std::string>();
    EXPECT_EQ(resolved.error, "") << fact;
    EXPECT_EQ(resolved.key, want) << fact;
    ASSERT_TRUE(chosen.has_value()) << fact << chosen.error();
    EXPECT_EQ(*chosen, want) << fact;
  }
}

// --- The GPU Operator's DaemonSets.

json named(const json& list, const std::string& name) {
  for (const json& one : list)
    if (one.at("name") == name) return one;
  ADD_FAILURE() << "no " << name << " in " << list;
  return json::object();
}

Strings strings_of(const json& object, const char* list, const char* key, const char* value) {
  Strings out;
  for (const json& one : object.value(list, json::array()))
    out[one.at(key).get<std::string>()] = one.at(value).get<std::string>();
  return out;
}
Strings env_of(const json& container) {
  return strings_of(container, "env", "name", "value");
}

// Those of `want` that are not in `got`, or have another value.
Strings missing_from(const Strings& got, const json& want) {
  Strings out;
  for (const auto& [key, value] : want.items()) {
    const auto found = got.find(key);
    if (found == got.end() || found->second != value.get<std::string>()) out[key] = value.get<std::string>();
  }
  return out;
}

json daemonset_of(sim::Operand operand, const json& policy) {
  return sim::operand_daemonset(operand, policy, "gpu-operator");
}

TEST(GpuOperatorFacts, ConfigManagerIsWiredToTheConfigMap) {
  for (const json& fact : facts_in("device_plugin_config_wiring")) {
    json policy = sim::cluster_policy({});
    policy["spec"]["devicePlugin"]["config"] = fact.at("config");
    const json daemonset = daemonset_of(sim::Operand::device_plugin, policy);
    const json& spec = daemonset.at("spec").at("template").at("spec");
    const json init = named(spec.at("initContainers"), "config-manager-init");
    EXPECT_EQ(missing_from(env_of(init), fact.at("initEnv")), Strings());
    EXPECT_EQ(missing_from(strings_of(init, "volumeMounts", "name", "mountPath"), fact.at("initMounts")), Strings());
    EXPECT_EQ(missing_from(env_of(named(spec.at("containers"), "nvidia-device-plugin")), fact.at("mainEnv")),
              Strings());
    EXPECT_EQ(named(spec.at("containers"), "config-manager").empty(), !fact.at("configManagerSidecar").get<bool>());
    // What the operator reads from it.
    const auto projected = project_daemonset(daemonset.dump());
    ASSERT_TRUE(projected.has_value()) << projected.error().message;
    const auto operand = operand_of(*projected);
    ASSERT_TRUE(operand.has_value());
    EXPECT_EQ(operand->config_map, fact.at("config").at("name").get<std::string>());
    EXPECT_EQ(operand->default_key, fact.at("config").at("default").get<std::string>());
    EXPECT_EQ(operand->fallbacks,
              std::vector<std::string>{fact.at("initEnv").at("FALLBACK_STRATEGIES").get<std::string>()});
  }
}

TEST(GpuOperatorFacts, TheOperatorReadsThePluginsEnvironment) {
  for (const json& fact : facts_in("device_plugin_env")) {
    json env = json::array();
    Strings values;
    for (const json& pair : fact.at("env")) {
      env.push_back(json{{"name", pair.at(0)}, {"value", pair.at(1)}});
      values[pair.at(0).get<std::string>()] = pair.at(1).get<std::string>();
    }
    json daemonset = daemonset_of(sim::Operand::device_plugin, sim::cluster_policy({}));
    daemonset["spec"]["template"]["spec"]["containers"][0]["env"] = env;
    const auto projected = project_daemonset(daemonset.dump());
    ASSERT_TRUE(projected.has_value()) << projected.error().message;
    const auto operand = operand_of(*projected);
    ASSERT_TRUE(operand.has_value());
    // The others set nothing that a profile sets as well.
    Strings overrides;
    for (const auto& [name, setting] : operand->overrides) overrides[name] = setting.value;
    Strings want;
    for (const std::string name : {"DEVICE_LIST_STRATEGY", "GDRCOPY_ENABLED", "GDS_ENABLED", "MOFED_ENABLED"})
      want[name] = values.at(name);
    EXPECT_EQ(overrides, want);
  }
}

TEST(GpuOperatorFacts, ConfigManagerDoesNotFindTheMpsControlDaemonByItsPath) {
  for (const json& fact : facts_in("config_manager_signal_match")) {
    const json daemonset = daemonset_of(sim::Operand::mps_control_daemon, sim::cluster_policy({}));
    EXPECT_EQ(daemonset.at("metadata").at("name"), fact.at("ds"));
    const json& containers = daemonset.at("spec").at("template").at("spec").at("containers");
    const Strings env = env_of(named(containers, "config-manager"));
    const std::string process = env.at("PROCESS_TO_SIGNAL");
    const std::string argv0 = containers.at(0).at("command").at(0);
    EXPECT_EQ(process, fact.at("processToSignal").get<std::string>());
    EXPECT_EQ(argv0, fact.at("argv0").get<std::string>());
    EXPECT_EQ(process == argv0, fact.at("match").get<bool>());
  }
}

TEST(GpuOperatorFacts, TheUpdateStrategyIsThatOfTheClusterPolicy) {
  const json left_to_the_server = json::parse(R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}})");
  for (const json& fact : facts_in("update_strategy")) {
    if (fact.contains("error")) continue;  // The simulated GPU Operator is not given such a ClusterPolicy.
    json policy = sim::cluster_policy({});
    policy["spec"]["daemonsets"] = fact.at("in");
    const json want = fact.at("out").is_null() ? left_to_the_server : fact.at("out");
    EXPECT_EQ(daemonset_of(sim::Operand::device_plugin, policy).at("spec").at("updateStrategy"), want) << fact;
    const auto projected = project_clusterpolicy(policy.dump());
    ASSERT_TRUE(projected.has_value()) << projected.error().message;
    EXPECT_EQ(projected->on_delete, want.at("type") == "OnDelete") << fact;
  }
}

TEST(GpuOperatorFacts, AnAnnotationOfThePodTemplateSurvivesUntilTheGpuOperatorWrites) {
  sim::OneNode cluster("v0.20.0", {{"any", sim::slices(4)}, {"ten", sim::slices(10)}}, "any", 8);
  const k8s::ObjectKey key("gpu-operator", sim::kPluginSet);
  const auto has_annotation = [&] {
    const auto daemonset = cluster.server.get(sim::kDaemonSets, key);
    const json template_meta = (*daemonset)["spec"]["template"].value("metadata", json::object());
    return template_meta.value("annotations", json::object()).contains("kubectl.kubernetes.io/restartedAt");
  };
  json restarted;
  restarted["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now";
  json other_default;
  other_default["spec"]["devicePlugin"]["config"]["default"] = "ten";
  int tried = 0;
  for (const json& fact : facts_in("restart_annotation_survival")) {
    const std::string event = fact.at("event");
    if (event.starts_with("helm upgrade")) continue;  // No chart installs the simulated GPU Operator.
    if (event.starts_with("external patch")) {
      cluster.patch(sim::kDaemonSets, key, restarted);
    } else {
      ASSERT_TRUE(event.starts_with("ClusterPolicy devicePlugin.config.default changed")) << event;
      ASSERT_TRUE(has_annotation());
      cluster.patch(sim::kClusterPolicies, {"", "cluster-policy"}, other_default);
    }
    cluster.pass(5min);
    EXPECT_EQ(has_annotation(), fact.at("annotationSurvives").get<bool>()) << event;
    ++tried;
  }
  EXPECT_EQ(tried, 2);
}

TEST(GpuOperatorFacts, OfSeveralClusterPoliciesTheOldestCountsThenTheLowestName) {
  for (const json& fact : facts_in("singleton_cluster_policy")) {
    sim::TestCluster cluster(sim::one_node());
    cluster.create(sim::kNamespaces,
                   {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "gpu-operator"}}}});
    // In the order of their ages; the server sets creationTimestamp.
    std::string created;
    for (const json& item : fact.at("items")) {
      if (!created.empty() && created != item.at("created").get<std::string>()) cluster.pass(2s);
      created = item.at("created").get<std::string>();
      json policy = sim::cluster_policy({});
      policy["metadata"]["name"] = item.at("name");
      cluster.create(sim::kClusterPolicies, policy);
    }
    const k8s::ObjectKey key("gpu-operator", sim::kPluginSet);
    ASSERT_TRUE(cluster.eventually([&] { return cluster.server.get(sim::kDaemonSets, key).has_value(); }));
    cluster.pass(1min);
    const json daemonset = *cluster.server.get(sim::kDaemonSets, key);
    EXPECT_EQ(daemonset.at("metadata").at("ownerReferences").at(0).at("name"), fact.at("want"));
  }
}

// --- Labels of nodes.

TEST(GpuOperatorFacts, TheGpuOperatorLabelsNodesForItsDaemonSets) {
  // Those that the simulated GPU Operator writes.
  const std::set<std::string> written{"nvidia.com/gpu.present", "nvidia.com/gpu.deploy.device-plugin",
                                      "nvidia.com/gpu.deploy.gpu-feature-discovery", "nvidia.com/gpu.deploy.driver",
                                      "nvidia.com/gpu.deploy.container-toolkit"};
  for (const json& fact : facts_in("node_state_labels")) {
    if (!fact.at("policy").empty()) continue;  // Virtual machines: the simulated GPU Operator has none.
    sim::FleetOptions options = sim::one_node();
    options.nodes.front().labels = fact.at("in").get<Strings>();
    options.nodes.front().nfd = !fact.at("in").empty();  // Without a GPU.
    sim::TestCluster cluster(std::move(options));
    cluster.install({}, {{"any", sim::slices(4)}});
    cluster.pass(2min);
    for (const std::string& label : written)
      EXPECT_EQ(cluster.label_of(sim::kNode, label), fact.at("out").value(label, "")) << label << " of " << fact;
  }
}

TEST(GpuOperatorFacts, ANodeWhoseGpusAreGoneHasNone) {
  for (const json& fact : facts_in("gpu_present_label")) EXPECT_FALSE(has_gpus(node_with(fact.at("out")))) << fact;
}

TEST(GpuOperatorFacts, TheLabelSaysWhetherGpusCanBeCutWithMig) {
  for (const json& fact : facts_in("mig_capable")) {
    json labels = fact.at("labels");
    labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
    labels["nvidia.com/gpu.count"] = "1";
    const json node{{"kind", "Node"}, {"metadata", {{"name", "n"}, {"labels", labels}}}};
    const auto devices = devices_of_node(node.dump());
    ASSERT_TRUE(devices.has_value()) << devices.error().message;
    EXPECT_EQ(devices->front().mig_capable, fact.at("want").get<bool>()) << fact;
  }
}

TEST(GpuOperatorFacts, ADriverUpgradeHoldsItsNodeOnceItHasBegun) {
  for (const json& fact : facts_in("node_upgrade_state_blocks_ready")) {
    const std::string state = fact.at("state");
    const Node node = node_with(json::object({{std::string(kDriverUpgradeState), state}}));
    // Before its turn a node only waits in the queue of the upgrade controller.
    const bool held = fact.at("incomplete").get<bool>() && state != "upgrade-required";
    EXPECT_EQ(foreign_holder(node, {}), held ? kDriverUpgrade : std::string_view()) << state;
  }
}

TEST(GpuOperatorFacts, AMigChangeHoldsItsNodeUntilItHasEnded) {
  for (const json& fact : facts_in("mig_config_state")) {
    const auto states = fact.at("states").get<std::vector<std::string>>();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Node node = node_with(json::object({{std::string(kMigConfigState), states[i]}}));
      const bool ended = i + 1 == states.size();
      EXPECT_EQ(foreign_holder(node, {}), ended ? std::string_view() : kMigChange) << fact << states[i];
    }
  }
}

// --- Node Feature Discovery.

// The keys of the facts have no prefix, which NFD would take for its own one.
std::string prefixed(const std::string& key) {
  return key.find('/') == std::string::npos ? "example.com/" + key : key;
}

// What NFD makes of a node with these labels, some of them its own, once it wants those of `desired`.
Strings labels_after_nfd(const Strings& labels, const std::vector<std::string>& owned, const Strings& desired) {
  sim::TestCluster cluster(sim::one_node());
  cluster.create(sim::kCustomResourceDefinitions,
                 sim::open_definition("nfd.k8s-sigs.io", "nodefeatures", "NodeFeature", "v1alpha1", true));
  cluster.pass(30s);
  json patch;
  std::string keys;
  for (const std::string& key : owned) keys += (keys.empty() ? "" : ",") + prefixed(key);
  patch["metadata"]["annotations"][sim::kFeatureLabels] = keys;
  for (const auto& [key, value] : labels) patch["metadata"]["labels"][prefixed(key)] = value;
  cluster.patch(sim::kNodes, {"", sim::kNode}, patch);
  json feature = json::parse(R"({"apiVersion":"nfd.k8s-sigs.io/v1alpha1","kind":"NodeFeature",
    "metadata":{"name":"f","namespace":"default","labels":{}},"spec":{"labels":{"example.com/written":"yes"}}})");
  feature["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"] = sim::kNode;
  for (const auto& [key, value] : desired) feature["spec"]["labels"][prefixed(key)] = value;
  cluster.create(sim::kNodeFeatures, feature);
  EXPECT_TRUE(cluster.eventually([&] { return cluster.label_of(sim::kNode, "example.com/written") == "yes"; }));
  Strings out;
  const json node = *cluster.server.get(sim::kNodes, {"", sim::kNode});
  for (const auto& [key, value] : node.at("metadata").at("labels").items()) out[key] = value.get<std::string>();
  return out;
}

// Compares the labels that a fact is about. A key without a value in `want` must be absent.
void expect_labels(const Strings& got, const Strings& want, const std::set<std::string>& keys, const json& fact) {
  for (const std::string& key : keys) {
    const auto found = got.find(prefixed(key));
    const auto wanted = want.find(key);
    EXPECT_EQ(found == got.end() ? "(none)" : found->second, wanted == want.end() ? "(none)" : wanted->second)
        << key << " of " << fact;
  }
}

TEST(GpuOperatorFacts, NfdPatchesWhatItWantsAndRemovesWhatItOwns) {
  for (const json& fact : facts_in("nfd_label_patches")) {
    const auto before = fact.at("node").get<Strings>();
    const auto desired = fact.at("desired").get<Strings>();
    const auto owned = fact.at("owned").get<std::vector<std::string>>();
    Strings want = before;
    std::set<std::string> keys(owned.begin(), owned.end());
    for (const auto& [key, value] : before) keys.insert(key);
    for (const auto& [key, value] : desired) keys.insert(key);
    for (const json& step : fact.at("patch")) {
      const std::string key = step.at(1);
      if (step.at(0) == "remove")
        want.erase(key);
      else
        want[key] = step.at(2).get<std::string>();
    }
    expect_labels(labels_after_nfd(before, owned, desired), want, keys, fact);
  }
}

TEST(GpuOperatorFacts, NfdOverwritesALabelOfAnotherWriterOnlyIfItWantsIt) {
  for (const json& fact : facts_in("foreign_writer_vs_nfd")) {
    const auto other = fact.at("ours").get<Strings>();
    std::set<std::string> keys;
    for (const auto& [key, value] : other) keys.insert(key);
    const Strings after = labels_after_nfd(other, fact.at("nfdOwned").get<std::vector<std::string>>(),
                                           fact.at("nfdDesired").get<Strings>());
    expect_labels(after, fact.at("after").get<Strings>(), keys, fact);
  }
}

// --- GPU feature discovery.

// A document of the plugin's config. Upstream's tests ask the labeller alone: it honours a `rename`, which the
// component drops in a cluster, and needs no name. In a cluster renameByDefault and the name nvidia.com/gpu do the
// same.
std::string document_of(json sharing) {
  for (json& section : sharing) {
    for (json& resource : section.at("resources")) {
      if (resource.erase("rename") > 0) section["renameByDefault"] = true;
      if (!resource.contains("name")) resource["name"] = "nvidia.com/gpu";
    }
  }
  return json{{"version", "v1"}, {"sharing", sharing}}.dump();
}

struct Discovered {
  Strings labels;
  bool failed = false;
};

Discovered predicted(const std::string& document, const std::string& product, bool mig) {
  const ParsedProfile parsed = parse_profile(document);
  EXPECT_TRUE(parsed.accepted) << document << parsed.first_error();
  Device device;
  device.name = product;
  device.memory_mib = 15360;
  device.compute_major = 7;
  device.compute_minor = 5;
  device.mig_capable = device.mig_enabled = mig;
  if (mig) device.mig_devices.push_back({"1g.5gb", {{"memory", 4864}}});
  const Expectation expectation = expected_state(parsed.profile, {device});
  return {expectation.labels, expectation.error.has_value()};
}

Discovered simulated(const std::string& document, const std::string& product, bool mig) {
  const auto config = sim::read_plugin_config(document, {0, 20, 0});
  EXPECT_TRUE(config.has_value()) << document;
  sim::Gpu gpu = mig ? sim::a100_mig_1g() : sim::t4();
  gpu.product = product;
  const auto labels = sim::discovery_labels(*config, {gpu});
  return {labels.value_or(Strings()), !labels.has_value()};
}

TEST(GpuOperatorFacts, SharingShowsInTheLabels) {
  for (const json& fact : facts_in("gfd_sharing_labels")) {
    const std::string document = document_of(fact.at("sharing"));
    for (const auto& [labels, failed] :
         {predicted(document, "MOCKMODEL", false), simulated(document, "MOCKMODEL", false)}) {
      EXPECT_FALSE(failed) << fact;
      EXPECT_EQ(missing_from(labels, fact.at("labels")), Strings()) << fact;
    }
  }
}

TEST(GpuOperatorFacts, TheLabelSaysWhetherMpsIsUsed) {
  for (const json& fact : facts_in("mps_capable_label")) {
    const std::string document = document_of(fact.at("config").value("sharing", json::object()));
    const bool mig = fact.value("migEnabled", false);
    for (const auto& [labels, failed] :
         {predicted(document, "MOCKMODEL", mig), simulated(document, "MOCKMODEL", mig)}) {
      EXPECT_EQ(failed, fact.value("error", false)) << fact;
      if (failed) continue;
      const auto found = labels.find("nvidia.com/mps.capable");
      ASSERT_NE(found, labels.end()) << fact;
      EXPECT_EQ(found->second, fact.at("want").get<std::string>()) << fact;
    }
  }
}

// --- Budgets.

TEST(GpuOperatorFacts, PercentagesOfNodesRoundUp) {
  for (const json& fact : facts_in("rollout_slots")) {
    const auto number = [&](const char* field) { return fact.at(field).get<std::int64_t>(); };
    const json& most = fact.at("maxUnavailable");
    const auto budget = IntOrPercent::parse(most.is_string() ? most.get<std::string>() : most.dump());
    ASSERT_TRUE(budget.has_value()) << fact;
    const std::int64_t room = budget->of(number("total")) - number("unavailableNodes") - number("cordonRequired");
    // The upgrade controller has a second limit, which the operator does not have.
    const std::int64_t parallel = number("maxParallelUpgrades") - number("inProgress");
    const std::int64_t startable =
        number("maxParallelUpgrades") > 0 ? std::min(room, parallel) : std::min(room, number("upgradeRequired"));
    EXPECT_EQ(startable, number("slots")) << fact;
  }
}

// --- nos.

TEST(NosFacts, TheNameOfAResourceHasTheSizeOfItsSlices) {
  int tried = 0;
  for (const json& fact : testing::vector_facts("nos_planner")) {
    const std::string op = fact.at("op");
    if (op == "size_gb") {
      EXPECT_EQ(slice_gigabytes(fact.at("input").get<std::string>()), fact.at("expected").at("gb").get<std::int64_t>());
    } else if (op == "requested_slices" || op == "extract_slices") {
      std::map<std::string, std::int64_t> slices;
      const json& resources = op == "extract_slices" ? fact.at("resources") : fact.at("pods").at(0).at("requests");
      for (const auto& [name, count] : resources.items()) {
        const auto size = slice_gigabytes(name);
        if (size) slices[std::to_string(*size) + "gb"] = count.get<std::int64_t>();
      }
      EXPECT_EQ(json(slices), fact.at("expected").at("slices")) << fact;
    } else {
      continue;
    }
    ++tried;
  }
  EXPECT_EQ(tried, 3);
}

}  // namespace
}  // namespace gso::upstream_facts_test
