// A GPU Operator installation with one node, as manifests, and parts of it that tests replace.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/reasons/reason.h"

namespace gso::preflight_test {

using Change = std::pair<std::string, std::string>;  // A part of the manifests, and its replacement.
using Told = std::set<std::string>;                  // "error Node n1 MPSRootMissing"

// A GPU Operator installation with one node, an MPS default, and all that it needs.
inline constexpr std::string_view kGood = R"(apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {devicePlugin: {config: {name: mps-config, default: any}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mps-config, namespace: gpu-operator}
data:
  any: "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
  slices: "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
---
{plugin}
---
{gfd}
---
{mps}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {nvidia.com/gpu.present: 'true', nvidia.com/gpu.count: '2', nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.compute.major: '7', nvidia.com/gpu.compute.minor: '5', gfd: 'on'}
status: {conditions: [{type: Ready, status: 'True'}], capacity: {nvidia.com/gpu: '2'}, allocatable: {nvidia.com/gpu: '2'}}
)";

inline std::string daemonset(std::string_view name, std::string_view container, std::string_view selector,
                             std::string_view environment) {
  return fmt::format(R"(apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {0}
  namespace: gpu-operator
  ownerReferences: [{{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: cluster-policy, uid: ClusterPolicy//cluster-policy, controller: true}}]
spec:
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    spec:
      nodeSelector: {{{2}}}
      containers:
      - {{name: {1}, image: 'nvcr.io/nvidia/k8s-device-plugin:v0.20.0', env: [{3}]}}
      - name: config-manager
        env: [{{name: CONFIG_FILE_SRCDIR, value: /available-configs}}, {{name: DEFAULT_CONFIG, value: any}}, {{name: FALLBACK_STRATEGIES, value: {0}-fallback}}, {{name: NODE_LABEL, value: nvidia.com/device-plugin.config}}]
        volumeMounts: [{{name: mps-config, mountPath: /available-configs}}]
      volumes: [{{name: mps-config, configMap: {{name: mps-config}}}}])",
                     name, container, selector, environment);
}

inline void replace(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

inline std::string manifests(const std::vector<Change>& changes) {
  std::string text(kGood);
  replace(text, "{plugin}",
          daemonset("plugin", "nvidia-device-plugin", "nvidia.com/gpu.present: 'true'",
                    "{name: MPS_ROOT, value: /run/nvidia/mps}"));
  replace(text, "{gfd}", daemonset("gfd", "gpu-feature-discovery", "gfd: 'on'", ""));
  replace(text, "{mps}", daemonset("mps", "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'", ""));
  for (const std::string_view name : {"plugin", "gfd", "mps"}) replace(text, fmt::format("{}-fallback", name), "empty");
  for (const auto& [from, to] : changes) replace(text, from, to);
  return text;
}

inline std::string_view name_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "info";
}

inline Told told(const std::vector<Finding>& findings, bool infos = false) {
  Told out;
  for (const Finding& found : findings) {
    EXPECT_FALSE(found.why.message.empty());
    if (infos || found.severity != Severity::info) {
      out.insert(
          fmt::format("{} {} {} {}", name_of(found.severity), found.object.kind, found.object.name, found.why.code));
    }
  }
  return out;
}

inline LoadedManifests load(const std::vector<Change>& changes) {
  auto loaded = load_manifests({{"test.yaml", manifests(changes)}}, WallTime{});
  EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
  return loaded ? std::move(*loaded) : LoadedManifests{};
}

inline const Change kToSlices{"DEFAULT_CONFIG, value: any", "DEFAULT_CONFIG, value: slices"};
inline const Change kAnnouncedToo{"default: any}}", "default: slices}}"};
inline const Change kNoDefault{"{name: DEFAULT_CONFIG, value: any}, ", ""};
inline const Change kNoneAnnounced{", default: any}}", "}}"};
inline const Change kDefaultOnly{
    "  slices: \"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\"\n", ""};

inline Change profile(const std::string& text) {
  return {"any: \"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\"", "any: \"" + text + "\""};
}

// One more label of the node.
inline Change label(const std::string& text) {
  return {"gfd: 'on'}\nstatus", "gfd: 'on', " + text + "}\nstatus"};
}
inline const Change kLabelled = label("nvidia.com/device-plugin.config: slices");

// All images of another release.
inline Change release(const std::string& version) {
  return {"k8s-device-plugin:v0.20.0", "k8s-device-plugin:" + version};
}

// Arguments of the plugin.
inline Change args(const std::string& text) {
  return {"env: [{name: MPS_ROOT", "args: [" + text + "], env: [{name: MPS_ROOT"};
}

// One more object before the Node.
inline Change with_object(const std::string& text) {
  return {"apiVersion: v1\nkind: Node", text + "\n---\napiVersion: v1\nkind: Node"};
}

// A default key that is no key, here and in the ClusterPolicy.
inline const Change kTypo{"value: any}", "value: typo}"};
inline const Change kAnnouncedTypo{"default: any}}", "default: typo}}"};
inline const Change kNoRoot{"{name: MPS_ROOT, value: /run/nvidia/mps}", ""};

// One more variable of the plugin.
inline Change more_env(const std::string& name, const std::string& value) {
  return {"value: /run/nvidia/mps}", "value: /run/nvidia/mps}, {name: " + name + ", value: " + value + "}"};
}

inline const std::string kPluginSetting = "error DaemonSet plugin SettingInvalid";

}  // namespace gso::preflight_test
