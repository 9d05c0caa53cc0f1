// Preflight: one good cluster, and the findings for one change of its manifests, before anything is changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
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
  // Without any default.
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

// A GFD that loads another profile still writes the labels: the operator does not own them, and they prove nothing.
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
    index.refresh(loaded.world, {});
    const NodeAssessment* node = index.assessment("n1");
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->labeller, Labeller::foreign_gfd);
    EXPECT_FALSE(operator_owns_labels(Node{}, node->has_labeller(), {}));
  }
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
    std::vector<std::string> out;
    for (const Finding& finding : check_cluster(loaded->world, {}))
      if (finding.severity != Severity::info)
        out.push_back(fmt::format("{} {} {} {}", name_of(finding.severity), finding.object.kind, finding.object.name,
                                  finding.why.code));
    return out;
  };
  const std::vector<std::string> kOnce{"error Node n1 DRADoubleOffer"};
  EXPECT_EQ(found(manifests({}) + dra("n1", "nvidia.com/gpu")), kOnce);
  EXPECT_EQ(found(manifests({}) + dra("n1", "example.com/gpu")), std::vector<std::string>{});
  EXPECT_EQ(found(manifests({}) + dra("n2", "nvidia.com/gpu")), std::vector<std::string>{});
  // Without the DaemonSets, the Node's resources show that a plugin serves it.
  const std::string all(manifests({}));
  const std::string node = all.substr(all.rfind("apiVersion: v1\nkind: Node"));
  EXPECT_EQ(found(node + dra("n1", "nvidia.com/gpu")), kOnce);
  EXPECT_EQ(found("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n" + dra("n1", "nvidia.com/gpu")),
            std::vector<std::string>{});
}

TEST(Preflight, WithoutGfdTheMpsDaemonHasPodsOnlyWhereSomebodyWritesTheLabel) {
  const LoadedManifests loaded = load({{"gfd: 'on'}\nstatus", "gfd: 'off'}\nstatus"}});
  PlannerSettings settings;
  EXPECT_TRUE(told(check_cluster(loaded.world, settings), true).contains("info Node n1 MPSDaemonHasNoPods"));
  settings.label_mode = PlannerSettings::LabelMode::verify;
  EXPECT_EQ(told(check_cluster(loaded.world, settings)), Told{"error Node n1 MPSDaemonHasNoPods"});
  // The operator cannot write the label either if Node Feature Discovery owns it.
  const LoadedManifests owned = load({{"gfd: 'on'}\nstatus", "gfd: 'off', nvidia.com/mps.capable: 'false'}\nstatus"},
                                      {"  labels: {nvidia.com/gpu.present",
                                       "  annotations: {nfd.node.kubernetes.io/feature-labels: "
                                       "nvidia.com/mps.capable}\n  labels: {nvidia.com/gpu.present"}});
  EXPECT_EQ(told(check_cluster(owned.world, {})), Told{"error Node n1 MPSDaemonHasNoPods"});
}

// The chart's fixes.mpsSignal. Up to v0.19.3 the sidecar panics before it signals.
TEST(Preflight, MpsByLabelIsAcceptedFromV20OnWhereTheSidecarCanSignal) {
  const Change by_label{"gfd: 'on'}\nstatus", "gfd: 'on', nvidia.com/device-plugin.config: slices}\nstatus"};
  const Change mps{"  slices: \"sharing: {timeSlicing", "  slices: \"sharing: {mps"};
  const Told refused{"info Node n1 DefaultFirstStart", "error Node n1 MPSByLabelUnsupported"};
  PlannerSettings settings;
  settings.mps_signal_fixed = true;
  for (const auto& [version, expected] :
       std::vector<std::pair<std::string, Told>>{{"v0.18.1", {"info Node n1 MPSSidecarPanics"}},
                                                 {"v0.18.2", refused},
                                                 {"v0.19.3", refused},
                                                 {"v0.20.0", {"info Node n1 DefaultFirstStart"}},
                                                 {"latest", refused}}) {
    const LoadedManifests loaded = load({by_label, mps, {"k8s-device-plugin:v0.20.0", "k8s-device-plugin:" + version}});
    EXPECT_EQ(told(check_cluster(loaded.world, settings), true), expected) << version;
  }
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
      {"v0.20.0", {default_by_label}, {"info Node n1 MPSSidecarCannotSignal"}},
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

std::vector<std::string> errors_of_plan(const LoadedManifests& loaded) {
  FleetIndex index;
  const Timers timers;
  const PlannerSettings settings;
  std::vector<std::string> out;
  for (const Finding& f :
       plan_all(Snapshot{loaded.world, WallTime{}, timers, loaded.consumers, settings}, index).findings) {
    if (f.severity == Severity::error)
      out.push_back(fmt::format("{} {}: {}", f.object.kind, f.why.code, f.why.message));
  }
  return out;
}

TEST(Preflight, AMissingConfigMapThatIsAnnouncedIsReportedOnce) {
  const std::vector<std::string> expected{
      "ClusterPolicy ConfigMapMissing: ConfigMap gpu-operator/next-config does not exist: no pod that mounts it can "
      "start, "
      "and nodes lose their GPUs at the next restart of their pods"};
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
      "at start on every node, regardless of the profile; did you mean \"envvar\"?"};
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
    EXPECT_EQ(node->obstacle.code == kProviderUnsupported, strategy == "bogus") << node->obstacle.message;
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
  // For nodes that do not exist yet.
  EXPECT_EQ(
      told(check_cluster(load({with("nodeSelector: {matchLabels: {a: b}}, profile: {configMapKey: typo}")}).world, {})),
      wrong);
  EXPECT_EQ(told(check_cluster(load({with("mode: Observe, profile: {configMapKey: typo}")}).world, {})),
            Told{"warning SharingPolicy p ConfigInvalid"});
}

TEST(Preflight, AProfileThatThePluginExitsOnForLackOfMpsRootIsNeverRolledOut) {
  LoadedManifests loaded = load({{"{name: MPS_ROOT, value: /run/nvidia/mps}", ""}});
  FleetIndex index;
  const Timers timers;
  const PlannerSettings settings;
  const Plan plan = plan_all(Snapshot{loaded.world, WallTime{}, timers, loaded.consumers, settings}, index);
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
  const std::vector<std::pair<std::string, std::string>> table{
      {"gone", "error SharingPolicy p ConfigInvalid"},
      {"mps-too", "error DaemonSet plugin MPSByLabelUnsupported"},
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
    const Timers timers;
    const PlannerSettings settings;
    const Plan plan = plan_all(Snapshot{loaded.world, WallTime{}, timers, loaded.consumers, settings}, index);
    const Told findings = told(plan.findings);
    EXPECT_TRUE(findings.contains(expected)) << ::testing::PrintToString(findings);
  }
}

}  // namespace
}  // namespace gso::preflight_test
