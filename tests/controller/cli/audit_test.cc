// What else restarts, shares or measures the GPUs, as `audit` finds it; tests/transcripts has its texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "controller/cli/cli.h"

namespace gso::audit_test {
namespace {

using testing::Contains;
using Json = nlohmann::json;

Json audit(const std::string& manifests) {
  std::istringstream in(manifests);
  std::ostringstream out;
  std::ostringstream err;
  (void)run_cli({"audit", "-f", "-", "-o", "json"}, in, out, err);
  EXPECT_EQ(err.str(), "");
  return Json::parse(out.str());
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

std::string pod(const std::string& of, const std::string& node) {
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {0}-{1}, namespace: gpu-operator, labels: {{app: {0}}}, "
      "creationTimestamp: '2026-01-02T00:00:00Z', ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: {0}, "
      "uid: u-{0}, controller: true}}]}}, spec: {{nodeName: {1}}}, status: {{phase: Running, conditions: [{{type: "
      "Ready, "
      "status: 'True'}}], containerStatuses: [{{name: main, ready: true, state: {{running: {{startedAt: "
      "'2026-01-02T00:00:01Z'}}}}}}]}}}}\n",
      of, node);
}

const std::string kPlugin = daemonset("plugin", "nvidia-device-plugin", "");
const std::string kMps = daemonset("mps", "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'");

TEST(Audit, WhatElseRestartsSharesOrMeasuresTheGpusIsReported) {
  const std::string fleet = config_map("timeSlicing", ", annotations: {argocd.argoproj.io/tracking-id: x}") +
                            node("n1", 2, 8) + pod("plugin", "n1");
  const auto said = [](const std::string& manifests) {
    std::vector<std::string> out;
    const Json answer = audit(manifests);
    for (const auto& problem : answer["problems"]) out.push_back(problem["reason"]);
    return out;
  };
  const std::string name = "nvidia-device-plugin";
  const auto quiet = said(fleet + kPlugin);
  EXPECT_THAT(quiet, Contains("OwnedByGitOps"));
  EXPECT_THAT(quiet, testing::Not(Contains("SecondDevicePlugin")));
  EXPECT_THAT(quiet, testing::Not(Contains("OtherRestarter")));
  const std::string healthy = node("n1", 2, 8) + pod("plugin", "n1") + kPlugin;
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
                          pod("plugin", "n1") + pod("mps", "n1");
  EXPECT_THAT(said(mps + other("nvcr.io/nvidia/k8s/dcgm-exporter:4.2")), Contains("MetricsNotAttributed"));
  EXPECT_THAT(said(fleet + kPlugin + other("nvcr.io/nvidia/k8s/dcgm-exporter:4.2")),
              testing::Not(Contains("MetricsNotAttributed")));
  EXPECT_THAT(said(mps + other("ghcr.io/kai-scheduler/gpu-fractioning/fractiond:v0.1")), Contains("SecondMPSDaemon"));
}

}  // namespace
}  // namespace gso::audit_test
