// Preflight: one good cluster, and what one change to its manifests must be told about, before anything is touched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reconcilers/fleet.h"
#include "reconcilers/labels.h"
#include "reconcilers/manifests.h"
#include "reconcilers/node_labels.h"
#include "reconcilers/preflight.h"
#include "tests/reconcilers/fleet_model.h"

namespace gso {
namespace {

using Change = std::pair<std::string, std::string>;  // A piece of the manifests, and what stands there instead.
using Told = std::set<std::string>;                  // "error Node n1 MPSRootMissing"

// A GPU Operator installation with one node, an MPS default, and all that it needs.
constexpr std::string_view kGood = R"(apiVersion: nvidia.com/v1
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

std::string daemonset(std::string_view name, std::string_view container, std::string_view selector,
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

void replace(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string manifests(const std::vector<Change>& changes) {
  std::string text(kGood);
  replace(text, "{plugin}",
          daemonset("plugin", "nvidia-device-plugin", "nvidia.com/gpu.present: 'true'",
                    "{name: MPS_ROOT, value: /run/nvidia/mps}"));
  replace(text, "{gfd}", daemonset("gfd", "gpu-feature-discovery", "gfd: 'on'", ""));
  replace(text, "{mps}", daemonset("mps", "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'", ""));
  for (const std::string_view name : {"plugin", "gfd", "mps"}) {
    replace(text, fmt::format("{}-fallback", name), "empty");
  }
  for (const auto& [from, to] : changes) {
    replace(text, from, to);
  }
  return text;
}

std::string_view name_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "info";
}

Told told(const std::vector<Finding>& findings, bool infos = false) {
  Told out;
  for (const Finding& found : findings) {
    EXPECT_FALSE(found.message.empty());
    if (infos || found.severity != Severity::info) {
      out.insert(
          fmt::format("{} {} {} {}", name_of(found.severity), found.object.kind, found.object.name, found.reason));
    }
  }
  return out;
}

LoadedManifests load(const std::vector<Change>& changes) {
  auto loaded = load_manifests({{"test.yaml", manifests(changes)}}, WallTime{});
  EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
  return loaded ? std::move(*loaded) : LoadedManifests{};
}

const Change kToSlices{"DEFAULT_CONFIG, value: any", "DEFAULT_CONFIG, value: slices"};
const Change kAnnouncedToo{"default: any}}", "default: slices}}"};
const Change kNoDefault{"{name: DEFAULT_CONFIG, value: any}, ", ""};
const Change kNoneAnnounced{", default: any}}", "}}"};
const Change kDefaultOnly{"  slices: \"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\"\n",
                          ""};

Change profile(const std::string& text) {
  return {"any: \"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\"", "any: \"" + text + "\""};
}

// One more variable of the plugin.
Change more_env(const std::string& name, const std::string& value) {
  return {"value: /run/nvidia/mps}", "value: /run/nvidia/mps}, {name: " + name + ", value: " + value + "}"};
}

const std::string kPluginSetting = "error DaemonSet plugin SettingInvalid";

struct Case {
  std::string what;
  std::vector<Change> changes;
  Told expected;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {"a good cluster", {}, {}},
      // --- Which key a node gets.
      {"no default, and the fallback empty", {kNoDefault, kNoneAnnounced}, {}},
      {"no default, and no fallback that resolves",
       {kNoDefault,
        kNoneAnnounced,
        {"FALLBACK_STRATEGIES, value: empty", "FALLBACK_STRATEGIES, value: 'named,single'"}},
       {"error Node n1 DefaultMissing"}},
      {"no default, and one key with the fallback single",
       {kNoDefault, kNoneAnnounced, kDefaultOnly, {"STRATEGIES, value: empty", "STRATEGIES, value: single"}},
       {}},
      {"no default, but a label",
       {kNoDefault,
        kNoneAnnounced,
        {"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"},
        {"STRATEGIES, value: empty", "STRATEGIES, value: named"}},
       {"error Node n1 DefaultMissing"}},
      {"no default, but a label, where the plugin waits for the label",
       {kNoDefault,
        kNoneAnnounced,
        {"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"},
        {"STRATEGIES, value: empty", "STRATEGIES, value: named"},
        {"k8s-device-plugin:v0.20.0", "k8s-device-plugin:v0.18.1"}},
       {}},
      {"a label, and a default that is no key",
       {{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"},
        {"value: any}", "value: typo}"},
        {"default: any}}", "default: typo}}"}},
       {"error Node n1 DefaultKeyNotFound"}},
      {"a label, and a default with an error",
       {{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"},
        profile("sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}")},
       {"warning Node n1 DefaultInvalid"}},
      {"a label that is empty counts as none",
       {{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: ''}\nstatus"}},
       {}},
      {"a default that is no key",
       {{"value: any}", "value: typo}"}, {"default: any}}", "default: typo}}"}},
       {"error Node n1 DefaultKeyNotFound"}},
      {"a label that is no key",
       {{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: gone}\nstatus"}},
       {"error Node n1 KeyNotFound"}},
      {"a label that names a key of binaryData",
       {{"gpu-operator}\ndata:\n", "gpu-operator}\nbinaryData: {packed: dmVyc2lvbjogdjEK}\ndata:\n"},
        {"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: packed}\nstatus"}},
       {}},
      {"an unknown fallback",
       {kNoDefault, kNoneAnnounced, {"STRATEGIES, value: empty", "STRATEGIES, value: first"}},
       {"error Node n1 DefaultMissing"}},
      {"a profile with an error",
       {profile("sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}")},
       {"error Node n1 ConfigInvalid"}},
      // --- The ConfigMap.
      {"a ConfigMap in another namespace",
       {{"name: mps-config, namespace: gpu-operator", "name: mps-config, namespace: default"}},
       {"error DaemonSet plugin ConfigMapInWrongNamespace"}},
      {"no ConfigMap",
       {{"name: mps-config, namespace: gpu-operator", "name: others, namespace: gpu-operator"}},
       {"error DaemonSet plugin ConfigMapMissing"}},
      {"a ConfigMap that is announced, and missing",
       {{"config: {name: mps-config", "config: {name: next-config"}},
       {"error ClusterPolicy cluster-policy ConfigMapMissing"}},
      {"a ConfigMap name with a dot",
       {{"mps-config", "mps.config"}},
       {"error ClusterPolicy cluster-policy ConfigMapNameNoVolume"}},
      {"a ConfigMap name that is too long",
       {{"mps-config", std::string(64, 'a')}},
       {"error ClusterPolicy cluster-policy ConfigMapNameNoVolume"}},
      {"a ConfigMap name that a volume has already",
       {{"mps-config", "mps-root"}},
       {"error ClusterPolicy cluster-policy ConfigMapNameCollides"}},
      {"a key that no label can name",
       {{"  slices:", "  -slices-:"}},
       {"warning ConfigMap mps-config KeyNoLabelValue"}},
      {"a key that is too long",
       {{"  slices:", "  " + std::string(64, 's') + ":"}},
       {"warning ConfigMap mps-config KeyNoLabelValue"}},
      // --- The operands.
      {"no --mps-root", {{"{name: MPS_ROOT, value: /run/nvidia/mps}", ""}}, {"error Node n1 MPSRootMissing"}},
      {"an empty --mps-root", {{"value: /run/nvidia/mps", "value: ''"}}, {"error Node n1 MPSRootMissing"}},
      {"--mps-root as an argument",
       {{"env: [{name: MPS_ROOT, value: /run/nvidia/mps}]", "args: [--mps-root=/run/mps]"}},
       {}},
      {"--mps-root from a ConfigMap",
       {{"{name: MPS_ROOT, value: /run/nvidia/mps}",
         "{name: MPS_ROOT, valueFrom: {configMapKeyRef: {name: a, key: b}}}"}},
       {}},
      {"--mps-root in the profile",
       {{"{name: MPS_ROOT, value: /run/nvidia/mps}", ""},
        profile("{flags: {mpsRoot: /run/mps}, sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}}")},
       {}},
      {"no --mps-root, and no MPS", {{"{name: MPS_ROOT, value: /run/nvidia/mps}", ""}, kToSlices, kAnnouncedToo}, {}},
      {"no MPS daemon", {{"mps-control-daemon-ctr", "something-else"}}, {"error Node n1 MPSDaemonMissing"}},
      {"no GFD: the operator writes mps.capable", {{"gfd: 'on'}\nstatus", "gfd: 'off'}\nstatus"}}, {}},
      {"no NFD",
       {{"nvidia.com/gpu.count: '2', ", ""}, {"nvidia.com/gpu.product: Tesla-T4, ", ""}},
       {"warning Node n1 NFDMissing"}},
      {"no NFD, and no MPS", {{"nvidia.com/gpu.count: '2', ", ""}, kToSlices, kAnnouncedToo}, {}},
      {"mps.capable set by hand", {{"nvidia.com/gpu.count: '2', ", "nvidia.com/mps.capable: 'true', "}}, {}},
      // --- The GPUs.
      {"too many MPS clients for a V100",
       {profile("sharing: {mps: {resources: [{name: gpu, replicas: 17}]}}"),
        {"compute.minor: '5'", "compute.minor: '0'"}},
       {"error Node n1 MPSReplicasAboveMaximum"}},
      {"as many as a T4 takes", {profile("sharing: {mps: {resources: [{name: gpu, replicas: 48}]}}")}, {}},
      {"too many for a V100, of which only the family is known",
       {profile("sharing: {mps: {resources: [{name: gpu, replicas: 17}]}}"),
        {"nvidia.com/gpu.compute.major: '7', nvidia.com/gpu.compute.minor: '5'", "nvidia.com/gpu.family: volta"}},
       {"error Node n1 MPSReplicasAboveMaximum"}},
      {"a MIG profile that the node does not have",
       {profile(
            "{flags: {migStrategy: mixed}, sharing: {timeSlicing: {resources: [{name: mig-1g.5gb, replicas: 2}, {name: "
            "mig-2g.10gb, replicas: 2}]}}}"),
        {"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/mig-1g.5gb.count: '7'}\nstatus"}},
       {"warning Node n1 NameMatchesNothing"}},
      {"unknown GPUs",
       {profile("sharing: {mps: {resources: [{name: gpu, replicas: 48}]}}"),
        {"nvidia.com/gpu.compute.major: '7', nvidia.com/gpu.compute.minor: '5', ", ""}},
       {}},
      {"MPS with MIG",
       {{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/mig.config: all-1g.5gb}\nstatus"}},
       {"error Node n1 MIGEnabled"}},
      {"MPS with migStrategy mixed",
       {{"value: /run/nvidia/mps}", "value: /run/nvidia/mps}, {name: MIG_STRATEGY, value: mixed}"}},
       {"error Node n1 MPSWithMixedMIG"}},
      {"migStrategy mixed in the profile, and another on both DaemonSets",
       {profile("{flags: {migStrategy: mixed}, sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}}"),
        {"v0.20.0', env: [", "v0.20.0', env: [{name: MIG_STRATEGY, value: none}, "}},
       {"warning Node n1 SettingOverridden"}},
      {"a migStrategy that does not exist, and another on both DaemonSets",
       {profile("{flags: {migStrategy: bogus}, sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}}"),
        {"v0.20.0', env: [", "v0.20.0', env: [{name: MIG_STRATEGY, value: single}, "}},
       {"warning Node n1 SettingOverridden"}},
      {"a migStrategy that does not exist, and another on the plugin alone",
       {profile("{flags: {migStrategy: bogus}, sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}}"),
        {"value: /run/nvidia/mps}", "value: /run/nvidia/mps}, {name: MIG_STRATEGY, value: none}"}},
       {"error Node n1 ConfigInvalid"}},
      {"a deviceIDStrategy that does not exist, and another on the plugin",
       {profile(
            "{flags: {plugin: {deviceIDStrategy: bogus}}, sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}}"),
        {"env: [{name: MPS_ROOT", "args: [--device-id-strategy, uuid], env: [{name: MPS_ROOT"}},
       {"warning Node n1 SettingOverridden"}},
      {"two that do not exist, and one on the plugin",
       {profile("{flags: {deviceDiscoveryStrategy: x, plugin: {deviceIDStrategy: x}}}"),
        {"env: [{name: MPS_ROOT", "args: [--device-id-strategy=uuid], env: [{name: MPS_ROOT"}},
       {"error Node n1 ConfigInvalid"}},
      {"IMEX channels that do not exist, and none on the plugin but an empty variable",
       {profile("imex: {channelIDs: [1]}"), more_env("IMEX_CHANNEL_IDS", "''")},
       {"error Node n1 ConfigInvalid"}},
      {"IMEX channels that do not exist, and channel 0 on the plugin",
       {profile("imex: {channelIDs: [1]}"), more_env("IMEX_CHANNEL_IDS", "' 0x0'")},
       {"warning Node n1 SettingOverridden"}},
      {"IMEX channels that do not exist, and channel 0 by flag",
       {profile("imex: {channelIDs: [1]}"),
        {"env: [{name: MPS_ROOT", "args: [-imex-channel-ids=0], env: [{name: MPS_ROOT"}},
       {"warning Node n1 SettingOverridden"}},
      // --- What the DaemonSets say themselves.
      {"a MIG_STRATEGY that does not exist", {more_env("MIG_STRATEGY", "bogus")}, {kPluginSetting}},
      {"an empty MIG_STRATEGY", {more_env("MIG_STRATEGY", "''")}, {kPluginSetting}},
      {"a MIG_STRATEGY from elsewhere",
       {{"value: /run/nvidia/mps}",
         "value: /run/nvidia/mps}, {name: MIG_STRATEGY, valueFrom: {fieldRef: {fieldPath: metadata.name}}}"}},
       {}},
      {"a MIG_STRATEGY by reference", {more_env("MIG_STRATEGY", "$(WANTED)")}, {}},
      {"a flag that does not exist, behind a variable that does",
       {{"env: [{name: MPS_ROOT",
         "args: [--mig-strategy, None], env: [{name: MIG_STRATEGY, value: none}, {name: MPS_ROOT"}},
       {kPluginSetting}},
      {"list strategies with blanks", {more_env("DEVICE_LIST_STRATEGY", "'envvar, cdi-cri'")}, {}},
      {"a list strategy that does not exist", {more_env("DEVICE_LIST_STRATEGY", "'envvar,cdi'")}, {kPluginSetting}},
      {"an empty list strategy", {more_env("DEVICE_LIST_STRATEGY", "''")}, {kPluginSetting}},
      {"list strategies by flags, one of which does not exist",
       {{"env: [{name: MPS_ROOT",
         "args: [--device-list-strategy=bogus, --device-list-strategy=envvar], env: [{name: MPS_ROOT"}},
       {kPluginSetting}},
      {"a device id strategy that does not exist", {more_env("DEVICE_ID_STRATEGY", "UUID")}, {kPluginSetting}},
      {"a discovery strategy that does not exist", {more_env("DEVICE_DISCOVERY_STRATEGY", "vfio")}, {kPluginSetting}},
      {"an allocation policy that does not exist",
       {more_env("SHARED_DEVICES_ALLOCATION_POLICY", "pack")},
       {kPluginSetting}},
      {"an allocation policy before there were any",
       {more_env("SHARED_DEVICES_ALLOCATION_POLICY", "pack"),
        {"k8s-device-plugin:v0.20.0", "k8s-device-plugin:v0.19.3"}},
       {}},
      {"a boolean of a later release",
       {more_env("GDRCOPY_ENABLED", "'yes'"), {"k8s-device-plugin:v0.20.0", "k8s-device-plugin:v0.17.4"}},
       {}},
      {"MPS before there was any",
       {{"mps-control-daemon-ctr", "something-else"}, {"k8s-device-plugin:v0.20.0", "k8s-device-plugin:v0.14.5"}},
       {"error Node n1 MPSNotInRelease"}},
      {"an IMEX channel that does not exist", {more_env("IMEX_CHANNEL_IDS", "'0,1'")}, {kPluginSetting}},
      {"a boolean that is none for Go", {more_env("PASS_DEVICE_SPECS", "'yes'")}, {kPluginSetting}},
      {"a boolean that is one", {more_env("PASS_DEVICE_SPECS", "T")}, {}},
      {"a boolean flag without a value",
       {{"env: [{name: MPS_ROOT", "args: [--pass-device-specs, --fail-on-init-error], env: [{name: MPS_ROOT"}},
       {}},
      {"GFD's own MIG strategy, which beats the common one",
       {{"v0.20.0', env: []",
         "v0.20.0', env: [{name: GFD_MIG_STRATEGY, value: x}, {name: MIG_STRATEGY, value: none}]"}},
       {"error DaemonSet gfd SettingInvalid"}},
      {"GFD takes vfio, and the MPS daemon anything",
       {{"v0.20.0', env: []", "v0.20.0', env: [{name: DEVICE_DISCOVERY_STRATEGY, value: vfio}]"}},
       {}},
      {"an empty MPS_ROOT, which beats the profile's",
       {{"value: /run/nvidia/mps", "value: ''"},
        profile("{flags: {mpsRoot: /run/mps}, sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}}")},
       {"error Node n1 MPSRootMissing"}},
      {"a name that no GPU has",
       {profile("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}, {name: mig-1g.5gb, replicas: 2}]}}")},
       {"warning Node n1 NameMatchesNothing"}},
      {"a product that is too long",
       {{"gpu.product: Tesla-T4", "gpu.product: " + std::string(60, 'x')}},
       {"warning Node n1 LabelDropped"}},
      {"a product that is as long as it may be",
       {{"gpu.product: Tesla-T4", "gpu.product: " + std::string(56, 'x')}},
       {}},
      {"GPUs of two models, written down",
       {{"  labels: {nvidia.com/gpu.present",
         "  annotations: {gpusharing.dev/devices: "
         "'[{\"name\":\"A\",\"computeCapability\":[8,0]},{\"name\":\"B\",\"computeCapability\":[7,0]}]'}\n"
         "  labels: {nvidia.com/gpu.present"},
        profile("sharing: {mps: {resources: [{name: gpu, replicas: 20}]}}")},
       {"error Node n1 MPSReplicasAboveMaximum", "warning Node n1 LabelsUnreliable"}},
  };
  return kCases;
}

TEST(Preflight, SaysWhatIsWrongWithTheSetupBeforeAnythingIsTouched) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.what);
    const LoadedManifests loaded = load(c.changes);
    EXPECT_EQ(told(check_cluster(loaded.world, {})), c.expected);
  }
}

// The ConfigMap of one DaemonSet alone.
std::vector<Change> other_config_map(std::string_view of, const std::string& name, const std::string& container) {
  std::string own = daemonset(of, container, of == "gfd" ? "gfd: 'on'" : "nvidia.com/mps.capable: 'true'", "");
  replace(own, fmt::format("{}-fallback", of), "empty");
  std::string changed = own;
  replace(changed, "configMap: {name: mps-config}", "configMap: {name: " + name + "}");
  return {{own, changed}};
}

TEST(Preflight, GfdAndMpsDaemonMustLoadWhatThePluginLoads) {
  EXPECT_EQ(told(check_cluster(load(other_config_map("gfd", "old-config", "gpu-feature-discovery")).world, {})),
            (Told{"warning Node n1 GFDOtherConfig", "error Node n1 MPSDaemonHasNoPods"}));
  EXPECT_EQ(told(check_cluster(load(other_config_map("mps", "old-config", "mps-control-daemon-ctr")).world, {})),
            Told{"error Node n1 MPSOtherConfig"});
  // None at all.
  auto bare = other_config_map("gfd", "x", "gpu-feature-discovery");
  bare[0].second = bare[0].first;
  replace(bare[0].second, "mountPath: /available-configs", "mountPath: /elsewhere");
  EXPECT_EQ(told(check_cluster(load(bare).world, {})), Told{"warning Node n1 GFDOtherConfig"});
  // Another default.
  auto differs = bare;
  differs[0].second = differs[0].first;
  replace(differs[0].second, "DEFAULT_CONFIG, value: any", "DEFAULT_CONFIG, value: slices");
  EXPECT_EQ(told(check_cluster(load(differs).world, {})), Told{"warning Node n1 GFDOtherConfig"});
}

// A GFD that loads something else writes the labels all the same: they are not ours, and prove nothing.
TEST(Preflight, LabelsBelongToAGfdThatIsNotOfTheNodesSet) {
  auto other_owner = other_config_map("gfd", "mps-config", "gpu-feature-discovery");
  other_owner[0].second = other_owner[0].first;
  replace(other_owner[0].second, "kind: ClusterPolicy", "kind: Release");
  const std::vector<std::tuple<std::string, std::vector<Change>, Told>> table{
      {"another ConfigMap",
       other_config_map("gfd", "old-config", "gpu-feature-discovery"),
       {"warning Node n1 GFDOtherConfig", "error Node n1 MPSDaemonHasNoPods"}},
      {"another owner, the same ConfigMap", other_owner, {}}};
  for (const auto& [what, changes, expected] : table) {
    SCOPED_TRACE(what);
    const LoadedManifests loaded = load(changes);
    EXPECT_EQ(told(check_cluster(loaded.world, {})), expected);
    FleetIndex index;
    index.note_everything_changed();
    index.refresh(loaded.world, {});
    const NodeAssessment* node = index.assessment("n1");
    ASSERT_NE(node, nullptr);
    EXPECT_FALSE(node->gfd);
    EXPECT_TRUE(node->gfd_elsewhere);
    EXPECT_FALSE(labels_are_ours(node->has_labeller(), {}));
  }
}

TEST(Preflight, WithoutGfdTheMpsDaemonHasPodsOnlyWhereSomebodyWritesTheLabel) {
  const LoadedManifests loaded = load({{"gfd: 'on'}\nstatus", "gfd: 'off'}\nstatus"}});
  PlannerSettings settings;
  EXPECT_TRUE(told(check_cluster(loaded.world, settings), true).contains("info Node n1 MPSDaemonHasNoPods"));
  settings.label_mode = PlannerSettings::LabelMode::verify;
  EXPECT_EQ(told(check_cluster(loaded.world, settings)), Told{"error Node n1 MPSDaemonHasNoPods"});
  // Neither can we where Node Feature Discovery owns the label.
  const LoadedManifests owned = load({{"gfd: 'on'}\nstatus", "gfd: 'off', nvidia.com/mps.capable: 'false'}\nstatus"},
                                      {"  labels: {nvidia.com/gpu.present",
                                       "  annotations: {nfd.node.kubernetes.io/feature-labels: "
                                       "nvidia.com/mps.capable}\n  labels: {nvidia.com/gpu.present"}});
  EXPECT_EQ(told(check_cluster(owned.world, {})), Told{"error Node n1 MPSDaemonHasNoPods"});
}

TEST(Preflight, NamesTheDefectsOfTheRelease) {
  const Change by_label{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"};
  const Change default_by_label{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: any}\nstatus"};
  const Change mps_by_label{"  slices: \"sharing: {timeSlicing", "  slices: \"sharing: {mps"};
  const std::vector<std::tuple<std::string, std::vector<Change>, Told>> table{
      {"v0.18.1", {by_label}, {}},
      {"v0.18.2", {by_label}, {"info Node n1 DefaultFirstStart"}},
      {"latest", {by_label}, {"info Node n1 DefaultFirstStart"}},
      {"v0.18.1", {by_label, mps_by_label}, {"info Node n1 MPSSidecarPanics"}},
      {"v0.18.2", {by_label, mps_by_label}, {"info Node n1 DefaultFirstStart", "error Node n1 MPSByLabelUnsupported"}},
      {"v0.20.0", {by_label, mps_by_label}, {"info Node n1 DefaultFirstStart", "error Node n1 MPSByLabelUnsupported"}},
      {"latest", {by_label, mps_by_label}, {"info Node n1 DefaultFirstStart", "error Node n1 MPSByLabelUnsupported"}},
      {"v0.20.0", {default_by_label}, {"info Node n1 DefaultFirstStart", "info Node n1 MPSSidecarCannotSignal"}},
      {"v0.17.4", {}, {"info Node n1 MPSSidecarCannotSignal"}},
      {"v0.19.3", {}, {"info Node n1 MPSSidecarPanics"}},
      {"v0.20.0", {}, {"info Node n1 MPSSidecarCannotSignal"}},
      {"v0.17.4",
       {profile("sharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 4}]}}")},
       {"info Node n1 MPSSidecarCannotSignal", "warning Node n1 FailRequestsForced"}}};
  for (const auto& [version, changes, expected] : table) {
    SCOPED_TRACE(version);
    std::vector<Change> all = changes;
    all.emplace_back("k8s-device-plugin:v0.20.0", "k8s-device-plugin:" + version);
    EXPECT_EQ(told(check_cluster(load(all).world, {}), true), expected);
  }
}

// The plan tells the same, on every node up to a point, and for all others together.
TEST(Preflight, ThePlanTellsNodeByNodeAndSumsUpWhatConcernsMany) {
  test::FleetSpec spec;
  spec.profiles = {
      {"any",
       "version: v1\nsharing: {timeSlicing: {resources: [{name: other, replicas: 4}, {name: gpu, replicas: 2}]}}"}};
  spec.nodes = test::alike_nodes(30);
  test::FleetModel fleet(spec);
  std::size_t nodes = 0;
  std::string rest;
  for (const Finding& found : fleet.plan().findings) {
    if (found.reason == "NameMatchesNothing") {
      nodes += found.object.kind == "Node" ? 1 : 0;
      rest = found.object.kind == "DaemonSet" ? found.message : rest;
    }
  }
  EXPECT_EQ(nodes, 20u);
  EXPECT_TRUE(rest.starts_with("on 10 further nodes (n21, n22, n23, n24, n25, …): ")) << rest;
}

std::vector<std::string> errors_of_plan(const LoadedManifests& loaded) {
  FleetIndex index;
  index.note_everything_changed();
  const std::map<std::string, WallTime> observed;
  const PlannerSettings settings;
  std::vector<std::string> out;
  for (const Finding& f :
       plan_fleet(Snapshot{loaded.world, WallTime{}, observed, loaded.consumers, settings}, index).findings) {
    if (f.severity == Severity::error) out.push_back(fmt::format("{} {}: {}", f.object.kind, f.reason, f.message));
  }
  return out;
}

TEST(Preflight, AMissingConfigMapThatIsAnnouncedIsToldOnce) {
  const std::vector<std::string> expected{
      "ClusterPolicy ConfigMapMissing: ConfigMap gpu-operator/next-config does not exist: the pods that mount it never "
      "start"};
  const Change announced{"config: {name: mps-config", "config: {name: next-config"};
  EXPECT_EQ(errors_of_plan(load({announced})), expected);
  EXPECT_EQ(errors_of_plan(load(
                {announced, {"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"}})),
            expected);
}

TEST(Preflight, AWrongSettingOfADaemonSetIsNamedWithWhatWouldBeRight) {
  const std::vector<std::string> expected{
      "DaemonSet SettingInvalid: DaemonSet gpu-operator/plugin: --device-list-strategy is \"envvars\", and the plugin "
      "exits "
      "at start on every node, whatever the profile says; did you mean \"envvar\"?"};
  EXPECT_EQ(errors_of_plan(
                load({{"env: [{name: MPS_ROOT", "args: [--device-list-strategy=envvars], env: [{name: MPS_ROOT"}})),
            expected);
}

TEST(Preflight, NoNodeIsRestartedIntoAPluginThatExitsOnItsOwnSettings) {
  for (const std::string strategy : {"none", "bogus"}) {
    SCOPED_TRACE(strategy);
    test::FleetSpec spec;
    spec.nodes = test::alike_nodes(1);
    spec.mig_strategy = strategy;
    test::FleetModel fleet(spec);
    fleet.settle();
    fleet.forget_counts();
    fleet.edit("any", "mps-8");
    fleet.settle();
    const std::string& name = spec.nodes.front().name;
    EXPECT_EQ(fleet.restarts(name, "plugin") > 0, strategy == "none");
    const NodeAssessment* node = fleet.index.assessment(name);
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->reason == kProviderUnsupported, strategy == "bogus") << node->message;
  }
}

TEST(Preflight, APolicysKeyMustBeInTheConfigMap) {
  const auto with = [](const std::string& spec) {
    return Change{"apiVersion: v1\nkind: Node",
                  "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: "
                  "{name: p}\nspec: {" +
                      spec + "}\n---\napiVersion: v1\nkind: Node"};
  };
  const Told wrong{"error SharingPolicy p ConfigInvalid"};
  EXPECT_EQ(told(check_cluster(load({with("profile: {configMapKey: slices}")}).world, {})), Told{});
  EXPECT_EQ(told(check_cluster(load({with("profile: {configMapKey: typo}")}).world, {})), wrong);
  // Of nodes that are not there yet.
  EXPECT_EQ(
      told(check_cluster(load({with("nodeSelector: {matchLabels: {a: b}}, profile: {configMapKey: typo}")}).world, {})),
      wrong);
  EXPECT_EQ(told(check_cluster(load({with("mode: Observe, profile: {configMapKey: typo}")}).world, {})),
            Told{"warning SharingPolicy p ConfigInvalid"});
}

TEST(Preflight, AProfileThatThePluginExitsOnForLackOfMpsRootIsNeverRolledOut) {
  LoadedManifests loaded = load({{"{name: MPS_ROOT, value: /run/nvidia/mps}", ""}});
  FleetIndex index;
  index.note_everything_changed();
  const std::map<std::string, WallTime> observed;
  const PlannerSettings settings;
  const Plan plan = plan_fleet(Snapshot{loaded.world, WallTime{}, observed, loaded.consumers, settings}, index);
  EXPECT_TRUE(told(plan.findings).contains("error Node n1 MPSRootMissing"));
}

// Without nvidia.com/mps.capable the daemon has no pod, and without the daemon the plugin serves nothing.
TEST(Preflight, TheLabelForTheMpsDaemonIsWrittenBeforeTheNodeShowsItsProfile) {
  struct Row {
    std::string what;
    Strategy strategy;
    bool gfd;
    std::string owned;
    PlannerSettings::LabelMode mode;
    bool written;
  };
  using Mode = PlannerSettings::LabelMode;
  const std::vector<Row> table{
      {"a bare node", Strategy::mps, false, "", Mode::automatic, true},
      {"no MPS", Strategy::time_slicing, false, "", Mode::automatic, false},
      {"GFD", Strategy::mps, true, "", Mode::automatic, false},
      {"NFD owns it", Strategy::mps, false, "nvidia.com/mps.capable", Mode::automatic, false},
      {"NFD owns another", Strategy::mps, false, "nvidia.com/gpu.count", Mode::automatic, true},
      {"verify", Strategy::mps, false, "", Mode::verify, false}};
  for (const Row& row : table) {
    SCOPED_TRACE(row.what);
    Node node;
    if (!row.owned.empty()) {
      node.meta.annotations.set("nfd.node.kubernetes.io/feature-labels", row.owned);
    }
    NodeExpectation expectation;
    expectation.strategy = row.strategy;
    NodeAssessment assessment;
    assessment.situation = Situation::current;
    assessment.gfd = row.gfd;
    assessment.expectation = std::make_shared<const NodeExpectation>(expectation);
    PlannerSettings settings;
    settings.label_mode = row.mode;
    const LabelChange change = label_change(node, assessment, settings);
    const std::map<std::string, std::string> expected{{"nvidia.com/mps.capable", "true"}};
    EXPECT_EQ(change.set, row.written ? expected : (std::map<std::string, std::string>{}));
  }
}

// The first plan of a fleet has no record yet.
TEST(Preflight, TheFirstPlanTellsWhatIsWrongWithAPolicyToo) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"gone", "error SharingPolicy p ConfigInvalid"},
      {"mps-too", "error Node n1 MPSByLabelUnsupported"},
  };
  for (const auto& [key, expected] : table) {
    SCOPED_TRACE(key);
    const LoadedManifests loaded =
        load({{"  slices:", "  mps-too: \"sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\"\n  slices:"},
              {"apiVersion: v1\nkind: Node",
               "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec: {nodeSelector: "
               "{matchLabels: {nvidia.com/gpu.present: 'true'}}, profile: {configMapKey: " +
                   key + "}}\n---\napiVersion: v1\nkind: Node"}});
    FleetIndex index;
    index.note_everything_changed();
    const std::map<std::string, WallTime> observed;
    const PlannerSettings settings;
    const Plan plan = plan_fleet(Snapshot{loaded.world, WallTime{}, observed, loaded.consumers, settings}, index);
    const Told findings = told(plan.findings);
    EXPECT_TRUE(findings.contains(expected)) << ::testing::PrintToString(findings);
  }
}

}  // namespace
}  // namespace gso
