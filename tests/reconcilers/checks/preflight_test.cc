// Preflight: one good cluster, and the findings for one change of its manifests, before anything is changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"
#include "tests/reconcilers/checks/preflight_manifests.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::preflight_test {
namespace {

using namespace preflight_test;

Told told_of(const std::vector<Change>& changes, const PlannerSettings& settings = {}, bool infos = false) {
  return told(check_cluster(load(changes).world, settings), infos);
}

std::string mps(int replicas, const std::string& flags = "") {
  return fmt::format("{{flags: {{{}}}, sharing: {{mps: {{resources: [{{name: gpu, replicas: {}}}]}}}}}}", flags,
                     replicas);
}

TEST(Preflight, SaysWhatIsWrongWithTheSetupBeforeAnythingIsTouched) {
  const std::pair<Told, std::vector<std::pair<std::string, std::vector<Change>>>> table[] = {
      {{},
       {{"a good cluster", {}},
        {"no default, and the fallback empty", {kNoDefault, kNoneAnnounced}},
        {"no default, and one key with the fallback single",
         {kNoDefault, kNoneAnnounced, kDefaultOnly, {"STRATEGIES, value: empty", "STRATEGIES, value: single"}}},
        {"no default, but a label, where the plugin waits for the label",
         {kNoDefault,
          kNoneAnnounced,
          kLabelled,
          {"STRATEGIES, value: empty", "STRATEGIES, value: named"},
          release("v0.18.1")}},
        {"a label that is empty counts as none", {label("nvidia.com/device-plugin.config: ''")}},
        {"a label that names a key of binaryData",
         {{"gpu-operator}\ndata:\n", "gpu-operator}\nbinaryData: {packed: dmVyc2lvbjogdjEK}\ndata:\n"},
          label("nvidia.com/device-plugin.config: packed")}},
        {"--mps-root as an argument",
         {{"env: [{name: MPS_ROOT, value: /run/nvidia/mps}]", "args: [--mps-root=/run/mps]"}}},
        {"--mps-root from a ConfigMap",
         {{"{name: MPS_ROOT, value: /run/nvidia/mps}",
           "{name: MPS_ROOT, valueFrom: {configMapKeyRef: {name: a, key: b}}}"}}},
        {"--mps-root in the profile", {kNoRoot, profile(mps(4, "mpsRoot: /run/mps"))}},
        {"no --mps-root, and no MPS", {kNoRoot, kToSlices, kAnnouncedToo}},
        {"no GFD: the operator writes mps.capable", {{"gfd: 'on'}\nstatus", "gfd: 'off'}\nstatus"}}},
        {"no NFD, and no MPS", {{"nvidia.com/gpu.count: '2', ", ""}, kToSlices, kAnnouncedToo}},
        {"mps.capable set by hand", {{"nvidia.com/gpu.count: '2', ", "nvidia.com/mps.capable: 'true', "}}},
        {"as many as a T4 takes", {profile(mps(48))}},
        {"unknown GPUs",
         {profile(mps(48)), {"nvidia.com/gpu.compute.major: '7', nvidia.com/gpu.compute.minor: '5', ", ""}}},
        {"a MIG_STRATEGY from elsewhere",
         {{"value: /run/nvidia/mps}",
           "value: /run/nvidia/mps}, {name: MIG_STRATEGY, valueFrom: {fieldRef: {fieldPath: metadata.name}}}"}}},
        {"a MIG_STRATEGY by reference", {more_env("MIG_STRATEGY", "$(WANTED)")}},
        {"list strategies with blanks", {more_env("DEVICE_LIST_STRATEGY", "'envvar, cdi-cri'")}},
        {"an allocation policy before there were any",
         {more_env("SHARED_DEVICES_ALLOCATION_POLICY", "pack"), release("v0.19.3")}},
        {"a boolean of a later release", {more_env("GDRCOPY_ENABLED", "'yes'"), release("v0.17.4")}},
        {"a boolean that is one", {more_env("PASS_DEVICE_SPECS", "T")}},
        {"a boolean flag without a value", {args("--pass-device-specs, --fail-on-init-error")}},
        {"GFD takes vfio, and the MPS daemon anything",
         {{"v0.20.0', env: []", "v0.20.0', env: [{name: DEVICE_DISCOVERY_STRATEGY, value: vfio}]"}}},
        {"a product that is as long as it may be",
         {{"gpu.product: Tesla-T4", "gpu.product: " + std::string(56, 'x')}}}}},
      {{"error Node n1 DefaultMissing"},
       {{"no default, and no fallback that resolves",
         {kNoDefault,
          kNoneAnnounced,
          {"FALLBACK_STRATEGIES, value: empty", "FALLBACK_STRATEGIES, value: 'named,single'"}}},
        {"no default, but a label",
         {kNoDefault, kNoneAnnounced, kLabelled, {"STRATEGIES, value: empty", "STRATEGIES, value: named"}}},
        {"an unknown fallback",
         {kNoDefault, kNoneAnnounced, {"STRATEGIES, value: empty", "STRATEGIES, value: first"}}}}},
      {{"error Node n1 DefaultKeyNotFound"},
       {{"a label, and a default that is no key", {kLabelled, kTypo, kAnnouncedTypo}},
        {"a default that is no key", {kTypo, kAnnouncedTypo}}}},
      {{"warning Node n1 DefaultInvalid"}, {{"a label, and a default with an error", {kLabelled, profile(mps(1))}}}},
      {{"error Node n1 KeyNotFound"}, {{"a label that is no key", {label("nvidia.com/device-plugin.config: gone")}}}},
      {{"error Node n1 ConfigInvalid"},
       {{"a profile with an error", {profile(mps(1))}},
        {"a migStrategy that does not exist, and another on the plugin alone",
         {profile(mps(4, "migStrategy: bogus")), more_env("MIG_STRATEGY", "none")}},
        {"two that do not exist, and one on the plugin",
         {profile("{flags: {deviceDiscoveryStrategy: x, plugin: {deviceIDStrategy: x}}}"),
          args("--device-id-strategy=uuid")}},
        {"IMEX channels that do not exist, and none on the plugin but an empty variable",
         {profile("imex: {channelIDs: [1]}"), more_env("IMEX_CHANNEL_IDS", "''")}}}},
      {{"error DaemonSet plugin ConfigMapInWrongNamespace"},
       {{"a ConfigMap in another namespace",
         {{"name: mps-config, namespace: gpu-operator", "name: mps-config, namespace: default"}}}}},
      {{"error DaemonSet plugin ConfigMapMissing"},
       {{"no ConfigMap", {{"name: mps-config, namespace: gpu-operator", "name: others, namespace: gpu-operator"}}}}},
      {{"error ClusterPolicy cluster-policy ConfigMapMissing"},
       {{"a ConfigMap that is announced, and missing", {{"config: {name: mps-config", "config: {name: next-config"}}}}},
      {{"error ClusterPolicy cluster-policy ConfigMapNameNoVolume"},
       {{"a ConfigMap name with a dot", {{"mps-config", "mps.config"}}},
        {"a ConfigMap name that is too long", {{"mps-config", std::string(64, 'a')}}}}},
      {{"error ClusterPolicy cluster-policy ConfigMapNameCollides"},
       {{"a ConfigMap name that a volume has already", {{"mps-config", "mps-root"}}}}},
      {{"warning ConfigMap mps-config KeyNoLabelValue"},
       {{"a key that no label can name", {{"  slices:", "  -slices-:"}}},
        {"a key that is too long", {{"  slices:", "  " + std::string(64, 's') + ":"}}}}},
      {{"error Node n1 MPSRootMissing"},
       {{"no --mps-root", {kNoRoot}},
        {"an empty --mps-root", {{"value: /run/nvidia/mps", "value: ''"}}},
        {"an empty MPS_ROOT, which overrides the profile's",
         {{"value: /run/nvidia/mps", "value: ''"}, profile(mps(4, "mpsRoot: /run/mps"))}}}},
      {{"error Node n1 MPSDaemonMissing"}, {{"no MPS daemon", {{"mps-control-daemon-ctr", "something-else"}}}}},
      {{"warning Node n1 NFDMissing"},
       {{"no NFD", {{"nvidia.com/gpu.count: '2', ", ""}, {"nvidia.com/gpu.product: Tesla-T4, ", ""}}}}},
      {{"error Node n1 MPSReplicasAboveMaximum"},
       {{"too many MPS clients for a V100", {profile(mps(17)), {"compute.minor: '5'", "compute.minor: '0'"}}},
        {"too many for a V100 whose family alone is known",
         {profile(mps(17)),
          {"nvidia.com/gpu.compute.major: '7', nvidia.com/gpu.compute.minor: '5'", "nvidia.com/gpu.family: volta"}}}}},
      {{"warning Node n1 NameMatchesNothing"},
       {{"a MIG profile that the node does not have",
         {profile("{flags: {migStrategy: mixed}, sharing: {timeSlicing: {resources: [{name: mig-1g.5gb, replicas: 2}, "
                  "{name: "
                  "mig-2g.10gb, replicas: 2}]}}}"),
          label("nvidia.com/mig-1g.5gb.count: '7'")}},
        {"a name that no GPU has",
         {profile(
             "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}, {name: mig-1g.5gb, replicas: 2}]}}")}}}},
      {{"error Node n1 MIGEnabled"}, {{"MPS with MIG", {label("nvidia.com/mig.config: all-1g.5gb")}}}},
      {{"error Node n1 MPSWithMixedMIG"}, {{"MPS with migStrategy mixed", {more_env("MIG_STRATEGY", "mixed")}}}},
      {{"warning Node n1 SettingOverridden"},
       {{"migStrategy mixed in the profile, and another on both DaemonSets",
         {profile(mps(4, "migStrategy: mixed")),
          {"v0.20.0', env: [", "v0.20.0', env: [{name: MIG_STRATEGY, value: none}, "}}},
        {"a migStrategy that does not exist, and another on both DaemonSets",
         {profile(mps(4, "migStrategy: bogus")),
          {"v0.20.0', env: [", "v0.20.0', env: [{name: MIG_STRATEGY, value: single}, "}}},
        {"a deviceIDStrategy that does not exist, and another on the plugin",
         {profile(mps(4, "plugin: {deviceIDStrategy: bogus}")), args("--device-id-strategy, uuid")}},
        {"IMEX channels that do not exist, and channel 0 on the plugin",
         {profile("imex: {channelIDs: [1]}"), more_env("IMEX_CHANNEL_IDS", "' 0x0'")}},
        {"IMEX channels that do not exist, and channel 0 by flag",
         {profile("imex: {channelIDs: [1]}"), args("-imex-channel-ids=0")}}}},
      {{kPluginSetting},
       {{"a MIG_STRATEGY that does not exist", {more_env("MIG_STRATEGY", "bogus")}},
        {"an empty MIG_STRATEGY", {more_env("MIG_STRATEGY", "''")}},
        {"a flag that does not exist, behind a variable that does",
         {{"env: [{name: MPS_ROOT",
           "args: [--mig-strategy, None], env: [{name: MIG_STRATEGY, value: none}, {name: MPS_ROOT"}}},
        {"a list strategy that does not exist", {more_env("DEVICE_LIST_STRATEGY", "'envvar,cdi'")}},
        {"an empty list strategy", {more_env("DEVICE_LIST_STRATEGY", "''")}},
        {"list strategies by flags, and one does not exist",
         {args("--device-list-strategy=bogus, --device-list-strategy=envvar")}},
        {"a device id strategy that does not exist", {more_env("DEVICE_ID_STRATEGY", "UUID")}},
        {"a discovery strategy that does not exist", {more_env("DEVICE_DISCOVERY_STRATEGY", "vfio")}},
        {"an allocation policy that does not exist", {more_env("SHARED_DEVICES_ALLOCATION_POLICY", "pack")}},
        {"an IMEX channel that does not exist", {more_env("IMEX_CHANNEL_IDS", "'0,1'")}},
        {"a boolean that is none for Go", {more_env("PASS_DEVICE_SPECS", "'yes'")}}}},
      {{"error Node n1 MPSNotInRelease"},
       {{"MPS before there was any", {{"mps-control-daemon-ctr", "something-else"}, release("v0.14.5")}}}},
      {{"error DaemonSet gfd SettingInvalid"},
       {{"GFD's own MIG strategy, which beats the common one",
         {{"v0.20.0', env: []",
           "v0.20.0', env: [{name: GFD_MIG_STRATEGY, value: x}, {name: MIG_STRATEGY, value: none}]"}}}}},
      {{"warning Node n1 LabelDropped"},
       {{"a product that is too long", {{"gpu.product: Tesla-T4", "gpu.product: " + std::string(60, 'x')}}}}},
      {{"error Node n1 DevicesUnreadable"},
       {{"GPUs that are written down in a form that cannot be read",
         {{"  labels: {nvidia.com/gpu.present",
           "  annotations: {gpusharing.dev/devices: '[{\"name\":\"A\"'}\n  labels: {nvidia.com/gpu.present"}}}}},
      {{"error Node n1 MPSReplicasAboveMaximum", "warning Node n1 LabelsUnreliable"},
       {{"GPUs of two models, written down",
         {{"  labels: {nvidia.com/gpu.present",
           "  annotations: {gpusharing.dev/devices: "
           "'[{\"name\":\"A\",\"computeCapability\":[8,0]},{\"name\":\"B\",\"computeCapability\":[7,0]}]'}\n"
           "  labels: {nvidia.com/gpu.present"},
          profile(mps(20))}}}},
  };
  for (const auto& [expected, installations] : table)
    for (const auto& [what, changes] : installations) EXPECT_EQ(told_of(changes), expected) << what;
}

// A part of one DaemonSet alone is replaced.
std::vector<Change> in(std::string_view of, std::string_view from, std::string_view to) {
  std::string own = of == "gfd" ? daemonset(of, "gpu-feature-discovery", "gfd: 'on'", "")
                                : daemonset(of, "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'", "");
  replace(own, fmt::format("{}-fallback", of), "empty");
  std::string changed = own;
  replace(changed, from, to);
  return {{own, changed}};
}

constexpr std::string_view kMount = "configMap: {name: mps-config}";
constexpr std::string_view kOther = "configMap: {name: old-config}";

TEST(Preflight, GfdAndMpsDaemonMustLoadWhatThePluginLoads) {
  EXPECT_EQ(told_of(in("gfd", kMount, kOther)),
            (Told{"warning Node n1 GFDOtherConfig", "error Node n1 MPSDaemonHasNoPods"}));
  EXPECT_EQ(told_of(in("mps", kMount, kOther)), Told{"error Node n1 MPSOtherConfig"});
  EXPECT_EQ(told_of(in("gfd", "mountPath: /available-configs", "mountPath: /elsewhere")),
            Told{"warning Node n1 GFDOtherConfig"})
      << "without any default";
  EXPECT_EQ(told_of(in("gfd", "DEFAULT_CONFIG, value: any", "DEFAULT_CONFIG, value: slices")),
            Told{"warning Node n1 GFDOtherConfig"});
}

// A GFD that loads another profile still writes the labels: the operator does not own them, and they prove nothing.
TEST(Preflight, LabelsBelongToAGfdThatIsNotOfTheNodesSet) {
  for (const auto& changes : {in("gfd", kMount, kOther), in("gfd", "kind: ClusterPolicy", "kind: Release")}) {
    const LoadedManifests loaded = load(changes);
    FleetIndex index;
    index.refresh(loaded.world, {});
    const NodeAssessment* node = index.assessment("n1");
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->labeller, Labeller::foreign_gfd);
    EXPECT_FALSE(operator_owns_labels(Node{}, node->has_labeller(), {}));
  }
  EXPECT_EQ(told_of(in("gfd", "kind: ClusterPolicy", "kind: Release")), Told{});
}

// Checked for one node, and therefore not in an answer that nodes share.
TEST(Preflight, AGpuThatDraOffersTooIsNamedOnceForItsNode) {
  const auto dra = [](const std::string& node, const std::string& resource) {
    return fmt::format(
        "\n---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: gpu.nvidia.com}}\nspec: "
        "{{extendedResourceName: {1}}}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
        "slice}}\nspec: {{driver: gpu.nvidia.com, nodeName: {0}, pool: {{name: {0}}}, devices: [{{name: gpu-0}}]}}\n",
        node, resource);
  };
  const auto found = [](const std::string& text) {
    const auto loaded = load_manifests({{"test.yaml", text}}, WallTime{});
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
    std::size_t offers = 0;
    for (const Finding& finding : check_cluster(loaded->world, {})) {
      if (finding.severity == Severity::info) continue;
      EXPECT_EQ(told({finding}), Told{"error Node n1 DRADoubleOffer"});
      ++offers;
    }
    return offers;
  };
  const std::string all = manifests({});
  EXPECT_EQ(found(all + dra("n1", "nvidia.com/gpu")), 1U);
  EXPECT_EQ(found(all + dra("n1", "example.com/gpu")), 0U);
  EXPECT_EQ(found(all + dra("n2", "nvidia.com/gpu")), 0U);
  // Without the DaemonSets, the Node's resources show that a plugin serves it.
  EXPECT_EQ(found(all.substr(all.rfind("apiVersion: v1\nkind: Node")) + dra("n1", "nvidia.com/gpu")), 1U);
  EXPECT_EQ(found("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n" + dra("n1", "nvidia.com/gpu")), 0U);
}

TEST(Preflight, WithoutGfdTheMpsDaemonHasPodsOnlyWhereSomebodyWritesTheLabel) {
  const Change without_gfd{"gfd: 'on'}\nstatus", "gfd: 'off'}\nstatus"};
  const Told no_pods{"error Node n1 MPSDaemonHasNoPods"};
  PlannerSettings settings;
  EXPECT_TRUE(told_of({without_gfd}, settings, true).contains("info Node n1 MPSDaemonHasNoPods"));
  settings.label_mode = PlannerSettings::LabelMode::verify;
  EXPECT_EQ(told_of({without_gfd}, settings), no_pods);
  // The operator cannot write the label either if Node Feature Discovery owns it.
  EXPECT_EQ(told_of({{"gfd: 'on'}\nstatus", "gfd: 'off', nvidia.com/mps.capable: 'false'}\nstatus"},
                     {"  labels: {nvidia.com/gpu.present",
                      "  annotations: {nfd.node.kubernetes.io/feature-labels: nvidia.com/mps.capable}\n  labels: "
                      "{nvidia.com/gpu.present"}}),
            no_pods);
}

// The chart's fixes.mpsSignal. Up to v0.19.3 the sidecar panics before it signals.
TEST(Preflight, MpsByLabelIsAcceptedFromV20OnWhereTheSidecarCanSignal) {
  const Change into_mps{"  slices: \"sharing: {timeSlicing", "  slices: \"sharing: {mps"};
  const Told panics{"info Node n1 MPSSidecarPanics"};
  const Told accepted{"info Node n1 DefaultFirstStart"};
  const Told refused{"info Node n1 DefaultFirstStart", "error Node n1 MPSByLabelUnsupported"};
  const struct {
    const char* version;
    Told fixed, unfixed;
  } rows[] = {{"v0.18.1", panics, panics},
              {"v0.18.2", refused, refused},
              {"v0.19.3", refused, refused},
              {"v0.20.0", accepted, refused},
              {"latest", refused, refused}};
  for (const auto& row : rows) {
    for (const bool fixed : {false, true}) {
      PlannerSettings settings;
      settings.mps_signal_fixed = fixed;
      EXPECT_EQ(told_of({kLabelled, into_mps, release(row.version)}, settings, true), fixed ? row.fixed : row.unfixed)
          << row.version << fixed;
    }
  }
}

TEST(Preflight, NamesTheDefectsOfTheRelease) {
  EXPECT_EQ(told_of({label("nvidia.com/device-plugin.config: any")}, {}, true),
            Told{"info Node n1 MPSSidecarCannotSignal"});
  EXPECT_EQ(
      told_of({profile("sharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 4}]}}"),
               release("v0.17.4")},
              {}, true),
      (Told{"info Node n1 MPSSidecarCannotSignal", "warning Node n1 FailRequestsForced"}));
}

// The plan has the same findings, up to a number of nodes one per node, and one for all others together.
TEST(Preflight, ThePlanReportsNodeByNodeAndSumsUpWhatConcernsMany) {
  test::FleetSpec spec;
  spec.profiles = {
      {"any",
       "version: v1\nsharing: {timeSlicing: {resources: [{name: other, replicas: 4}, {name: gpu, replicas: 2}]}}"}};
  spec.nodes = test::alike_nodes(30);
  test::FleetModel fleet(spec);
  std::size_t nodes = 0;
  std::string rest;
  for (const Finding& found : fleet.plan().findings) {
    if (found.why.code == "NameMatchesNothing") {
      nodes += found.object.kind == "Node" ? 1 : 0;
      rest = found.object.kind == "DaemonSet" ? found.why.message : rest;
    }
  }
  EXPECT_EQ(nodes, 20u);
  EXPECT_TRUE(rest.starts_with("on 10 further nodes (n21, n22, n23, n24, n25, …): ")) << rest;
}

Plan plan_of(const std::vector<Change>& changes) {
  const LoadedManifests loaded = load(changes);
  FleetIndex index;
  return plan_all(Snapshot{loaded.world, WallTime{}, Timers(), loaded.consumers, PlannerSettings()}, index);
}

std::vector<std::string> errors_of_plan(const std::vector<Change>& changes) {
  std::vector<std::string> out;
  for (const Finding& f : plan_of(changes).findings)
    if (f.severity == Severity::error)
      out.push_back(fmt::format("{} {}: {}", f.object.kind, f.why.code, f.why.message));
  return out;
}

TEST(Preflight, AMissingConfigMapThatIsAnnouncedIsReportedOnce) {
  const std::vector<std::string> expected{
      "ClusterPolicy ConfigMapMissing: ConfigMap gpu-operator/next-config does not exist: no pod that mounts it can "
      "start, and nodes lose their GPUs at the next restart of their pods"};
  const Change announced{"config: {name: mps-config", "config: {name: next-config"};
  EXPECT_EQ(errors_of_plan({announced}), expected);
  EXPECT_EQ(errors_of_plan({announced, kLabelled}), expected);
}

TEST(Preflight, AWrongSettingOfADaemonSetIsNamedWithWhatWouldBeRight) {
  EXPECT_EQ(
      errors_of_plan({args("--device-list-strategy=envvars")}),
      std::vector<std::string>{
          "DaemonSet SettingInvalid: DaemonSet gpu-operator/plugin: --device-list-strategy is \"envvars\", and the "
          "plugin exits at start on every node, regardless of the profile; did you mean \"envvar\"?"});
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
    EXPECT_EQ(node->obstacle.code == kProviderUnsupported, strategy == "bogus") << node->obstacle.message;
  }
}

TEST(Preflight, APolicysKeyMustBeInTheConfigMap) {
  const auto with = [](const std::string& spec) {
    return told_of({with_object(
        "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec: {" + spec + "}")});
  };
  const Told wrong{"error SharingPolicy p ConfigInvalid"};
  EXPECT_EQ(with("profile: {configMapKey: slices}"), Told{});
  EXPECT_EQ(with("profile: {configMapKey: typo}"), wrong);
  EXPECT_EQ(with("nodeSelector: {matchLabels: {a: b}}, profile: {configMapKey: typo}"), wrong) << "for future nodes";
  EXPECT_EQ(with("mode: Observe, profile: {configMapKey: typo}"), Told{"warning SharingPolicy p ConfigInvalid"});
}

// Without nvidia.com/mps.capable the daemon has no pod, and without the daemon the plugin serves nothing.
TEST(Preflight, TheLabelForTheMpsDaemonIsWrittenBeforeTheNodeShowsItsProfile) {
  using Mode = PlannerSettings::LabelMode;
  const struct {
    const char* what;
    Strategy strategy;
    bool gfd;
    std::string owned;
    Mode mode;
    bool written;
  } table[] = {{"a bare node", Strategy::mps, false, "", Mode::automatic, true},
               {"no MPS", Strategy::time_slicing, false, "", Mode::automatic, false},
               {"GFD", Strategy::mps, true, "", Mode::automatic, false},
               {"NFD owns it", Strategy::mps, false, "nvidia.com/mps.capable", Mode::automatic, false},
               {"NFD owns another", Strategy::mps, false, "nvidia.com/gpu.count", Mode::automatic, true},
               {"verify", Strategy::mps, false, "", Mode::verify, false}};
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    Node node;
    if (!row.owned.empty()) node.meta.annotations.set("nfd.node.kubernetes.io/feature-labels", row.owned);
    NodeExpectation expectation;
    expectation.strategy = row.strategy;
    NodeAssessment assessment;
    assessment.phase = Phase::up_to_date;
    if (row.gfd) assessment.labeller = Labeller::gfd;
    assessment.expectation = std::make_shared<const NodeExpectation>(expectation);
    PlannerSettings settings;
    settings.label_mode = row.mode;
    const LabelChange change = label_change(node, assessment, {settings, std::nullopt});
    const std::map<std::string, std::string> expected{{"nvidia.com/mps.capable", "true"}};
    EXPECT_EQ(change.set, row.written ? expected : (std::map<std::string, std::string>{}));
  }
}

// The first plan of a fleet has no record yet.
TEST(Preflight, TheFirstPlanReportsWhatIsWrongWithAPolicyToo) {
  for (const auto& [key, expected] : {std::pair("gone", "error SharingPolicy p ConfigInvalid"),
                                      std::pair("mps-too", "error DaemonSet plugin MPSByLabelUnsupported")}) {
    const Told findings = told(
        plan_of(
            {{"  slices:", "  mps-too: \"sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\"\n  slices:"},
             with_object("apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec: "
                         "{nodeSelector: {matchLabels: {nvidia.com/gpu.present: 'true'}}, profile: {configMapKey: " +
                         std::string(key) + "}}")})
            .findings);
    EXPECT_TRUE(findings.contains(expected)) << ::testing::PrintToString(findings);
  }
}

}  // namespace
}  // namespace gso::preflight_test
