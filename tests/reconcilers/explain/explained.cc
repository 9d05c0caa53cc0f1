#include "tests/reconcilers/explain/explained.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/registry.h"

namespace gso {

std::string cluster(const std::string& profile, const std::string& node_labels, const std::string& allocatable,
                    const std::string& node_spec) {
  return fmt::format(R"(
apiVersion: v1
kind: Node
metadata: {{name: gpu-1, labels: {{nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2"{}}}}}
spec: {}
status: {{capacity: {{{}}}, allocatable: {{{}}}, conditions: [{{type: Ready, status: "True"}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: plugin-config, namespace: gpu-operator}}
data:
  any: |
    version: v1
{}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: plugin, namespace: gpu-operator, uid: ds-plugin}}
spec:
  selector: {{matchLabels: {{app: plugin}}}}
  template:
    metadata: {{labels: {{app: plugin}}}}
    spec:
      containers:
      - {{name: nvidia-device-plugin, image: "nvcr.io/nvidia/k8s-device-plugin:v0.17.1", env: [{{name: MPS_ROOT, value: /run/nvidia/mps}}]}}
      - name: config-manager
        image: nvcr.io/nvidia/k8s-device-plugin:v0.17.1
        command: [config-manager]
        env: [{{name: DEFAULT_CONFIG, value: any}}, {{name: CONFIG_FILE_SRCDIR, value: /available-configs}}]
        volumeMounts: [{{name: config, mountPath: /available-configs}}]
      volumes: [{{name: config, configMap: {{name: plugin-config}}}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: plugin-1
  namespace: gpu-operator
  creationTimestamp: "2026-01-02T00:00:00Z"
  labels: {{app: plugin}}
  ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: plugin, uid: ds-plugin, controller: true}}]
spec: {{nodeName: gpu-1}}
status: {{phase: Running, conditions: [{{type: Ready, status: "True"}}], containerStatuses: [{{name: nvidia-device-plugin, ready: true, state: {{running: {{startedAt: "2026-01-02T00:00:01Z"}}}}}}]}}
)",
                     node_labels, node_spec, allocatable, allocatable, profile);
}

Explained::Explained(const std::string& manifests) {
  settings.kai.explain_all = true;
  auto loaded = load_manifests({{"cluster.yaml", manifests}}, now);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
  world = std::move(loaded->world);
  consumers = std::move(loaded->consumers);
  (void)assume_baseline(world, index, settings, now);
}

NodeExplanation Explained::node(const std::string& name) {
  const Snapshot s = snapshot();
  const Plan plan = plan_all(s, index, {.synced = everything_synced});
  return explain_node(s, index, all_findings(s, index, plan), name).value_or(NodeExplanation());
}

PodExplanation Explained::pod(const std::string& json) {
  const Snapshot s = snapshot();
  auto out = explain_pod(s, index, json);
  EXPECT_TRUE(out.has_value()) << out.error().message;
  return out.value_or(PodExplanation());
}

}  // namespace gso
