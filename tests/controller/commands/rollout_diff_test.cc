// `diff`: which nodes would restart, who is in the way, what it refuses, and its exit status.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/record_store.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_diff_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

TEST_F(RolloutCommand, DiffNamesNodesRestartsAndWhoIsInTheWay) {
  const std::string file = "version: v1\n";  // Two GPUs, where four replicas are now.
  post("/api/v1/namespaces/gpu-operator/pods",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job"},"spec":{"nodeName":"gpu-1",
    "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"3"},"requests":{"nvidia.com/gpu":"3"}}}]}})");
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, file), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("gpu-1 .*gpu-operator/job"));
  EXPECT_THAT(out.str(), HasSubstr("1 node would change"));
  options.json = true;
  EXPECT_EQ(run_with(options, file), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["nodes"][0]["inTheWay"][0], "gpu-operator/job");
}

// A pod that is left out could be the one that blocks the change.
TEST_F(RolloutCommand, DiffIsRefusedWhereAChangedNodeHasMorePodsThanCanBeKept) {
  const std::string note(200, 'x');
  std::string notes;
  for (int i = 0; i < 60; ++i) notes += fmt::format(R"({}"gpu-{}":"{}")", i == 0 ? "" : ",", i, note);
  for (int i = 0; i < 90; ++i) {
    post(
        "/api/v1/namespaces/gpu-operator/pods",
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"crowd-{}","annotations":{{{}}}}},"spec":{{"nodeName":"gpu-1",
           "containers":[{{"name":"c","image":"i","env":[{{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}}]}}]}}}})",
            i, notes));
  }
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, "version: v1\n"), 2) << out.str();
  EXPECT_THAT(err.str(), testing::AllOf(HasSubstr("node gpu-1"), HasSubstr("more than can be kept")));
}

TEST_F(RolloutCommand, DiffOfATextThatNoPluginTakesEndsWithOne) {
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(
      run_with(options, "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n"),
      1);
  EXPECT_THAT(out.str(), HasSubstr("invalid: key any: "));
  EXPECT_EQ(run_with(options, "kind: Secret\nmetadata: {name: x}\n"), 2);
  EXPECT_THAT(err.str(), HasSubstr("kind Secret is no ConfigMap, SharingPolicy, ClusterPolicy or profile"));
}

TEST_F(RolloutCommand, DiffOfAnUnknownKeyIsUsageAndNamesTheKeysThereAre) {
  options.verb = Verb::diff;
  options.file = "-";
  options.key = "typo";
  EXPECT_EQ(run_with(options, "version: v1\n"), 2) << out.str();
  EXPECT_EQ(err.str(),
            "gpu-sharing-operator diff: ConfigMap gpu-operator/mps-config has no key typo, and no node label names it. "
            "Keys: any\n");
  options.key = "ayn";
  EXPECT_EQ(run_with(options, "version: v1\n"), 2) << out.str();
  EXPECT_THAT(err.str(), HasSubstr("has no key ayn (did you mean \"any\"?), and no node label names it. Keys: any\n"));
  options.key = "typo";
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"nvidia.com/device-plugin.config":"typo"}}})");
  EXPECT_EQ(run_with(options, "version: v1\n"), 0) << err.str();
}

// Another key's edit is on its way: a file for this key has no part in it.
TEST_F(RolloutCommand, DiffOfAFileLeavesOutNodesThatChangeForAnotherKey) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"slices":"version: v1\n"}})");
  options.verb = Verb::diff;
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("1 node would change"));
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/hold":"true"}}})");
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("gpu-1 .* Held, "));
  EXPECT_THAT(out.str(), HasSubstr("\n1 of them is held and would change only once that ends\n"));
  options.file = "-";
  options.key = "slices";
  EXPECT_EQ(run_with(options, "version: v1\n"), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("No node would change.\n1 node changes without this file and is not "
                                             "listed. See: gpu-sharing-operator diff\n"));
}

// A policy of that spec that is about to be created.
std::string policy_file(const std::string& spec, const std::string& name = "team") {
  return "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: " + name + "}\nspec: " + spec +
         "\n";
}
// A patch of the plugin's DaemonSet: its pods follow the node's label.
constexpr const char* kFollowsLabels = R"({"spec":{"template":{"spec":{"containers":[
    {"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1"},
    {"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
     "env":[{"name":"DEFAULT_CONFIG","value":"any"},{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"},
            {"name":"NODE_LABEL","value":"nvidia.com/device-plugin.config"}],
     "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]}]}}}})";
constexpr const char* kPluginDaemonSet =
    "/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-device-plugin-daemonset";

TEST_F(RolloutCommand, DiffOfAPolicyNamesTheNodesThatItTakesOverAlsoWhereNoneChanges) {
  record_gpu_1(target());
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{priority: 5}")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("SharingPolicy team (new) selects 1 GPU node, and governs it\n"
                                             "  1 node would leave policy default: gpu-1\n"
                                             "No node would change.\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("Waves: ")));
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/team")["code"], 404) << "it only reads";
  EXPECT_EQ(run_with(options, policy_file("{nodeSelector: {matchLabels: {pool: none}}}")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("SharingPolicy team (new) selects 0 GPU nodes, and governs 0 nodes\n"
                                             "  no GPU node has the labels that spec.nodeSelector asks for: "));
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("team", R"({"priority":5})"));
  EXPECT_EQ(run_with(options, policy_file("{nodeSelector: {matchLabels: {pool: none}}}")), 0) << err.str();
  EXPECT_THAT(out.str(),
              testing::StartsWith("SharingPolicy team (changed) selects 0 GPU nodes, and governs 0 nodes\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n  1 node would return to policy default: gpu-1\n"));
}

// A node that another policy keeps is named with the reason.
TEST_F(RolloutCommand, DiffOfAPolicySaysWhoGovernsItsNodesInstead) {
  record_gpu_1(target());
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("other", R"({"priority":9})"));
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{priority: 5}")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("SharingPolicy team (new) selects 1 GPU node, and governs 0 nodes\n"
                                             "  1 of the selected nodes is governed by policy other: its priority is "
                                             "higher\n"));
}

TEST_F(RolloutCommand, DiffOfAPolicyShowsProfilesWavesAndWhatHappensToPods) {
  record_gpu_1(target());
  merge(kPluginDaemonSet, kFollowsLabels);
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"whole":"version: v1\n"}})");
  post("/api/v1/namespaces/gpu-operator/pods",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job"},"spec":{"nodeName":"gpu-1",
    "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"3"},"requests":{"nvidia.com/gpu":"3"}}}]}})");
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{priority: 5, profile: {configMapKey: whole}}")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 +team +mps-config/whole .*gpu-operator/job"));
  EXPECT_THAT(out.str(), HasSubstr("\n1 node would change"));
  EXPECT_THAT(out.str(), HasSubstr("\nWaves: first a canary of 1 node of each GPU product, which must show the profile "
                                   "for 1m0s; then at most 1 node at once (maxUnavailable 10% = 1 of 1 node; "
                                   "maxUnavailablePerGroup 25% = 1 of 1 node; --cluster-max-unavailable 10% = 1 of 1 "
                                   "node)\n"));
  EXPECT_THAT(out.str(), HasSubstr("\nPods: none is evicted: each node waits up to 1h0m0s until its pods have ended "));
  EXPECT_EQ(
      run_with(options, policy_file("{priority: 5, profile: {configMapKey: whole}, rollout: {workloads: Evict}}")), 0);
  EXPECT_THAT(out.str(), HasSubstr("\nWould wait for pods on gpu-1, although spec.rollout.workloads is Evict: "))
      << err.str();
  options.json = true;
  EXPECT_EQ(
      run_with(options, policy_file("{priority: 5, profile: {configMapKey: whole}, rollout: {workloads: Evict}}")), 0);
  const Json document = Json::parse(out.str());
  EXPECT_EQ(document["nodes"][0]["profile"], "mps-config/whole");
  EXPECT_EQ(document["policy"]["new"], true);
  EXPECT_EQ(document["policy"]["joins"]["default"][0], "gpu-1");
  EXPECT_EQ(document["policy"]["evicted"][0]["pods"][0], "gpu-operator/job");
}

// The cluster's ClusterPolicy, and the plugin's DaemonSet as the GPU Operator has made it of that.
class ClusterPolicyDiff : public RolloutCommand {
 protected:
  ClusterPolicyDiff() {
    post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
             "metadata":{"name":"clusterpolicies.nvidia.com"},"spec":{"group":"nvidia.com","scope":"Cluster",
             "names":{"plural":"clusterpolicies","singular":"clusterpolicy","kind":"ClusterPolicy",
                      "listKind":"ClusterPolicyList"},
             "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
               "x-kubernetes-preserve-unknown-fields":true}}}]}})");
    sim.clock.run_for(std::chrono::seconds(1));
    post("/apis/nvidia.com/v1/clusterpolicies", file("any"));
    const Json made = get("/apis/nvidia.com/v1/clusterpolicies/cluster-policy");
    merge(kPluginDaemonSet, fmt::format(R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"nvidia.com/v1",
        "kind":"ClusterPolicy","name":"cluster-policy","uid":"{}","controller":true}}]}},
        "spec":{{"template":{{"spec":{{"containers":[
          {{"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}},
          {{"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
            "env":[{{"name":"DEFAULT_CONFIG","value":"any"}},{{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"}},
                   {{"name":"NODE_LABEL","value":"nvidia.com/device-plugin.config"}},
                   {{"name":"FALLBACK_STRATEGIES","value":"empty"}}],
            "volumeMounts":[{{"name":"plugin-config","mountPath":"/available-configs"}}]}}]}}}}}}}})",
                                        made["metadata"]["uid"].get<std::string>()));
    record_gpu_1(target());
    options.verb = Verb::diff;
  }
  static std::string file(const std::string& default_key) {
    return R"({"apiVersion":"nvidia.com/v1","kind":"ClusterPolicy","metadata":{"name":"cluster-policy"},"spec":{
        "devicePlugin":{"config":{"name":"mps-config","default":")" +
           default_key + "\"}}}}";
  }
  static std::string default_patch(const std::string& key) {
    return R"({"spec":{"devicePlugin":{"config":{"default":")" + key + "\"}}}}";
  }
  // Of the same owner as the plugin's.
  void post_mps_daemonset() {
    Json daemon = get(kPluginDaemonSet);
    daemon["metadata"] = {{"name", "mps"}, {"ownerReferences", daemon["metadata"]["ownerReferences"]}};
    daemon["spec"]["selector"]["matchLabels"]["app"] = "mps";
    daemon["spec"]["template"]["metadata"]["labels"]["app"] = "mps";
    daemon["spec"]["template"]["spec"]["containers"][0]["name"] = "mps-control-daemon-ctr";
    post("/apis/apps/v1/namespaces/gpu-operator/daemonsets", daemon.dump());
  }
  // gpu-1 runs the MPS daemon with key any; the keys `same` and `eight` are there, too.
  void run_mps() {
    merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config",
          Json{{"data", {{"any", mps(4)}, {"same", mps(4)}, {"eight", mps(8)}}}}.dump());
    post_mps_daemonset();
    const Json daemonset = get("/apis/apps/v1/namespaces/gpu-operator/daemonsets/mps")["metadata"];
    const Json owner{{"apiVersion", "apps/v1"},
                     {"kind", "DaemonSet"},
                     {"name", "mps"},
                     {"uid", daemonset["uid"]},
                     {"controller", true}};
    const Json pod{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", "mps-1"}, {"labels", {{"app", "mps"}}}, {"ownerReferences", {owner}}}},
        {"spec", {{"nodeName", "gpu-1"}, {"containers", {{{"name", "mps-control-daemon-ctr"}, {"image", "i"}}}}}}};
    post("/api/v1/namespaces/gpu-operator/pods", pod.dump());
    merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"nvidia.com/mps.capable":"true",
        "nvidia.com/gpu.sharing-strategy":"mps","nvidia.com/gpu.replicas":"4"}},
        "status":{"capacity":{"nvidia.com/gpu":"8"}}})");
    merge("/api/v1/namespaces/gpu-sharing-operator/configmaps/" + PlannerSettings().state_config_map,
          state_of(record_with_gpu_1(target())));
  }
  static std::string mps(int replicas) {
    return fmt::format("version: v1\nsharing:\n  mps:\n    resources:\n    - {{name: nvidia.com/gpu, replicas: {}}}\n",
                       replicas);
  }
  // A pod on gpu-1 that uses one replica.
  void post_job() {
    post("/api/v1/namespaces/gpu-operator/pods",
         R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job"},"spec":{"nodeName":"gpu-1",
    "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}}]}})");
  }
  int run_patch(const std::string& patch) {
    options.cluster_policy_patch = patch;
    return run_with(options, patch);
  }
};

TEST_F(ClusterPolicyDiff, OfAPatchShowsNodesAmountsAndPodsBeyond) {
  post("/api/v1/namespaces/gpu-operator/pods",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job"},"spec":{"nodeName":"gpu-1",
    "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"3"},"requests":{"nvidia.com/gpu":"3"}}}]}})");
  const std::string patch = R"({"spec":{"devicePlugin":{"config":{"default":null}}}})";
  EXPECT_EQ(run_patch(patch), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("ClusterPolicy cluster-policy (changed)\n"
                                             "  spec.devicePlugin.config.default any -> (none)\n"));
  EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 .*gpu-operator/job"));
  EXPECT_THAT(out.str(),
              HasSubstr("\n1 node would change, 1 by restarts; 1 node has pods that request more than is left\n"));
  EXPECT_THAT(out.str(), HasSubstr("\ngpu-1: 3 of nvidia.com/gpu requested, 2 served afterwards (gpu-operator/job)\n"));
  EXPECT_THAT(out.str(), HasSubstr("; nvidia.com/gpu 4 -> 2 on one node\n"));
  EXPECT_THAT(out.str(), HasSubstr("\nThe GPU Operator replaces the plugin's pods by itself: not in waves, "));
  EXPECT_THAT(out.str(), Not(HasSubstr("  ->")));
  options.json = true;
  EXPECT_EQ(run_patch(patch), 0) << err.str();
  const Json document = Json::parse(out.str());
  EXPECT_EQ(document["clusterPolicy"]["fields"][0]["before"], "any");
  EXPECT_EQ(document["nodes"][0]["beyond"], "3 of nvidia.com/gpu requested, 2 served afterwards");
  EXPECT_EQ(get("/apis/nvidia.com/v1/clusterpolicies/cluster-policy")["spec"]["devicePlugin"]["config"]["default"],
            "any")
      << "it only reads";
}

TEST_F(ClusterPolicyDiff, OfADefaultThatIsNoKeyNamesWhatWouldLoseItsGpus) {
  for (const bool as_file : {false, true}) {
    options.file = as_file ? "-" : "";
    options.cluster_policy_patch = as_file ? "" : R"({spec: {devicePlugin: {config: {default: ayn}}}})";
    EXPECT_EQ(run_with(options, as_file ? file("ayn") : options.cluster_policy_patch), 1) << err.str();
    EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 .*loses its GPUs"));
    EXPECT_THAT(out.str(), HasSubstr("did you mean \"any\"?"));
    EXPECT_THAT(out.str(), HasSubstr("\n1 of them would lose its GPUs\n"));
  }
}

TEST_F(ClusterPolicyDiff, ThatBeginsMpsNamesAllPodsOfTheNode) {
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", Json{{"data", {{"mps", mps(4)}}}}.dump());
  post_mps_daemonset();
  post_job();
  EXPECT_EQ(run_patch(default_patch("mps")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 .*gpu-operator/job"));
  EXPECT_THAT(out.str(), HasSubstr("; 1 node has pods that the restart breaks\n"));
  options.json = true;
  EXPECT_EQ(run_patch(default_patch("mps")), 0) << err.str();
  const Json node = Json::parse(out.str())["nodes"][0];
  EXPECT_EQ(node["inTheWay"], Json::array({"gpu-operator/job"})) << node;
}

// Their DaemonSets' templates change, so all pods are replaced although the node runs the same text.
TEST_F(ClusterPolicyDiff, OfAnotherDefaultWithTheSameTextBreaksMpsClients) {
  run_mps();
  post_job();
  EXPECT_EQ(run_patch(default_patch("same")), 0) << err.str();
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("\ngpu-1 +default +mps-config/same +.*template, change-mps +plugin, mps "
                                     "+no +gpu-operator/job\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n1 node would change, 1 by restarts; 1 node has pods that the restart breaks\n"));
  options.json = true;
  EXPECT_EQ(run_patch(default_patch("same")), 0) << err.str();
  const Json node = Json::parse(out.str())["nodes"][0];
  EXPECT_EQ(node["from"], target()) << node;
  EXPECT_EQ(node["to"], target()) << node;
  EXPECT_EQ(run_patch(default_patch("any")), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["nodes"], Json::array()) << "no template changes";
}

TEST_F(ClusterPolicyDiff, OfAnotherDefaultNamesNodesThatKeepTheKeyOfTheirLabel) {
  run_mps();
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"nvidia.com/device-plugin.config":"any"}}})");
  post_job();
  EXPECT_EQ(run_patch(default_patch("eight")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 +default +mps-config/any .*template, change-mps +plugin, mps "
                                                "+no +gpu-operator/job\n"));
}

// With OnDelete the operator replaces the pods, as after an edit of the ConfigMap.
TEST_F(ClusterPolicyDiff, OfDaemonSetsWithOnDeleteSaysThatTheOperatorWaitsForPods) {
  run_mps();
  post_job();
  for (const char* name : {"nvidia-device-plugin-daemonset", "mps"})
    merge(std::string("/apis/apps/v1/namespaces/gpu-operator/daemonsets/") + name,
          R"({"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}})");
  EXPECT_EQ(run_patch(default_patch("eight")), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr(" BLOCKING PODS\n"));
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("\ngpu-1 +default +mps-config/eight .*template, change-mps +plugin, mps "
                                     "+yes +gpu-operator/job\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n1 node would change, 1 by restarts; 1 node has pods that block the change\n"
                                   "The operator replaces the plugin's pods in the policy's waves\n"));
  EXPECT_EQ(run_patch(default_patch("typo")), 1) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 .*loses its GPUs +- +no +-\n"));
  EXPECT_THAT(out.str(),
              HasSubstr("\nThe operator replaces no pod of these nodes: they lose their GPUs once their pods "
                        "restart\n"));
}

TEST_F(ClusterPolicyDiff, ThatDisablesThePluginDeletesItsPods) {
  run_mps();
  post_job();
  EXPECT_EQ(run_patch(R"({"spec":{"devicePlugin":{"enabled":false}}})"), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\n1 node would change; 1 node has pods that the end of the MPS daemon breaks\n"));
  EXPECT_THAT(out.str(), HasSubstr("\nThe GPU Operator deletes the plugin's DaemonSets, and waits for no pod that uses "
                                   "GPUs\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("replaces")));
}

// A file is the whole object, and a patch is not.
TEST_F(ClusterPolicyDiff, OfAFileNamesTheFieldsThatItLeavesOut) {
  merge("/apis/nvidia.com/v1/clusterpolicies/cluster-policy",
        R"({"spec":{"driver":{"version":"570","usePrecompiled":false},"gfd":{},
            "devicePlugin":{"version":"v0.18.0","env":[{"name":"A","value":"b"}]}}})");
  options.file = "-";
  EXPECT_EQ(run_with(options, file("any")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("ClusterPolicy cluster-policy (unchanged, except for fields that the file "
                                             "leaves out)\nThe effect of spec.devicePlugin.env, "));
  EXPECT_THAT(out.str(), HasSubstr("\nNot in the file: spec.devicePlugin.env, spec.devicePlugin.version, spec.driver. "
                                   "`kubectl replace` removes them, "));
  EXPECT_THAT(out.str(), Not(HasSubstr("No node would change")));
  options.json = true;
  EXPECT_EQ(run_with(options, file("any")), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["clusterPolicy"]["notPreviewed"],
            Json::array({"spec.devicePlugin.env", "spec.devicePlugin.version", "spec.driver"}));
  options.file = "";
  EXPECT_EQ(run_patch(default_patch("any")), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["clusterPolicy"]["notPreviewed"], Json::array());
}

TEST_F(ClusterPolicyDiff, OfAnotherConfigMapReadsThatOne) {
  post("/api/v1/namespaces/gpu-operator/configmaps",
       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"},"data":{"whole":"version: v1\n"}})");
  EXPECT_EQ(run_patch(R"({"spec":{"devicePlugin":{"config":{"name":"other","default":"whole"}}}})"), 0) << err.str();
  EXPECT_THAT(out.str(), testing::ContainsRegex("\ngpu-1 +default +other/whole "));
  EXPECT_EQ(run_patch(R"({"spec":{"devicePlugin":{"config":{"name":"othr"}}}})"), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("ConfigMap gpu-operator/othr does not exist"));
}

TEST_F(ClusterPolicyDiff, OfWhatIsThereChangesNothingAndWhatIsNoPatchIsRefused) {
  EXPECT_EQ(run_patch("{}"), 0) << err.str();
  EXPECT_EQ(out.str(), "ClusterPolicy cluster-policy (unchanged)\nNo node would change.\n");
  EXPECT_EQ(run_patch("default"), 2);
  EXPECT_THAT(err.str(), HasSubstr("--clusterpolicy-patch is no merge patch"));
  EXPECT_EQ(run_patch(R"({"devicePlugin":{"config":{"default":"x"}}})"), 2);
  EXPECT_THAT(err.str(), HasSubstr(R"(has no field devicePlugin, )"));
  EXPECT_EQ(run_patch(R"({"spec":{"devicePlugin":{"config":{"defualt":"x"}}}})"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Did you mean \"default\"?"));
}

TEST_F(ClusterPolicyDiff, OfFieldsThatAreNotPreviewedIsNoAllClear) {
  EXPECT_EQ(run_patch(R"({"spec":{"driver":{"version":"570"},"devicePlugin":{"version":"v0.18.0"}}})"), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("ClusterPolicy cluster-policy (changed)\n"));
  EXPECT_THAT(out.str(), HasSubstr("The effect of spec.devicePlugin.version, spec.driver.version is not part of this"));
  EXPECT_THAT(out.str(), Not(HasSubstr("No node would change")));
  options.json = true;
  EXPECT_EQ(run_patch(R"({"spec":{"gfd":{"enabled":false}}})"), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["clusterPolicy"]["notPreviewed"], Json::array({"spec.gfd.enabled"}));
}

TEST_F(RolloutCommand, DiffOfAPolicyThatIsRefusedEndsWithOne) {
  record_gpu_1(target());
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{nodeSelector: {matchlabels: {pool: a}}}")), 1);
  EXPECT_THAT(out.str(), HasSubstr("[SelectorInvalid]"));
  EXPECT_THAT(out.str(),
              HasSubstr("\ninvalid: SharingPolicy team: the API server refuses it, so nothing would change\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("selects")));
  EXPECT_THAT(out.str(), Not(HasSubstr("No node would change")));
  EXPECT_EQ(run_with(options, policy_file("{nodeSelector: {matchLabels: {nvidia.com/gpu.sharing-strategy: mps}}}")), 1);
  EXPECT_THAT(out.str(),
              HasSubstr("\ninvalid: SharingPolicy team: the operator refuses it, so nothing would change\n"));
}

// It cannot be read as a policy, but it has a name, and is new or not.
TEST_F(RolloutCommand, DiffOfAPolicyWithSeveralErrorsNamesIt) {
  record_gpu_1(target());
  options.verb = Verb::diff;
  options.file = "-";
  const std::string wrong = "{priority: high, mode: Sometimes}";
  EXPECT_EQ(run_with(options, policy_file(wrong)), 1);
  EXPECT_THAT(out.str(),
              HasSubstr("\ninvalid: SharingPolicy team: the API server refuses it, so nothing would change\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("No node would change")));
  options.json = true;
  EXPECT_EQ(run_with(options, policy_file(wrong)), 1);
  EXPECT_EQ(Json::parse(out.str())["policy"]["new"], true);
  EXPECT_EQ(run_with(options, policy_file(wrong, "default")), 1);
  EXPECT_EQ(Json::parse(out.str())["policy"]["new"], false);
  EXPECT_EQ(Json::parse(out.str())["policy"]["name"], "default");
}

TEST_F(RolloutCommand, DiffOfAPolicyShowsTheWarningsOfLintAboveThePreview) {
  record_gpu_1(target());
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{priority: 5, rollout: {workloadz: Evict}}")), 0) << err.str();
  const std::string text = out.str();
  const std::size_t warning = text.find("[UnknownField]");
  ASSERT_NE(warning, std::string::npos) << text;
  EXPECT_LT(warning, text.find("SharingPolicy team (new)")) << text;
}

// Of an edited policy also its order and its stops count: nodes that wait or change already are its own.
TEST_F(RolloutCommand, DiffOfAnEditedPolicyKeepsTheNodesThatChangeAlready) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{}", "default")), 0) << err.str();
  EXPECT_THAT(out.str(),
              testing::StartsWith("SharingPolicy default (unchanged) selects 1 GPU node, and governs it\n"
                                  "No node would change in another way than now; 1 node is changing or waiting\n"
                                  "NODE "));
  EXPECT_THAT(out.str(), HasSubstr("\nWaves: first a canary of 1 node of each GPU product, "));
  EXPECT_THAT(out.str(), Not(HasSubstr("No node would change.")));
  EXPECT_THAT(out.str(), Not(HasSubstr("without this file")));
  EXPECT_THAT(out.str(), Not(HasSubstr("queue")));
  const std::string wider = R"({rollout: {maxUnavailable: "100%", canary: {nodesPerGroup: 0}}})";
  EXPECT_EQ(run_with(options, policy_file(wider, "default")), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("SharingPolicy default (changed) selects 1 GPU node, and governs it\n"
                                             "  spec.rollout.maxUnavailable 10% -> 100%\n"
                                             "  spec.rollout.canary.nodesPerGroup 1 -> 0\n"
                                             "No node would get another profile than now; 1 node is changing or "
                                             "waiting, in the order below\nNODE "));
  EXPECT_THAT(out.str(), HasSubstr("\nWaves: at most 1 node at once (maxUnavailable 100% = 1 of 1 node; "));
}

TEST_F(RolloutCommand, DiffOfAPolicyThatStopsWhatIsUnderWaySaysSo) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{mode: Observe}", "default")), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\n  spec.mode Enforce -> Observe\n"));
  EXPECT_THAT(out.str(), HasSubstr("\nWould wait: gpu-1 ("));
  EXPECT_THAT(out.str(), HasSubstr("\nWould stop (mode Observe): 1 node that waits to start: gpu-1\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("No node would change")));
  EXPECT_EQ(run_with(options, policy_file("{rollout: {paused: true}}", "default")), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\n  spec.rollout.paused false -> true\n"));
  EXPECT_THAT(out.str(), HasSubstr("\nWould stop (paused): 1 node that waits to start: gpu-1\n"));
  options.json = true;
  EXPECT_EQ(run_with(options, policy_file("{mode: Observe}", "default")), 0) << err.str();
  const Json policy = Json::parse(out.str())["policy"];
  EXPECT_EQ(policy["newStops"], "mode Observe");
  EXPECT_EQ(policy["asNow"], 1);
  EXPECT_EQ(policy["fields"][0], (Json{{"field", "spec.mode"}, {"before", "Enforce"}, {"after", "Observe"}}));
}

TEST_F(RolloutCommand, DiffOfAPolicyThatDropsAWaitingNodeSaysThatItNoLongerChanges) {
  record_gpu_1(target());
  merge(kPluginDaemonSet, kFollowsLabels);
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"whole":"version: v1\n"}})");
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       policy("team", R"({"priority":5,"profile":{"configMapKey":"whole"}})"));
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{priority: 5, profile: {configMapKey: whole}, nodeSelector: {matchLabels: "
                                          "{pool: none}}}")),
            0)
      << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\n  spec.nodeSelector all nodes -> pool=none\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n  1 node would return to policy default: gpu-1\nNo node would change.\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n1 node would no longer change: gpu-1\n"));
}

// The status of its rollout names the pods; the table does not.
TEST_F(RolloutCommand, DiffCountsANodeInAChangeThatWaitsForItsPods) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  const std::string uid = get("/api/v1/namespaces/gpu-operator/pods/plugin-of-gpu-1")["metadata"]["uid"];
  test::ChangeWords change;
  change.to = target();
  change.pods["plugin"].insert(uid);
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  rollout("r", "Progressing", target());
  const Json node{
      {"name", "gpu-1"}, {"state", "Waiting"}, {"reason", "WaitingForWorkloads"}, {"message", "waits for team/train"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
  EXPECT_EQ(run(Verb::diff), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("\ngpu-1: waits for team/train\n"));
  EXPECT_THAT(out.str(), HasSubstr("; 1 node has pods that block the change\n"));
}

TEST_F(RolloutCommand, DiffOfTheDefaultPolicySaysWhyOthersGovernItsNodes) {
  record_gpu_1(target());
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("team", R"({"priority":5})"));
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{}", "default")), 0) << err.str();
  EXPECT_THAT(out.str(),
              testing::StartsWith("SharingPolicy default (unchanged) selects 1 GPU node, and governs 0 nodes\n"
                                  "  1 of the selected nodes is governed by policy team: its priority is higher\n"));
}

TEST_F(RolloutCommand, DiffOfSeveralDocumentsOrOfAPolicyWithAKeyIsUsage) {
  record_gpu_1(target());
  options.verb = Verb::diff;
  options.file = "-";
  EXPECT_EQ(run_with(options, policy_file("{}") + "---\n" + policy_file("{}", "other")), 2) << out.str();
  EXPECT_EQ(err.str(),
            "gpu-sharing-operator diff: the input has 2 documents, and diff compares one: give each a file of its "
            "own\n");
  EXPECT_EQ(run_with(options, "---\n" + policy_file("{}") + "---\n"), 0) << err.str();
  options.key = "any";
  EXPECT_EQ(run_with(options, policy_file("{}")), 2) << out.str();
  EXPECT_EQ(err.str(),
            "gpu-sharing-operator diff: --key goes with a profile, and the input is a SharingPolicy: leave --key out, "
            "and write spec.profile.configMapKey\n");
}

// A node that is blocked changes neither with nor without the file.
TEST_F(RolloutCommand, DiffOfAFileCountsOnlyNodesThatChangeWithoutIt) {
  record_gpu_1(target());
  merge(
      "/api/v1/namespaces/gpu-operator/configmaps/mps-config",
      R"({"data":{"slices":"version: v1\n","any":"version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n"}})");
  options.verb = Verb::diff;
  options.file = "-";
  options.key = "slices";
  EXPECT_EQ(run_with(options, "version: v1\n"), 0) << err.str();
  EXPECT_THAT(out.str(), testing::StartsWith("No node would change.\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("without this file")));
}

TEST_F(RolloutCommand, DiffReportsAnInvalidTextOnceHoweverManyNodesItConcerns) {
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}}})");
  options.verb = Verb::diff;
  options.file = "-";
  const std::string bad = "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n";
  EXPECT_EQ(run_with(options, bad), 1);
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr("-:5:40: error: "));
  EXPECT_THAT(text, HasSubstr("[ReplicasBelowMinimum]\n"));
  EXPECT_THAT(text, HasSubstr("2 nodes are blocked and would not change\n"));
  EXPECT_THAT(text, HasSubstr("invalid: key any: no pod would be restarted with this profile\n"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kInvalidRevision))));
  const std::size_t first = text.find("replicas is 0");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("replicas is 0", first + 1), std::string::npos) << text;
}

TEST_F(RolloutCommand, DiffOfAConfigMapWithoutAKeyThatNodesUseIsAnError) {
  options.verb = Verb::diff;
  options.file = "-";
  const std::string without =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config, namespace: gpu-operator}\n"
      "data: {other: \"version: v1\\n\"}\n";
  EXPECT_EQ(run_with(options, without), 1) << err.str();
  EXPECT_THAT(
      out.str(),
      HasSubstr("error KeyInUse: key any of ConfigMap gpu-operator/mps-config would be removed, but one node uses "
                "it: gpu-1\n"));
  options.json = true;
  EXPECT_EQ(run_with(options, without), 1) << err.str();
  EXPECT_EQ(Json::parse(out.str())["findings"][0]["nodes"], Json::array({"gpu-1"}));
}

TEST_F(RolloutCommand, DiffWithoutAFileEndsWithOneWhereTheClustersTextIsInvalid) {
  merge(
      "/api/v1/namespaces/gpu-operator/configmaps/mps-config",
      R"({"data":{"any":"version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n"}})");
  options.verb = Verb::diff;
  EXPECT_EQ(run_with(options), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("key any: line 5: sharing.mps.resources[0].replicas: replicas is 0"));
  EXPECT_THAT(out.str(), HasSubstr("(invalid)"));
}

TEST_F(RolloutCommand, DiffWithoutAFileShowsWhatIsPending) {
  options.verb = Verb::diff;
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("No node would change."));
}

// Its plugin has no pod: it does not show its profile.
TEST_F(RolloutCommand, DiffNamesDriftThatIsLeftAloneAndWhetherAnOperatorHasRecordedAnything) {
  options.verb = Verb::diff;
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(),
              HasSubstr("1 node does not show its profile now: gpu-1\n"
                        "The current state is taken as the baseline: an operator runs here (Lease "
                        "gpu-sharing-operator/gpu-sharing-operator) and has recorded nothing yet, as with "
                        "max-mode Observe. Edits made before the first record are not rolled out by "
                        "themselves when it is allowed to act: `gpu-sharing-operator rollout start POLICY --adopt`\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("No record of the operator was found")));
  (void)send(k8s::Method::del, std::string(kLeases) + "/gpu-sharing-operator", "", "");
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("1 node does not show its profile now: gpu-1. No record of the operator was found"));
  renew_lease();
  FleetRecord kept;
  const std::string text = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"];
  MachineRecord gpu_1;
  gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
  gpu_1.key = k8s::Interned("any");
  gpu_1.revision = k8s::Interned(ProfileCache().compile(text)->revision);
  gpu_1.drift = true;
  const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
  kept.machines.set(machine_id(uid), gpu_1);
  record(print_head({kept}));
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("1 node has not shown its profile since the baseline was recorded, and is skipped: "
                                   "gpu-1. To roll it out: rollout start --adopt\n"));
  options.json = true;
  EXPECT_EQ(run_with(options), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["leftAlone"], Json::array({"gpu-1"}));
}

}  // namespace
}  // namespace gso::rollout_diff_test
