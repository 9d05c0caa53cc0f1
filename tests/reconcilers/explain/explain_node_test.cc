// explain NODE and audit over manifests: what a node's explanation holds, and what an audit adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_node_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(StateName, ANodeThatDoesNotShowItsProfileIsNotCountedAsUpToDate) {
  struct Case {
    const char* name;
    Phase phase;
    bool matches, drift_at_install, held;
    std::string_view wanted;
  };
  const Case cases[] = {
      {"shows its profile", Phase::up_to_date, true, false, false, "UpToDate"},
      {"what it has loaded is not proven, and it shows it", Phase::up_to_date, true, true, false, "UpToDate"},
      {"shows something else", Phase::up_to_date, false, false, false, kDrift},
      {"showed something else from the start", Phase::up_to_date, false, true, false, kPreexistingDrift},
      {"held, and has nothing to do", Phase::up_to_date, true, false, true, "UpToDate"},
      {"held, and has to change", Phase::pending, false, false, true, "Held"},
      {"waits for its turn", Phase::pending, false, false, false, "Pending"},
      {"blocked", Phase::blocked, false, true, false, "Blocked"},
  };
  for (const Case& c : cases) {
    NodeAssessment assessment;
    assessment.phase = c.phase;
    assessment.pods_ready = assessment.verified.ok = c.matches;
    if (c.drift_at_install) assessment.at_install = AtInstall::drifted;
    if (c.held) assessment.holder = kHeld;
    EXPECT_EQ(state_name(assessment), c.wanted) << c.name;
  }
}

TEST(ExplainNode, ANodeOfNosSaysWhoIsInChargeAndNothingElse) {
  Explained explained(cluster(kSliced, ", nos.nebuly.com/gpu-partitioning: mps", R"(nvidia.com/gpu: "2")"));
  const NodeExplanation out = explained.node("gpu-1");
  EXPECT_EQ(out.shown.state, "PartitionedByNos");
  EXPECT_THAT(out.shown.message, HasSubstr("the GPUs of this node are cut into slices (label "
                                           "nos.nebuly.com/gpu-partitioning=mps) by nos, or by the operator where the "
                                           "chart value modes.partitioning is Enforce"));
  EXPECT_EQ(out.provider, "nos");
  EXPECT_EQ(out.policy, "");
  EXPECT_EQ(out.next.text(), "kubectl describe node gpu-1");
  // What keeps its GPUs whole is said once, and nothing of profiles.
  EXPECT_THAT(out.findings, ElementsAre(Field(&Finding::why, Field(&Reason::code, "PartitioningSkipped"))));
  const Snapshot s = explained.snapshot();
  const Audit all = audit(s, explained.index);
  EXPECT_EQ(all.count(Severity::error), 0);
  EXPECT_EQ(all.count(Severity::warning), 1);
  EXPECT_EQ(all.count(Severity::info), 1);
  EXPECT_EQ(all.plugins, (std::map<std::string, std::int64_t>{{"nos", 1}}));
}

TEST(ExplainNode, HoldsWhoChoseTheProfileWhatItMustShowAndWhatToDo) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "2")"));
  explained.world.policies_served = true;
  const NodeExplanation out = explained.node("gpu-1");
  EXPECT_EQ(out.shown.state, "PreexistingDrift");
  EXPECT_EQ(out.profile, "plugin-config/any");
  EXPECT_THAT(out.source, HasSubstr("the plugin's default"));
  EXPECT_EQ(out.strategy, "time-slicing, nvidia.com/gpu x 4");
  EXPECT_THAT(out.plugin, HasSubstr("gpu-operator/plugin v0.17.1"));
  const auto row = std::ranges::find(out.rows, "nvidia.com/gpu", &NodeExplanation::Row::what);
  ASSERT_NE(row, out.rows.end());
  EXPECT_EQ(row->expected, "8");
  EXPECT_EQ(row->observed, "2");
  EXPECT_FALSE(row->fits());
  EXPECT_THAT(out.operands.front(), HasSubstr("plugin: gpu-operator/plugin-1 Running, ready"));
  EXPECT_EQ(out.next.text(), "gpu-sharing-operator rollout start default --adopt");
}

TEST(ExplainNode, WithoutARecordANodeWhoseLabelNamesNoKeySaysSo) {
  const std::string eight = R"(nvidia.com/gpu: "8")";
  Explained typo(cluster(kSliced, ", nvidia.com/device-plugin.config: typo", eight));
  typo.world.configmaps.erase({"gpu-sharing-operator", "gpu-sharing-operator-state"});
  typo.index.note_everything_changed();
  typo.index.refresh(typo.world, typo.settings);
  ReadingPass pass(typo.world, typo.index, typo.settings, typo.now);
  const ShownState shown = shown_state(pass, *typo.world.nodes.find("gpu-1"));
  EXPECT_EQ(shown.state, "Unrecorded");
  EXPECT_THAT(shown.message, HasSubstr("names no key of the ConfigMap"));
}

TEST(ExplainNode, AHeldNodeAndOneWithoutAPluginHaveTheirOwnRemedies) {
  Explained held(cluster(kSliced, "}, annotations: {gpusharing.dev/hold: \"true\"", R"(nvidia.com/gpu: "8")"));
  // Held is shown only if it prevents a change that is due.
  EXPECT_EQ(held.node("gpu-1").shown.state, "UpToDate");
  EXPECT_THAT(held.node("gpu-1").notes,
              Contains(HasSubstr("annotation gpusharing.dev/hold is set: the operator does not")));
  EXPECT_EQ(held.node("gpu-1").next.text(), "") << "the hold is someone else's decision";
  // The obstacle remains without the hold.
  Explained both(cluster("    sharing: [", "}, annotations: {gpusharing.dev/hold: \"true\"", R"(nvidia.com/gpu: "8")"));
  EXPECT_EQ(both.node("gpu-1").shown.state, "Blocked(ConfigInvalid)");
  EXPECT_THAT(both.node("gpu-1").next.text(), HasSubstr("kubectl edit configmap plugin-config"));
  Explained bare(R"(
apiVersion: v1
kind: Node
metadata: {name: bare, labels: {nvidia.com/gpu.count: "4"}}
)");
  EXPECT_EQ(bare.node("bare").shown.state, "NoPlugin");
  EXPECT_FALSE(explain_node(bare.snapshot(), bare.index, {}, "nobody").has_value());
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The remedy names the label, the owner and the method of the present installation.
TEST(ExplainNode, RemediesNameWhatTheInstallationHas) {
  const std::string eight = R"(nvidia.com/gpu: "8")";
  const std::string own_label = with(cluster(kSliced, ", example.com/gpu-profile: typo", eight), "env: [{name: DEFAULT",
                                     "env: [{name: NODE_LABEL, value: example.com/gpu-profile}, {name: DEFAULT");
  EXPECT_THAT(
      Explained(own_label).node("gpu-1").next.text(),
      testing::AllOf(testing::StartsWith("kubectl get node gpu-1 --show-managed-fields --output yaml  # names who "
                                         "set label example.com/gpu-profile; whoever did decides: name a key "
                                         "that exists ("),
                     testing::EndsWith("), or remove the label: kubectl label node gpu-1 "
                                       "example.com/gpu-profile-")));

  const std::string bare = with(cluster(kSliced, "", eight), "name: config, mountPath: /available-configs",
                                "name: config, mountPath: /elsewhere");
  EXPECT_EQ(Explained(bare).node("gpu-1").next.text(), "kubectl edit daemonset plugin --namespace gpu-operator");
  const std::string_view daemonset = "{name: plugin, namespace: gpu-operator, uid: ds-plugin";
  const std::string chart =
      with(bare, daemonset, std::string(daemonset) + ", labels: {app.kubernetes.io/instance: nvdp-1}");
  EXPECT_EQ(Explained(chart).node("gpu-1").next.text(),
            "helm upgrade nvdp-1 nvdp/nvidia-device-plugin --namespace gpu-operator --reuse-values --set "
            "config.name=CONFIGMAP,config.default=KEY");
  const std::string of_operator =
      with(bare, daemonset,
           std::string(daemonset) +
               ", ownerReferences: [{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: gpus, "
               "uid: u, controller: true}]");
  EXPECT_THAT(Explained(of_operator).node("gpu-1").next.text(),
              HasSubstr("kubectl patch clusterpolicies.nvidia.com/gpus --type merge"));
}

// Another text of key `any`, after the baseline.
void edit(Explained& explained, const std::string& from, const std::string& to) {
  ConfigMap config_map = *explained.world.configmaps.find(ObjectKey{"gpu-operator", "plugin-config"});
  std::shared_ptr<const std::string>& text = config_map.data.at("any");
  text = std::make_shared<const std::string>(with(*text, from, to));
  config_map.data_changed = explained.now;  // After the start of the pods.
  explained.world.configmaps.apply(std::move(config_map));
  explained.index.note_everything_changed();
}

TEST(ExplainNode, AHoldIsNotTheNextCommandOfWhoeverReadsIt) {
  for (const std::string& where : {std::string("}, annotations: {gpusharing.dev/hold: \"true\""),
                                   std::string(", gpusharing.dev/hold: \"true\"")}) {
    Explained held(cluster(kSliced, where, R"(nvidia.com/gpu: "8")"));
    edit(held, "replicas: 4", "replicas: 6");
    const NodeExplanation out = held.node("gpu-1");
    EXPECT_EQ(out.shown.state, "Held");
    EXPECT_EQ(out.next.text(), "");
    EXPECT_THAT(out.obstacle.message, HasSubstr("whoever set the hold removes it"));
    EXPECT_THAT(out.obstacle.message,
                HasSubstr(where.starts_with(",") ? "kubectl label node gpu-1 gpusharing.dev/hold-"
                                                 : "kubectl annotate node gpu-1 gpusharing.dev/hold-"));
  }
}

// The default names a key that does not exist, under each owner of the setting.
TEST(ExplainNode, ADefaultKeyThatDoesNotExistIsCorrectedWhereItIsSet) {
  const std::string_view daemonset = "{name: plugin, namespace: gpu-operator, uid: ds-plugin";
  struct Case {
    const char* metadata;
    const char* next;
    const char* setting;
  };
  const Case cases[] = {
      {"", "kubectl edit daemonset plugin --namespace gpu-operator # set DEFAULT_CONFIG to any",
       "DEFAULT_CONFIG of DaemonSet gpu-operator/plugin"},
      {", labels: {app.kubernetes.io/instance: nvdp-1}",
       "helm upgrade nvdp-1 nvdp/nvidia-device-plugin --namespace gpu-operator --reuse-values --set config.default=any",
       "config.default of Helm release nvdp-1"},
      {", ownerReferences: [{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: gpus, uid: u, controller: true}]",
       "kubectl patch clusterpolicies.nvidia.com/gpus --type merge -p "
       "'{\"spec\":{\"devicePlugin\":{\"config\":{\"default\":\"any\"}}}}'",
       "spec.devicePlugin.config.default of ClusterPolicy gpus"},
  };
  for (const Case& c : cases) {
    const std::string manifests = with(with(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"),
                                            "DEFAULT_CONFIG, value: any", "DEFAULT_CONFIG, value: nokey"),
                                       daemonset, std::string(daemonset) + c.metadata);
    Explained explained(manifests);
    const NodeExplanation out = explained.node("gpu-1");
    EXPECT_EQ(out.shown.state, "Blocked(ConfigInvalid)");
    EXPECT_THAT(out.shown.message, HasSubstr(c.setting));
    EXPECT_EQ(out.next.text(), c.next);
    EXPECT_THAT(out.notes, Contains(HasSubstr("the node has lost its GPUs (none is allocatable)")));
    const Audit all = audit(explained.snapshot(), explained.index);
    std::vector<std::string> blamed;
    for (const AuditProblem& problem : all.problems) {
      EXPECT_THAT(problem.cure.command.text(), Not(HasSubstr("lint")));
      if (problem.reason.code != "ConfigInvalid" && problem.reason.code != "DefaultKeyNotFound") continue;
      blamed.push_back(problem.reason.code);
      EXPECT_EQ(problem.cure.command.text(), c.next);
    }
    EXPECT_THAT(blamed, ElementsAre("DefaultKeyNotFound"));
  }
}

// The key was there when the node loaded it: the setting is right, and the ConfigMap is to be corrected.
TEST(ExplainNode, ADefaultKeyThatTheConfigMapHasLostIsPutBackThere) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  ConfigMap config_map = *explained.world.configmaps.find(ObjectKey{"gpu-operator", "plugin-config"});
  config_map.data["other"] = config_map.data.at("any");
  config_map.data.erase("any");
  explained.world.configmaps.apply(std::move(config_map));
  explained.index.note_everything_changed();
  EXPECT_THAT(explained.node("gpu-1").next.text(),
              HasSubstr("kubectl edit configmap plugin-config --namespace gpu-operator"));
}

// The default before the change is what most nodes without a label have loaded, not the first key of the ConfigMap.
TEST(ExplainNode, TheDefaultThatNodesHaveLoadedIsSetAgain) {
  Explained explained(
      with(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"), "data:\n", "data:\n  aaa: |\n    version: v1\n"));
  DaemonSet plugin = *explained.world.daemonsets.find(ObjectKey{"gpu-operator", "plugin"});
  EXPECT_EQ(explained.node("gpu-1").shown.state, "UpToDate");
  for (ContainerSpec& container : plugin.containers)
    if (container.env.contains("DEFAULT_CONFIG")) container.env["DEFAULT_CONFIG"] = "nokey";
  explained.world.daemonsets.apply(std::move(plugin));
  explained.index.note_everything_changed();
  const NodeExplanation out = explained.node("gpu-1");
  EXPECT_EQ(out.next.text(), "kubectl edit daemonset plugin --namespace gpu-operator # set DEFAULT_CONFIG to any");
  EXPECT_THAT(out.notes, Contains(HasSubstr("the node will lose its GPUs at the next restart")));
}

// Which nodes would lose their GPUs: those whose plugin would load what is wrong.
TEST(ExplainNode, ARestartThatWouldLoseTheGpusIsNotedOnTheNodesThatLoadTheFaultyKey) {
  const std::string resources = "\n    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: ";
  const std::string keys =
      "data:\n  good: |\n    version: v1" + resources + "4}]}}\n  bad: |\n    version: v1" + resources + "1}]}}\n";
  const std::string faulty = "    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}";
  const std::string all = R"(nvidia.com/gpu: "8")";
  const auto labelled = [](const std::string& key) { return ", nvidia.com/device-plugin.config: " + key; };
  const std::string gone = "{name: DEFAULT_CONFIG, value: gone}";
  const std::string any = "{name: DEFAULT_CONFIG, value: any}";
  const struct {
    const char* name;
    std::string manifests;
    std::string noted;  // Empty: nothing is.
  } table[] = {
      {"the default is valid", cluster(kSliced, "", all), ""},
      {"the default is invalid", cluster(faulty, "", all), "key any is invalid"},
      {"the default is invalid, and the node has another key", cluster(faulty, labelled("good"), all), ""},
      {"the node's own key is invalid", cluster(kSliced, labelled("bad"), all), "key bad is invalid"},
      {"the default is missing", with(cluster(kSliced, "", all), any, gone), "the default key \"gone\" is not"},
      {"the default is missing, and the node has another key", with(cluster(kSliced, labelled("good"), all), any, gone),
       ""},
      {"the node serves nothing", cluster(faulty, "", R"(nvidia.com/gpu: "0")"), ""},
  };
  for (const auto& c : table) {
    SCOPED_TRACE(c.name);
    const NodeExplanation out = Explained(with(c.manifests, "data:\n", keys)).node("gpu-1");
    if (c.noted.empty())
      EXPECT_THAT(out.notes, Not(Contains(HasSubstr("lose its GPUs"))));
    else
      EXPECT_THAT(out.notes, Contains(HasSubstr("the node will lose its GPUs at the next restart: " + c.noted)));
  }
}

TEST(ExplainNode, AKeyThatIsNotThereIsNotLinted) {
  const NodeExplanation invalid = Explained(cluster("    sharing: [", "", R"(nvidia.com/gpu: "2")")).node("gpu-1");
  EXPECT_EQ(invalid.next.text(), "kubectl edit configmap plugin-config --namespace gpu-operator")
      << "no other text was there before";
  EXPECT_EQ(invalid.strategy, "invalid");
  Explained edited(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  edited.world.policies_served = true;
  edit(edited, "sharing:", "sharing: [");
  EXPECT_EQ(edited.node("gpu-1").next.text(),
            "kubectl edit configmap plugin-config --namespace gpu-operator  # or restore the text that was verified "
            "last, after a look: gpu-sharing-operator rollout undo --dry-run");
  std::string missing = cluster(kSliced, "", R"(nvidia.com/gpu: "2")");
  missing.replace(missing.find("  any: |"), 8, "  other: |");
  EXPECT_EQ(Explained(missing).node("gpu-1").next.text(),
            "kubectl edit daemonset plugin --namespace gpu-operator # set DEFAULT_CONFIG to other");
}

TEST(WhoKeeps, IsWhatTheRolloutUnderWaySaysOfTheNode) {
  World world;
  SharingRollout rollout;
  rollout.meta.name = "default-any-1";
  rollout.phase = "Progressing";
  rollout.status_json = R"({"nodes":[{"name":"gpu-1","state":"Waiting","reason":"WaitingForWorkloads",
    "message":"waits for team/job-1"},{"name":"gpu-10","state":"Failed","message":"no"}]})";
  world.rollouts.apply(rollout);
  EXPECT_EQ(blocking_pods_of(world, "gpu-1"), "waits for team/job-1");
  EXPECT_EQ(blocking_pods_of(world, "gpu-10"), "") << "it has failed, and waits for nobody";
  EXPECT_EQ(blocking_pods_of(world, "gpu-2"), "");
  rollout.phase = "Superseded";
  world.rollouts.apply(rollout);
  EXPECT_EQ(blocking_pods_of(world, "gpu-1"), "");
}

TEST(Audit, AddsNodesWithoutAPluginAndProfilesThatNothingUses) {
  std::string manifests = cluster(kSliced, "", R"(nvidia.com/gpu: "2")");
  const std::string broken =
      "  broken: |\n    version: v1\n    sharing:\n      mps:\n        resources:\n        - {name: nvidia.com/gpu, "
      "replicas: 1}\ndata:\n";
  manifests.replace(manifests.find("data:\n"), 6, "data:\n" + broken.substr(0, broken.size() - 6));
  manifests +=
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: bare, labels: {nvidia.com/gpu.count: \"4\"}}\n"
      "spec: {taints: [{key: nobody, effect: NoSchedule}]}\n";
  Explained explained(manifests);
  const Audit out = audit(explained.snapshot(), explained.index);
  const auto has = [&](std::string_view reason, std::string_view name) {
    return std::ranges::any_of(out.findings,
                               [&](const Finding& f) { return f.why.code == reason && f.object.name == name; });
  };
  EXPECT_EQ(out.nodes, 2);
  EXPECT_EQ(out.plugins.at("v0.17.1"), 1);
  EXPECT_EQ(out.profiles.at("plugin-config/any"), 1);
  EXPECT_TRUE(has(kPreexistingDrift, "gpu-1"));
  EXPECT_TRUE(has("NoPlugin", "bare"));
  EXPECT_TRUE(has(kConfigInvalid, "plugin-config"));
  EXPECT_TRUE(std::ranges::is_sorted(out.findings, {}, &Finding::severity));
}

// The severity of a finding with that reason about that object; nullopt: it has none.
std::optional<Severity> severity_of(const Audit& out, std::string_view reason, std::string_view name) {
  const auto found = std::ranges::find_if(
      out.findings, [&](const Finding& f) { return f.why.code == reason && f.object.name == name; });
  return found == out.findings.end() ? std::nullopt : std::optional(found->severity);
}

Audit audited(const std::string& manifests) {
  Explained explained(manifests);
  return audit(explained.snapshot(), explained.index);
}

// Of 2 GPUs, in the midst of a rollout to more replicas: the node serves its old profile, and nothing is lost.
TEST(Audit, GpusThatServeTheLoadedProfileAreNotLost) {
  struct Case {
    const char* allocatable;
    std::int64_t lost;
  };
  for (const Case& c : {Case{"8", 0}, Case{"4", 1}, Case{"0", 2}}) {
    Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
    edit(explained, "replicas: 4", "replicas: 16");
    Node node = *explained.world.nodes.find("gpu-1");
    node.allocatable.begin()->second = std::atoll(c.allocatable);
    explained.world.nodes.apply(std::move(node));
    const Audit out = audit(explained.snapshot(), explained.index);
    EXPECT_EQ(out.gpus.total, 2) << c.allocatable;
    EXPECT_EQ(out.gpus.lost, c.lost) << c.allocatable;
  }
}

TEST(Audit, AReadyNodeThatServesNoGpuIsAnError) {
  EXPECT_EQ(severity_of(audited(cluster(kSliced, "", R"(nvidia.com/gpu: "0")")), "NoneAllocatable", "gpu-1"),
            Severity::error);
  EXPECT_EQ(severity_of(audited(cluster(kSliced, "", R"(nvidia.com/gpu: "2")")), "NoneAllocatable", "gpu-1"),
            std::nullopt);
}

// A node that serves no GPU does not show its profile either: one problem, which a person corrects once.
TEST(Audit, ANodeWithoutAnyGpuIsOneProblemAndExplainCallsItAnErrorToo) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  const Audit out = audit(explained.snapshot(), explained.index);
  EXPECT_EQ(severity_of(out, kPreexistingDrift, "gpu-1"), std::nullopt);
  EXPECT_EQ(out.count(Severity::error), 1);
  EXPECT_THAT(explained.node("gpu-1").findings,
              Contains(testing::AllOf(Field(&Finding::why, Field(&Reason::code, kPreexistingDrift)),
                                      Field(&Finding::severity, Severity::error))));
}

// Without the CRDs `rollout start --adopt` has nothing to annotate: the pods are the place to look.
TEST(ExplainNode, WithoutTheCrdsADriftingNodeIsNotToldToStartARollout) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "2")"));
  explained.world.policies_served = false;
  EXPECT_EQ(explained.node("gpu-1").next.text(),
            "kubectl get pods --namespace gpu-operator --field-selector spec.nodeName=gpu-1 -o wide");
}

TEST(ExplainNode, TheAnnotationThatStatesTheGpusOfANodeIsNamed) {
  Explained explained(
      cluster(kSliced, R"(}, annotations: {gpusharing.dev/devices: '[{"name": "Tesla T4", "memoryMiB": 15360}]')",
              R"(nvidia.com/gpu: "8")"));
  EXPECT_THAT(explained.node("gpu-1").notes,
              Contains(HasSubstr("annotation gpusharing.dev/devices states the GPUs of the node")));
}

TEST(Audit, ANotReadyNodeIsAWarning) {
  std::string manifests = cluster(kSliced, "", R"(nvidia.com/gpu: "2")");
  EXPECT_EQ(severity_of(audited(manifests), "NodeNotReady", "gpu-1"), std::nullopt);
  const std::string ready = R"(type: Ready, status: "True")";
  manifests.replace(manifests.find(ready), ready.size(), R"(type: Ready, status: "Unknown")");
  const Audit out = audited(manifests);
  EXPECT_EQ(severity_of(out, "NodeNotReady", "gpu-1"), Severity::warning);
  EXPECT_THAT(out.problems, Contains(testing::AllOf(
                                Field(&AuditProblem::reason, Field(&Reason::code, "NodeNotReady")),
                                Field(&AuditProblem::cure, Field(&Cure::command, describe_node_command("gpu-1"))))));
  EXPECT_EQ(severity_of(out, "NoneAllocatable", "gpu-1"), std::nullopt) << "the kubelet reports nothing there";
}

}  // namespace
}  // namespace gso::explain_node_test
