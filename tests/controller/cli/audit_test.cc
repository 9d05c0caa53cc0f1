// `audit` of clusters that it has never seen, as manifests: what is an error, what comes first, and what is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "controller/cli/cli.h"

namespace gso::audit_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  int code = 0;
  std::string out;
};

Outcome audit(const std::string& manifests, const std::string& form = "json") {
  std::istringstream in(manifests);
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli({"audit", "-f", "-", "-o", form}, in, out, err);
  EXPECT_EQ(err.str(), "");
  return {code, out.str()};
}

std::string node(const std::string& name, int gpus, int serves, const std::string& labels = "") {
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {0}, labels: {{nvidia.com/gpu.present: 'true', "
      "nvidia.com/gpu.count: '{1}'{3}}}}}, status: {{capacity: {{nvidia.com/gpu: '{2}'}}, allocatable: "
      "{{nvidia.com/gpu: "
      "'{2}'}}, conditions: [{{type: Ready, status: 'True'}}]}}}}\n",
      name, gpus, serves, labels);
}

std::string config_map(const std::string& strategy, const std::string& metadata = "") {
  return "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: gpu-operator" + metadata +
         "}, data: {any: 'sharing: {" + strategy + ": {resources: [{name: nvidia.com/gpu, replicas: 4}]}}'}}\n";
}

std::string daemonset(const std::string& name, const std::string& container, const std::string& selector,
                      const std::string& metadata = "", const std::string& annotations = "") {
  return fmt::format(
      "---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {0}, namespace: gpu-operator, uid: u-{0}{3}}}, "
      "spec: "
      "{{selector: {{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: {{app: {0}}}, annotations: "
      "{{{4}}}}}, spec: "
      "{{nodeSelector: {{{2}}}, containers: [{{name: {1}, image: 'x/k8s-device-plugin:v0.17.1', env: [{{name: "
      "MPS_ROOT, "
      "value: /run/nvidia/mps}}]}}, {{name: config-manager, image: 'x:v0.17.1', env: [{{name: CONFIG_FILE_SRCDIR, "
      "value: "
      "/c}}, {{name: DEFAULT_CONFIG, value: any}}], volumeMounts: [{{name: v, mountPath: /c}}]}}], volumes: [{{name: "
      "v, "
      "configMap: {{name: c}}}}]}}}}}}}}\n",
      name, container, selector, metadata, annotations);
}

std::string pod(const std::string& of, const std::string& node, bool ready) {
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {0}-{1}, namespace: gpu-operator, labels: {{app: {0}}}, "
      "creationTimestamp: '2026-01-02T00:00:00Z', ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: {0}, "
      "uid: "
      "u-{0}, controller: true}}]}}, spec: {{nodeName: {1}}}, status: {{phase: Running, conditions: [{{type: Ready, "
      "status: "
      "'{2}'}}], containerStatuses: [{{name: main, ready: {3}, state: {4}}}]}}}}\n",
      of, node, ready ? "True" : "False", ready,
      ready ? "{running: {startedAt: '2026-01-02T00:00:01Z'}}"
            : "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, message: no NVML}}");
}

const std::string kPlugin = daemonset("plugin", "nvidia-device-plugin", "");
const std::string kMps = daemonset("mps", "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'");

std::vector<std::string> reasons(const Outcome& outcome, const std::string& severity) {
  std::vector<std::string> out;
  const Json answer = Json::parse(outcome.out);
  for (const auto& problem : answer["problems"])
    if (problem["severity"] == severity) out.push_back(problem["reason"]);
  return out;
}

TEST(Audit, AClusterWhoseNodesServeNothingIsNotCleared) {
  const Outcome found = audit(config_map("mps") + kPlugin + kMps + node("n1", 8, 0) + node("n2", 8, 0));
  EXPECT_EQ(found.code, 1) << found.out;
  const Json answer = Json::parse(found.out);
  EXPECT_EQ(answer["version"], 1);
  EXPECT_EQ(answer["gpus"], (Json{{"total", 16}, {"unusable", 16}, {"uncountedNodes", 0}}));
  // Nothing writes the label that the MPS daemon's DaemonSet waits for: no operator has ever run there.
  EXPECT_THAT(reasons(found, "error"), Contains("MPSDaemonHasNoPods"));
  const Json& first = answer["problems"][0];
  EXPECT_EQ(first["severity"], "error");
  EXPECT_EQ(first["gpusUnusable"], 16);
  EXPECT_EQ(first["objects"].size(), 2U);
  EXPECT_THAT(first["pods"].dump(), HasSubstr("no pod of DaemonSet gpu-operator/plugin runs on node n1"));
  EXPECT_THAT(first["command"].get<std::string>(), HasSubstr("gpu-sharing-operator explain n1"));
}

TEST(Audit, ANodeThatRunsAnotherProfileThanItsConfigMapIsAnError) {
  const Outcome found = audit(config_map("timeSlicing") + kPlugin + node("n1", 2, 2) + pod("plugin", "n1", true) +
                              node("n2", 2, 8) + pod("plugin", "n2", true));
  EXPECT_EQ(found.code, 1) << found.out;
  EXPECT_THAT(reasons(found, "error"), Contains("PreexistingDrift"));
  EXPECT_EQ(Json::parse(found.out)["gpus"], (Json{{"total", 4}, {"unusable", 2}, {"uncountedNodes", 0}}));
}

// The ConfigMap as a person edited it last at that time; the pods of pod() are of 2026-01-02.
std::string edited_at(const std::string& time) {
  return config_map("timeSlicing",
                    ", creationTimestamp: '2026-01-01T00:00:00Z', managedFields: [{manager: "
                    "kubectl-edit, operation: Update, apiVersion: v1, time: '" +
                        time + "', fieldsType: FieldsV1, fieldsV1: {'f:data': {'f:any': {}}}}]");
}

// Without an operator nothing restarts pods after an edit: they serve what they read before it, and no GPU is lost.
TEST(Audit, AnEditThatNoPodHasReadIsNotLiveAndCostsNoGpu) {
  struct Case {
    const char* what;
    const char* edited;
    int serves;
    int code;
    int unusable;
    const char* reason;
  };
  for (const Case& c :
       {Case{"after the pods started", "2026-01-03T00:00:00Z", 6, 0, 0, "EditNotLive"},
        Case{"before the pods started", "2026-01-01T12:00:00Z", 6, 1, 1, "PreexistingDrift"},
        Case{"after the pods started, and no GPU is left", "2026-01-03T00:00:00Z", 0, 1, 2, "NoneAllocatable"}}) {
    const Outcome found = audit(edited_at(c.edited) + kPlugin + node("n1", 2, c.serves) + pod("plugin", "n1", true));
    EXPECT_EQ(found.code, c.code) << c.what << found.out;
    const Json answer = Json::parse(found.out);
    EXPECT_EQ(answer["gpus"], (Json{{"total", 2}, {"unusable", c.unusable}, {"uncountedNodes", 0}})) << c.what;
    ASSERT_EQ(answer["problems"].size(), 1U) << c.what << found.out;
    EXPECT_EQ(answer["problems"][0]["reason"], c.reason) << c.what;
  }
  const Outcome text =
      audit(edited_at("2026-01-03T00:00:00Z") + kPlugin + node("n1", 2, 6) + pod("plugin", "n1", true), "text");
  EXPECT_THAT(text.out, AllOf(HasSubstr("\n0 errors, 1 warning, 0 infos\n"),
                              HasSubstr("\nwarning EditNotLive: the last edit of ConfigMap gpu-operator/c "
                                        "(2026-01-03T00:00:00Z) is not live on the node: "),
                              HasSubstr("restart the plugin's pods node by node")))
      << text.out;
}

TEST(Audit, ReplicasAreNoGpusOfANodeWhoseGpusAnAnnotationNames) {
  const std::string annotated = R"(---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {nvidia.com/gpu.present: 'true'}, annotations:
  {gpusharing.dev/devices: '[{"name": "Tesla T4", "memoryMiB": 15360}, {"name": "Tesla T4", "memoryMiB": 15360}]'}},
 status: {capacity: {nvidia.com/gpu: '8'}, allocatable: {nvidia.com/gpu: '8'},
          conditions: [{type: Ready, status: 'True'}]}}
)";
  const Outcome found = audit(config_map("timeSlicing") + kPlugin + annotated + pod("plugin", "n1", true));
  EXPECT_EQ(Json::parse(found.out)["gpus"], (Json{{"total", 2}, {"unusable", 0}, {"uncountedNodes", 0}})) << found.out;
}

TEST(Audit, APodThatIsNotReadyIsNamedWithItsLastWords) {
  const Outcome found =
      audit(config_map("timeSlicing") + kPlugin + node("n1", 2, 8) + pod("plugin", "n1", false), "text");
  EXPECT_EQ(found.code, 1) << found.out;
  EXPECT_THAT(found.out,
              HasSubstr("pod gpu-operator/plugin-n1 (plugin) on node n1 is not Ready: CrashLoopBackOff: no NVML"));
  std::string starting = pod("plugin", "n1", false);
  const std::string waits = "{waiting: {reason: CrashLoopBackOff}}";
  starting.replace(starting.find(waits), waits.size(), "{running: {startedAt: '2026-01-02T00:00:01Z'}}");
  EXPECT_THAT(audit(config_map("timeSlicing") + kPlugin + node("n1", 2, 8) + starting, "text").out,
              HasSubstr("pod gpu-operator/plugin-n1 (plugin) on node n1 is Running, not Ready\n"));
}

TEST(Audit, TheProblemThatCostsMostGpusComesFirst) {
  const Outcome found =
      audit(config_map("timeSlicing") + kPlugin + node("a", 2, 0, ", alone: 'true'") + pod("plugin", "a", true) +
            node("big", 8, 10) + pod("plugin", "big", true) + node("big2", 8, 10) + pod("plugin", "big2", true));
  const Json answer = Json::parse(found.out);
  std::vector<std::int64_t> lost;
  for (const auto& problem : answer["problems"])
    if (problem["severity"] == "error") lost.push_back(problem["gpusUnusable"].get<std::int64_t>());
  ASSERT_GE(lost.size(), 2U) << found.out;
  EXPECT_TRUE(std::ranges::is_sorted(lost, std::greater<>())) << found.out;
  EXPECT_EQ(lost.front(), 12);  // Each of the two lacks 22 of 32 shares: five and a half GPUs, rounded up.
}

// Two DaemonSets serve the same two nodes: what is wrong with both of them costs their sixteen GPUs once.
TEST(Audit, AProblemOfSeveralDaemonSetsCountsTheGpusOfANodeOnce) {
  const std::string checksum = "checksum/config: abc";
  const Outcome found =
      audit(config_map("mps") + daemonset("plugin", "nvidia-device-plugin", "", "", checksum) +
            daemonset("mps", "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'", "", checksum) +
            node("n1", 8, 0) + node("n2", 8, 0));
  const Json answer = Json::parse(found.out);
  EXPECT_EQ(answer["gpus"]["unusable"], 16);
  const auto restarter = std::ranges::find(answer["problems"], Json("OtherRestarter"),
                                           [](const Json& problem) { return problem["reason"]; });
  ASSERT_NE(restarter, answer["problems"].end()) << found.out;
  EXPECT_EQ((*restarter)["objects"].size(), 2U);
  EXPECT_EQ((*restarter)["gpusUnusable"], 16);
}

// What a plugin with an invalid profile serves is what it was started with: nobody knows how many replicas of one GPU
// these are.
TEST(Audit, ReplicasOfANodeWithAnInvalidProfileAreNoGpus) {
  const std::string uncounted = R"(---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {nvidia.com/gpu.present: 'true'}},
 status: {capacity: {nvidia.com/gpu: '8'}, allocatable: {nvidia.com/gpu: '8'},
          conditions: [{type: Ready, status: 'True'}]}}
)";
  const std::string valid = config_map("timeSlicing");
  std::string invalid = valid;
  invalid.replace(invalid.find("replicas: 4"), 11, "replicas: x");
  const std::string rest =
      kPlugin + node("n1", 2, 8) + pod("plugin", "n1", true) + uncounted + pod("plugin", "n2", true);
  EXPECT_EQ(Json::parse(audit(valid + rest).out)["gpus"], (Json{{"total", 4}, {"unusable", 0}, {"uncountedNodes", 0}}));
  EXPECT_EQ(Json::parse(audit(invalid + rest).out)["gpus"],
            (Json{{"total", 3}, {"unusable", 0}, {"uncountedNodes", 1}}));
  EXPECT_THAT(audit(invalid + rest, "text").out, AllOf(HasSubstr("2 GPU nodes with at least 3 GPUs: "),
                                                       HasSubstr("the number of GPUs is not known of n2: ")));
}

// The annotation states the GPUs of n1, whatever its profile is.
TEST(Audit, StatedGpusCountAlsoWhereTheProfileIsInvalid) {
  const std::string stated = R"(---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {nvidia.com/gpu.present: 'true'}, annotations:
  {gpusharing.dev/devices: '[{"name": "Tesla T4", "memoryMiB": 15360}, {"name": "Tesla T4", "memoryMiB": 15360}]'}},
 status: {capacity: {nvidia.com/gpu: '8'}, allocatable: {nvidia.com/gpu: '8'},
          conditions: [{type: Ready, status: 'True'}]}}
)";
  std::string invalid = config_map("timeSlicing");
  invalid.replace(invalid.find("replicas: 4"), 11, "replicas: x");
  const std::string rest = kPlugin + stated + pod("plugin", "n1", true);
  for (const std::string& manifests : {invalid + rest, rest})
    EXPECT_EQ(Json::parse(audit(manifests).out)["gpus"], (Json{{"total", 2}, {"unusable", 0}, {"uncountedNodes", 0}}));
}

// A MIG slice that is served as a GPU counts like a card, and the heading says so.
TEST(Audit, MigSlicesAreNamedBesideTheCards) {
  const std::string mig =
      node("m1", 14, 56,
           ", nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb, nvidia.com/mig.strategy: single") +
      pod("plugin", "m1", true);
  const std::string fleet = config_map("timeSlicing") + kPlugin + node("n1", 2, 8) + pod("plugin", "n1", true) + mig;
  EXPECT_THAT(audit(fleet, "text").out, HasSubstr("2 GPU nodes with 16 GPU devices (14 of them MIG slices): "));
  EXPECT_EQ(Json::parse(audit(fleet).out)["gpus"]["migSlices"], 14);
}

// One mistake is one problem, on however many nodes.
TEST(Audit, TheSummaryCountsProblemsAndNotTheirNodes) {
  const std::string dead = config_map("timeSlicing") + kPlugin + node("n1", 8, 0) + node("n2", 8, 0) + node("n3", 8, 0);
  EXPECT_THAT(audit(dead, "text").out, HasSubstr("\n1 error, 0 warnings, 0 infos\n"));
  const Json summary = Json::parse(audit(dead).out)["summary"];
  EXPECT_EQ(summary["problems"], (Json{{"errors", 1}, {"warnings", 0}, {"infos", 0}}));
  EXPECT_EQ(summary["errors"], 3) << "of the findings, one for each node";
}

TEST(Audit, AHealthyClusterIsCleared) {
  const Outcome found =
      audit(config_map("timeSlicing") + kPlugin + node("n1", 2, 8) + pod("plugin", "n1", true), "text");
  EXPECT_EQ(found.code, 0) << found.out;
  EXPECT_THAT(found.out, HasSubstr("1 GPU node with 2 GPUs: "));
}

TEST(Audit, TheHeaderNamesTheProfilesOfMostNodesAndCountsTheOthers) {
  std::string keys;
  std::string nodes = node("n1", 2, 8) + node("n2", 2, 8);
  for (int i = 1; i <= 6; ++i) {
    keys += fmt::format(", k{}: '{{}}'", i);
    nodes += node(fmt::format("m{}", i), 2, 2, fmt::format(", nvidia.com/device-plugin.config: k{}", i));
  }
  const std::string maps =
      "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: gpu-operator}, data: {any: 'sharing: "
      "{timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}'" +
      keys + "}}\n";
  EXPECT_THAT(audit(maps + kPlugin + nodes, "text").out,
              HasSubstr("8 GPU nodes with 16 GPUs: plugin v0.17.1 on 8; profile c/any on 2, c/k1 on 1, c/k2 on 1, c/k3 "
                        "on 1, c/k4 on 1 and 2 more\n"));
}

TEST(Audit, WhatElseRestartsSharesOrMeasuresTheGpusIsReported) {
  const std::string fleet = config_map("timeSlicing", ", annotations: {argocd.argoproj.io/tracking-id: x}") +
                            node("n1", 2, 8) + pod("plugin", "n1", true);
  const auto said = [](const std::string& manifests) {
    std::vector<std::string> out;
    const Json answer = Json::parse(audit(manifests).out);
    for (const auto& problem : answer["problems"]) out.push_back(problem["reason"]);
    return out;
  };
  const std::string name = "nvidia-device-plugin";
  const auto quiet = said(fleet + kPlugin);
  EXPECT_THAT(quiet, Contains("OwnedByGitOps"));
  EXPECT_THAT(quiet, testing::Not(Contains("SecondDevicePlugin")));
  EXPECT_THAT(quiet, testing::Not(Contains("OtherRestarter")));
  const std::string healthy = node("n1", 2, 8) + pod("plugin", "n1", true) + kPlugin;
  for (const char* mark :
       {", labels: {argocd.argoproj.io/instance: x}", ", labels: {kustomize.toolkit.fluxcd.io/name: x}",
        ", labels: {helm.toolkit.fluxcd.io/name: x}", ", annotations: {kustomize.toolkit.fluxcd.io/prune: x}",
        ", managedFields: [{manager: kustomize-controller, fieldsV1: {'f:data': {}}}]"}) {
    EXPECT_THAT(said(config_map("timeSlicing", mark) + healthy), Contains("OwnedByGitOps")) << mark;
  }
  // Helm writes its own version back only when somebody upgrades the release.
  for (const char* mark : {"", ", annotations: {meta.helm.sh/release-name: x}", ", labels: {app: x}"})
    EXPECT_THAT(said(config_map("timeSlicing", mark) + healthy), testing::Not(Contains("OwnedByGitOps"))) << mark;
  const auto slices = [](const std::string& driver) {
    return "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: " + driver +
           ", nodeName: n1, pool: {name: n1}, devices: [{name: gpu-0}]}}\n";
  };
  EXPECT_THAT(said(fleet + kPlugin + slices("gpu.nvidia.com")), Contains("DRABesidePlugin"));
  EXPECT_THAT(said(fleet + kPlugin + slices("nic.example.com")), testing::Not(Contains("DRABesidePlugin")));
  EXPECT_THAT(said(config_map("timeSlicing") + kPlugin + node("n1", 2, 0) + slices("gpu.nvidia.com")),
              testing::Not(Contains("DRABesidePlugin")))
      << "the plugin serves no GPU there";
  for (const char* on_object : {"reloader.stakater.com/auto: 'true'", "configmap.reloader.stakater.com/reload: c"}) {
    EXPECT_THAT(said(fleet + daemonset("plugin", name, "", fmt::format(", annotations: {{{}}}", on_object))),
                Contains("OtherRestarter"))
        << on_object;
  }
  for (const char* on_template : {"rollme: abc", "checksum/config: abc"}) {
    EXPECT_THAT(said(fleet + daemonset("plugin", name, "", "", on_template)), Contains("OtherRestarter"))
        << on_template;
  }
  const auto other = [](const std::string& image) {
    return "---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: o, namespace: m}, spec: {template: {spec: "
           "{containers: "
           "[{name: c, image: '" +
           image + "'}]}}}}\n";
  };
  const std::string mps = config_map("mps") + kPlugin + kMps + node("n1", 2, 8, ", nvidia.com/mps.capable: 'true'") +
                          pod("plugin", "n1", true) + pod("mps", "n1", true);
  EXPECT_THAT(said(mps + other("nvcr.io/nvidia/k8s/dcgm-exporter:4.2")), Contains("MetricsNotAttributed"));
  EXPECT_THAT(said(fleet + kPlugin + other("nvcr.io/nvidia/k8s/dcgm-exporter:4.2")),
              testing::Not(Contains("MetricsNotAttributed")));
  EXPECT_THAT(said(mps + other("ghcr.io/kai-scheduler/gpu-fractioning/fractiond:v0.1")), Contains("SecondMPSDaemon"));
}

}  // namespace
}  // namespace gso::audit_test
