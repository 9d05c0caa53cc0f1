// A node whose GPUs a device plugin of a cloud provider serves: audit and explain NODE say the same of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/audit.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::cloud_plugin_test {
namespace {

std::string node(int allocatable, const std::string& accelerator = "cloud.google.com/gke-accelerator") {
  return fmt::format(R"(
apiVersion: v1
kind: Node
metadata: {{name: gpu-1, labels: {{{1}: nvidia-l4, nvidia.com/gpu.count: "2"}}}}
spec: {{taints: [{{key: nvidia.com/gpu, value: present, effect: NoSchedule}}]}}
status: {{capacity: {{nvidia.com/gpu: "{0}"}}, allocatable: {{nvidia.com/gpu: "{0}"}}, conditions: [{{type: Ready, status: "True"}}]}}
)",
                     allocatable, accelerator);
}

// As GKE installs it.
std::string daemonset(const std::string& container, const std::string& image) {
  return fmt::format(R"(---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: nvidia-gpu-device-plugin-small-cos, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: nvidia-gpu-device-plugin}}}}
  template:
    metadata: {{labels: {{k8s-app: nvidia-gpu-device-plugin}}}}
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{{matchExpressions: [{{key: cloud.google.com/gke-accelerator, operator: Exists}}]}}]
      tolerations: [{{operator: Exists, effect: NoExecute}}, {{operator: Exists, effect: NoSchedule}}]
      containers: [{{name: {0}, image: "{1}"}}]
)",
                     container, image);
}

struct Row {
  const char* name;
  std::string manifests;
  Severity severity;
  const char* message;   // In both.
  const char* in_audit;  // What audit adds.
  const char* next;
};

TEST(CloudPlugin, AuditAndExplainSayWhoServesTheNode) {
  constexpr const char* kName = "nvidia-gpu-device-plugin";
  constexpr const char* kImage = "gke.gcr.io/nvidia-gpu-device-plugin@sha256:8d4d";
  constexpr const char* kNothing = "no device plugin DaemonSet selects the node";
  constexpr const char* kServes =
      "the cloud provider's device plugin (DaemonSet kube-system/nvidia-gpu-device-plugin-small-cos) serves the GPUs "
      "of this node: its profile cannot be changed by the operator";
  constexpr const char* kNone =
      "the cloud provider's device plugin (DaemonSet kube-system/nvidia-gpu-device-plugin-small-cos) selects the node, "
      "but no GPU is allocatable";
  constexpr const char* kLook = "kubectl get daemonsets --all-namespaces -o wide";
  constexpr const char* kPods = "kubectl get pods --namespace kube-system --field-selector spec.nodeName=gpu-1";
  const std::vector<Row> rows{
      {"it serves", node(2) + daemonset(kName, kImage), Severity::warning, kServes, "", ""},
      {"it serves nothing", node(0) + daemonset(kName, kImage), Severity::error, kNone, ": no pod can get its GPUs",
       kPods},
      {"known by its container", node(0) + daemonset(kName, "mirror.local/plugin:1"), Severity::error, kNone,
       ": no pod can get its GPUs", kPods},
      {"known by its image", node(0) + daemonset("plugin", kImage), Severity::error, kNone, ": no pod can get its GPUs",
       kPods},
      {"it is for other nodes", node(0, "example.com/gpu") + daemonset(kName, kImage), Severity::error, kNothing,
       ": no pod can get its GPUs", kLook},
      {"nothing that a DaemonSet shows serves", node(2), Severity::warning,
       "GPUs are allocatable, and no device plugin DaemonSet selects the node: a plugin that the cloud provider "
       "manages, or a static pod, serves them, and its profile cannot be changed by the operator",
       "", kLook},
      {"nothing serves", node(0), Severity::error, kNothing, ": no pod can get its GPUs", kLook},
  };
  for (const Row& row : rows) {
    Explained explained(row.manifests);
    const Audit out = audit(explained.snapshot(), explained.index);
    std::optional<Finding> found;
    for (const Finding& finding : out.findings)
      if (finding.why.code == "NoPlugin") found = finding;
    ASSERT_TRUE(found.has_value()) << row.name;
    EXPECT_EQ(found->severity, row.severity) << row.name;
    EXPECT_EQ(found->why.message, std::string(row.message) + row.in_audit) << row.name;
    const NodeExplanation shown = explained.node("gpu-1");
    EXPECT_EQ(shown.shown.state, "NoPlugin") << row.name;
    EXPECT_EQ(shown.shown.message, row.message) << row.name;
    EXPECT_EQ(shown.next.text(), row.next) << row.name;
  }
}

}  // namespace
}  // namespace gso::cloud_plugin_test
