// Two device plugins that mount one ConfigMap (the GPU Operator's, and a standalone one for other nodes) belong to one
// rollout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso::shared_configmap_test {
namespace {

std::string daemonset(const std::string& name, const std::string& pool, const std::string& owner) {
  return fmt::format(R"(---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {0}, namespace: gpu-operator, uid: uid-{0}{2}}}
spec:
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}}}}}
    spec:
      nodeSelector: {{pool: {1}}}
      containers:
      - {{name: nvidia-device-plugin, image: "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}}
      - name: config-manager
        image: nvcr.io/nvidia/k8s-device-plugin:v0.17.1
        command: [config-manager]
        env: [{{name: DEFAULT_CONFIG, value: any}}, {{name: CONFIG_FILE_SRCDIR, value: /available-configs}}]
        volumeMounts: [{{name: config, mountPath: /available-configs}}]
      volumes: [{{name: config, configMap: {{name: mps-config}}}}]
---
apiVersion: v1
kind: Node
metadata: {{name: in-{1}, labels: {{nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2", pool: {1}}}}}
status: {{capacity: {{nvidia.com/gpu: "2"}}, allocatable: {{nvidia.com/gpu: "2"}}, conditions: [{{type: Ready, status: "True"}}]}}
)",
                     name, pool, owner);
}

constexpr const char* kConfigMap = R"(---
apiVersion: v1
kind: ConfigMap
metadata: {name: mps-config, namespace: gpu-operator}
data: {any: "version: v1"}
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy, uid: uid-policy}
spec: {devicePlugin: {config: {name: mps-config, default: any}}}
)";

TEST(SharedConfigMap, SettlesOnceAndNotAnewForEachPluginInTurn) {
  const std::string owner =
      ", ownerReferences: [{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: cluster-policy, uid: uid-policy, "
      "controller: true}]";
  // `aaa` is first by name, and is not the installation to which a ClusterPolicy can announce something.
  const std::string manifests =
      kConfigMap + daemonset("nvidia-device-plugin-daemonset", "main", owner) + daemonset("aaa-plugin", "edge", "");
  const WallTime now = *k8s::parse_rfc3339("2026-01-03T00:00:00Z");
  auto loaded = load_manifests({{"cluster.yaml", manifests}}, now);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  FleetIndex index;
  PlannerSettings settings;
  index.refresh(loaded->world, settings);
  const FleetIndex::Impl& all = index.impl();
  ASSERT_EQ(all.discovery.installations.size(), 2U);
  ASSERT_EQ(all.profile_rollouts.size(), 1U);
  EXPECT_EQ(all.signatures[0], all.signatures[1]);
  const std::size_t speaker = all.profile_rollouts.begin()->second.installation;
  EXPECT_EQ(all.discovery.installations[speaker].provider, Provider::gpu_operator);
  // The node that is counted last makes no difference.
  for (const char* changed : {"in-edge", "in-main", "in-edge"}) {
    index.note_node_changed(changed);
    index.refresh(loaded->world, settings);
    EXPECT_EQ(all.profile_rollouts.begin()->second.installation, speaker) << changed;
  }
}

}  // namespace
}  // namespace gso::shared_configmap_test
