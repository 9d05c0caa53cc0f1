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

// A part of one DaemonSet alone is replaced.
std::vector<Change> in(std::string_view of, std::string_view from, std::string_view to) {
  std::string own = of == "gfd" ? daemonset(of, "gpu-feature-discovery", "gfd: 'on'", "")
                                : daemonset(of, "mps-control-daemon-ctr", "nvidia.com/mps.capable: 'true'", "");
  replace(own, fmt::format("{}-fallback", of), "empty");
  std::string changed = own;
  replace(changed, from, to);
  return {{own, changed}};
}

Told told_of(const std::vector<Change>& changes, const PlannerSettings& settings = {}, bool infos = false) {
  return told(check_cluster(load(changes).world, settings), infos);
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
  const Change mps{"  slices: \"sharing: {timeSlicing", "  slices: \"sharing: {mps"};
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
      EXPECT_EQ(told_of({kLabelled, mps, release(row.version)}, settings, true), fixed ? row.fixed : row.unfixed)
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

TEST(Preflight, AProfileThatThePluginExitsOnForLackOfMpsRootIsNeverRolledOut) {
  EXPECT_TRUE(told(plan_of({kNoRoot}).findings).contains("error Node n1 MPSRootMissing"));
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
