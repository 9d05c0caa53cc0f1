// explain and audit over manifests: which cause a pod gets, what a node's explanation holds, what an audit adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

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

// One GPU node under the plugin's default profile; more documents are appended.
std::string cluster(const std::string& profile, const std::string& node_labels, const std::string& allocatable,
                    const std::string& node_spec = "{}") {
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

constexpr const char* kSliced = R"(    sharing:
      timeSlicing:
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";
constexpr const char* kRefusing = R"(    sharing:
      timeSlicing:
        failRequestsGreaterThanOne: true
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";

struct Explained {
  World world;
  std::map<std::string, NodeConsumers> consumers;
  FleetIndex index;
  PlannerSettings settings;
  WallTime now = *k8s::parse_rfc3339("2026-01-03T00:00:00Z");
  Timers timers;

  explicit Explained(const std::string& manifests) {
    settings.kai.explain_all = true;
    auto loaded = load_manifests({{"cluster.yaml", manifests}}, now);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    world = std::move(loaded->world);
    consumers = std::move(loaded->consumers);
    index.note_everything_changed();
    (void)assume_baseline(world, index, settings, now);
  }
  Snapshot snapshot() { return {world, now, timers, consumers, settings}; }
  NodeExplanation node(const std::string& name) {
    const Snapshot s = snapshot();
    return explain_node(s, index, all_findings(s, index), name).value_or(NodeExplanation());
  }
  PodExplanation pod(const std::string& json) {
    const Snapshot s = snapshot();
    auto out = explain_pod(s, index, all_findings(s, index), json);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return out.value_or(PodExplanation());
  }
};

std::string pod(const std::string& limits, const std::string& spec = "", const std::string& meta = "",
                const std::string& status = R"("phase":"Pending")") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","namespace":"team","uid":"u1")" + meta +
         R"(},"spec":{"schedulerName":"default-scheduler",)" + spec +
         R"("containers":[{"name":"c","image":"i","resources":{"limits":{)" + limits + R"(}}}]},"status":{)" + status +
         "}}";
}

std::string says(const std::string& message) {
  return R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":")" + message + R"("}])";
}

std::string by(const std::string& scheduler, std::string pod) {
  constexpr std::string_view kUsual = "default-scheduler";
  return pod.replace(pod.find(kUsual), kUsual.size(), scheduler);
}

TEST(ExplainNode, ANodeOfNosSaysWhoIsInChargeAndNothingElse) {
  Explained explained(cluster(kSliced, ", nos.nebuly.com/gpu-partitioning: mps", R"(nvidia.com/gpu: "2")"));
  const NodeExplanation out = explained.node("gpu-1");
  EXPECT_EQ(out.shown.state, "PartitionedByNos");
  EXPECT_THAT(out.shown.message, HasSubstr("nos partitions the GPUs of this node (label "
                                           "nos.nebuly.com/gpu-partitioning=mps): the operator leaves it alone"));
  EXPECT_EQ(out.provider, "nos");
  EXPECT_EQ(out.policy, "");
  EXPECT_EQ(out.next, "");
  EXPECT_THAT(out.findings, IsEmpty());
  const Snapshot s = explained.snapshot();
  const Audit all = audit(s, explained.index);
  EXPECT_EQ(all.count(Severity::error) + all.count(Severity::warning), 0);
  EXPECT_EQ(all.count(Severity::info), 1);
  EXPECT_EQ(all.plugins, (std::map<std::string, std::int64_t>{{"nos", 1}}));
}

struct Case {
  const char* name;
  std::string manifests;
  std::string pod;
  std::string code;
  std::string command;  // A part of it.
};

TEST(ExplainPod, TheNodeThatComesClosestTellsTheCause) {
  const std::string four = R"(nvidia.com/gpu: "8")";
  const std::string shared = R"(nvidia.com/gpu: "0", nvidia.com/gpu.shared: "8")";
  const std::string plain = cluster(kSliced, "", four);
  const std::string ask = R"("nvidia.com/gpu":"1")";
  const std::string deployment =
      R"(,"labels":{"pod-template-hash":"5d9"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d9","uid":"r","controller":true}])";
  const std::string busy = plain + R"(---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: team}
spec: {nodeName: gpu-1, containers: [{name: c, resources: {limits: {nvidia.com/gpu: "8"}}}]}
status: {phase: Running}
)";
  const std::vector<Case> cases{
      {"renamed", cluster(kSliced, "", shared), pod(ask), "Renamed", "sed 's#nvidia.com/gpu:#nvidia.com/gpu.shared:#'"},
      {"renamed, of a Deployment", cluster(kSliced, "", shared), pod(ask, "", deployment), "Renamed",
       "kubectl set resources deployment web --namespace team --limits=nvidia.com/gpu.shared=1,nvidia.com/gpu=0"},
      {"more than any node has", plain, pod(R"("nvidia.com/gpu":"9")", "", deployment), "TooFew",
       "--limits=nvidia.com/gpu=8"},
      {"a resource that nobody serves", plain, pod(R"("nvidia.com/mig-1g.5gb":"1")"), "NotServed", "status"},
      {"allocatable is gone", cluster(kSliced, "", R"(nvidia.com/gpu: "0")"), pod(ask), "NotServed", "status"},
      {"another node is wanted", plain, pod(ask, R"("nodeSelector":{"zone":"b"},)"), "NotSelected",
       "kubectl label node gpu-1 zone=b --overwrite"},
      {"an affinity for other nodes", plain,
       pod(ask,
           R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]}]}}},)"),
       "NotSelected", "kubectl get nodes --show-labels"},
      {"a taint", cluster(kSliced, "", four, "{taints: [{key: gpu, value: only, effect: NoSchedule}]}"),
       pod(ask, R"("tolerations":[{"key":"mine","operator":"Exists"}],)"), "NotTolerated",
       R"(kubectl patch pod train --namespace team --type merge -p '{"spec":{"tolerations":[{"key":"mine","operator":"Exists"},{"effect":"NoSchedule","key":"gpu","operator":"Equal","value":"only"}]}}')"},
      {"a taint, of a Deployment", cluster(kSliced, "", four, "{taints: [{key: gpu, effect: NoSchedule}]}"),
       pod(ask, R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists"}],)", deployment),
       "NotTolerated",
       R"(kubectl patch deployment web --namespace team --type merge -p '{"spec":{"template":{"spec":{"tolerations":[{"effect":"NoSchedule","key":"gpu","operator":"Exists"}]}}}}')"},
      {"too little memory", plain, pod(ask, "", "", says("0/1 nodes are available: 1 Insufficient memory.")),
       "NotEnoughMemory", "kubectl describe node gpu-1"},
      {"too little cpu", plain, pod(ask, "", "", says("0/1 nodes are available: 1 Insufficient cpu.")), "NotEnoughCPU",
       "kubectl describe node gpu-1"},
      {"KAI's scheduler, without KAI", plain, by("kai-scheduler", pod(ask)), "NoScheduler",
       "sed 's#schedulerName: .*#schedulerName: default-scheduler#'"},
      {"a scheduler that nobody runs", plain, by("volcano", pod(ask, "", deployment)), "NoScheduler",
       R"(kubectl patch deployment web --namespace team --type merge -p '{"spec":{"template":{"spec":{"schedulerName":"default-scheduler"}}}}')"},
      {"another scheduler, which has spoken", plain,
       by("volcano", pod(ask, "", "", says("0/1 nodes are available: 1 Insufficient cpu."))), "NotEnoughCPU",
       "kubectl describe node gpu-1"},
      {"a taint that is tolerated",
       cluster(kSliced, "", four, "{taints: [{key: gpu, value: only, effect: NoSchedule}]}"),
       pod(ask, R"("tolerations":[{"key":"gpu","operator":"Exists"}],)"), "NotScheduledYet",
       "kubectl describe pod train"},
      {"cordoned by somebody", cluster(kSliced, "", four, "{unschedulable: true}"), pod(ask), "Cordoned",
       "kubectl uncordon gpu-1"},
      {"full", busy, pod(ask), "AllInUse", "explain gpu-1"},
      {"refused by the plugin", cluster(kRefusing, "", four), pod(R"("nvidia.com/gpu":"2")", "", deployment),
       "RequestRefused", "--limits=nvidia.com/gpu=1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Explained explained(c.manifests);
    const PodExplanation out = explained.pod(c.pod);
    ASSERT_FALSE(out.causes.empty());
    EXPECT_EQ(out.causes.front().code, c.code) << out.causes.front().text;
    EXPECT_THAT(out.causes.front().command, HasSubstr(c.command));
    EXPECT_EQ(out.hindered(), c.code != "NotScheduledYet");
  }
}

TEST(ExplainPod, AYoungPodOfAnotherSchedulerIsWaitedFor) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  const PodExplanation out = explained.pod(
      by("volcano", pod(R"("nvidia.com/gpu":"1")", "", R"(,"creationTimestamp":"2026-01-02T23:59:30Z")")));
  ASSERT_EQ(out.causes.size(), 1U);
  EXPECT_EQ(out.causes[0].code, "NoScheduler");
  EXPECT_FALSE(out.hindered());
}

TEST(ExplainPod, SpeaksOfSeveralNodesAsOfSeveral) {
  const auto second = [](const std::string& spec) {
    return R"(---
apiVersion: v1
kind: Node
metadata: {name: gpu-2, labels: {nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2"}}
spec: )" + spec +
           R"(
status: {capacity: {nvidia.com/gpu: "8"}, allocatable: {nvidia.com/gpu: "8"}, conditions: [{type: Ready, status: "True"}]}
)";
  };
  const std::string eight = R"(nvidia.com/gpu: "8")";
  const std::string cordoned = "{unschedulable: true}";
  const std::string tainted = "{taints: [{key: gpu, effect: NoSchedule}]}";
  const std::string ask = R"("nvidia.com/gpu":"1")";
  const struct {
    std::string spec, pod, wanted;
  } cases[] = {
      {cordoned, pod(ask), "2 nodes (gpu-1, gpu-2) would do, and are cordoned"},
      {tainted, pod(ask), "the pod does not tolerate a taint of 2 nodes (gpu-1, gpu-2): gpu:NoSchedule"},
      {"{}", pod(ask), "2 nodes (gpu-1, gpu-2) have room for it"},
      {"{}", pod(ask, R"("nodeSelector":{"zone":"b"},)"), "2 nodes (gpu-1, gpu-2) come closest, and there label zone"},
      {"{}", pod(R"("nvidia.com/gpu.shared":"1")"), "2 nodes (gpu-1, gpu-2) offer nvidia.com/gpu and not"},
  };
  for (const auto& c : cases) {
    Explained explained(cluster(kSliced, "", eight, c.spec) + second(c.spec));
    const PodExplanation out = explained.pod(c.pod);
    ASSERT_FALSE(out.causes.empty()) << c.wanted;
    EXPECT_THAT(out.causes.front().text, HasSubstr(c.wanted));
  }
}

TEST(ExplainPod, WhatTheSchedulerSaysIsPassedOnWhereANodeHasRoom) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  const PodExplanation out = explained.pod(pod(
      R"("nvidia.com/gpu":"1")", "", "",
      R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"0/1 nodes: memory"}])"));
  ASSERT_EQ(out.causes.size(), 1U);
  EXPECT_THAT(out.causes[0].text, HasSubstr("0/1 nodes: memory"));
  ASSERT_EQ(out.nodes.size(), 1U);
  EXPECT_EQ(out.nodes[0].node, "gpu-1");
}

TEST(ExplainPod, OneThatTheKubeletGaveBackIsToldWhy) {
  const std::string status = R"("phase":"Failed","reason":"UnexpectedAdmissionError")";
  const std::string placed = R"("nodeName":"gpu-1",)";
  Explained refusing(cluster(kRefusing, "", R"(nvidia.com/gpu: "8")"));
  EXPECT_EQ(refusing.pod(pod(R"("nvidia.com/gpu":"2")", placed, "", status)).causes.front().code, "RequestRefused");
  EXPECT_EQ(refusing.pod(pod(R"("nvidia.com/gpu":"1")", placed, "", status)).causes.front().code, "DeviceNotGiven");
  EXPECT_THAT(refusing.pod(pod(R"("nvidia.com/gpu":"1")", placed, "", status)).causes.front().command,
              HasSubstr("kubectl delete pod train --namespace team"));
}

TEST(ExplainPod, OneThatRunsIsToldWhatMakesItSlow) {
  const std::string beside = cluster(kSliced, "", R"(nvidia.com/gpu: "8")") + R"(---
apiVersion: v1
kind: Pod
metadata: {name: thief, namespace: other}
spec: {nodeName: gpu-1, containers: [{name: c, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}
status: {phase: Running}
)";
  Explained explained(beside);
  const PodExplanation out =
      explained.pod(pod(R"("nvidia.com/gpu":"2")", R"("nodeName":"gpu-1",)", "", R"("phase":"Running")"));
  std::map<std::string, Severity> codes;
  for (const PodCause& cause : out.causes) codes[cause.code] = cause.severity;
  EXPECT_EQ(codes.count("UnaccountedUse"), 1U);
  EXPECT_EQ(codes.count("SeveralReplicas"), 1U);
  EXPECT_EQ(codes.count("SharesGPUs"), 1U);
  EXPECT_FALSE(out.hindered());
}

TEST(ExplainPod, OneThatANodeWaitsForIsToldSo) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  ConfigMap map = *explained.world.configmaps.find(k8s::ObjectKey{"gpu-operator", "plugin-config"});
  std::string text = *map.data.at("any");
  text.replace(text.find("replicas: 4"), 11, "replicas: 2");
  map.data["any"] = std::make_shared<const std::string>(text);
  map.data_changed = explained.now;
  explained.world.configmaps.apply(map);
  SharingRollout rollout;
  rollout.meta.name = "default-any-1";
  rollout.phase = "Progressing";
  rollout.status_json = R"({"nodes":[{"name":"gpu-1","state":"Waiting","message":"waits for team/train"}]})";
  explained.world.rollouts.apply(rollout);
  explained.index.note_everything_changed();
  const PodExplanation out =
      explained.pod(pod(R"("nvidia.com/gpu":"1")", R"("nodeName":"gpu-1",)", "", R"("phase":"Running")"));
  ASSERT_FALSE(out.causes.empty());
  EXPECT_EQ(out.causes.front().code, "NodeWaits");
  EXPECT_THAT(out.causes.front().text, HasSubstr("waits for this very pod to end"));
  EXPECT_EQ(explained.node("gpu-1").shown.message, "waits for team/train");
  explained.world.rollouts.erase({"", "default-any-1"});
  EXPECT_EQ(explained.node("gpu-1").shown.state, "Pending");
  EXPECT_EQ(explained.node("gpu-1").shown.message, "") << "nobody keeps it, and no step has been taken";
  rollout.status_json.replace(rollout.status_json.find("team/train"), 10, "team/train-2, team/other");
  explained.world.rollouts.apply(rollout);
  const PodExplanation beside =
      explained.pod(pod(R"("nvidia.com/gpu":"1")", R"("nodeName":"gpu-1",)", "", R"("phase":"Running")"));
  for (const PodCause& cause : beside.causes) EXPECT_NE(cause.code, "NodeWaits") << "another pod's name begins so";
}

TEST(ExplainPod, ASharePodWithoutKaiOrWithAWrongAnnotationIsToldSo) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  std::string asks = pod("", "", R"(,"annotations":{"gpu-fraction":"1.5"})");
  asks.replace(asks.find("default-scheduler"), 17, "kai-scheduler");
  const PodExplanation out = explained.pod(asks);
  ASSERT_EQ(out.causes.size(), 2U);
  EXPECT_EQ(out.causes[0].code, "GPUFractionInvalid");
  EXPECT_EQ(out.causes[1].code, "NoKAI");
  EXPECT_NE(out.causes[1].command, "");
  EXPECT_THAT(explained.pod(pod("")).causes, IsEmpty());
  EXPECT_EQ(explained.pod(pod("")).asks, "");
}

TEST(ExplainPod, AnInferenceServerThatReservesMoreThanItsSliceIsToldTheNumber) {
  constexpr const char* kFourClients = R"(    sharing:
      mps:
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";
  const auto server = [](const std::string& args, const std::string& spec, const std::string& status) {
    std::string out = pod(R"("nvidia.com/gpu":"1")", spec, "", status);
    return out.replace(out.find(R"("image":"i")"), 11, R"("image":"vllm/vllm-openai","args":[)" + args + "]");
  };
  const auto told = [&](const char* profile, const std::string& asked) {
    for (const PodCause& cause : Explained(cluster(profile, "", R"(nvidia.com/gpu: "8")")).pod(asked).causes) {
      if (cause.code == "MemoryFractionAboveSlice") return cause.text;
    }
    return std::string();
  };
  const std::string running = R"("phase":"Running")";
  const std::string there = R"("nodeName":"gpu-1",)";
  const std::string too_much = R"("--gpu-memory-utilization","0.9")";
  EXPECT_THAT(told(kFourClients, server(too_much, there, running)), HasSubstr("at most 0.22"));
  EXPECT_THAT(told(kFourClients, server(too_much, "", R"("phase":"Pending")")), HasSubstr("node gpu-1 shares"));
  EXPECT_THAT(told(kFourClients, server(R"("--model","m")", there, running)), HasSubstr("its default is 0.9"));
  EXPECT_EQ(told(kFourClients, server(R"("--gpu-memory-utilization=0.2")", there, running)), "");
  EXPECT_EQ(told(kSliced, server(too_much, there, running)), "") << "time-slicing limits no memory";
}

TEST(ExplainNode, HoldsWhoChoseTheProfileWhatItMustShowAndWhatToDo) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "2")"));
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
  EXPECT_EQ(out.next, "gpu-sharing-operator rollout start default --adopt");
}

TEST(ExplainNode, WithoutARecordANodeWhoseLabelNamesNoKeySaysSo) {
  const std::string eight = R"(nvidia.com/gpu: "8")";
  Explained typo(cluster(kSliced, ", nvidia.com/device-plugin.config: typo", eight));
  typo.world.configmaps.erase({"gpu-sharing-operator", "gpu-sharing-operator-state"});
  typo.index.note_everything_changed();
  typo.index.refresh(typo.world, typo.settings);
  const ShownState shown = shown_state(typo.world, typo.index, *typo.world.nodes.find("gpu-1"));
  EXPECT_EQ(shown.state, "Unrecorded");
  EXPECT_THAT(shown.message, HasSubstr("names no key of the ConfigMap"));
}

TEST(ExplainNode, AHeldNodeAndOneWithoutAPluginHaveTheirOwnRemedies) {
  Explained held(cluster(kSliced, "}, annotations: {gpusharing.dev/hold: \"true\"", R"(nvidia.com/gpu: "8")"));
  EXPECT_EQ(held.node("gpu-1").shown.state, "UpToDate");  // Held is what keeps it from something that is due.
  EXPECT_THAT(held.node("gpu-1").notes, Contains(HasSubstr("keeps the operator off it")));
  EXPECT_EQ(held.node("gpu-1").next, "kubectl annotate node gpu-1 gpusharing.dev/hold-");
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

// What to do names the label, the owner and the way of the installation that is there.
TEST(ExplainNode, RemediesNameWhatTheInstallationHas) {
  const std::string eight = R"(nvidia.com/gpu: "8")";
  const std::string own_label = with(cluster(kSliced, ", example.com/gpu-profile: typo", eight), "env: [{name: DEFAULT",
                                     "env: [{name: NODE_LABEL, value: example.com/gpu-profile}, {name: DEFAULT");
  EXPECT_EQ(Explained(own_label).node("gpu-1").next, "kubectl label node gpu-1 example.com/gpu-profile-");

  const std::string bare = with(cluster(kSliced, "", eight), "name: config, mountPath: /available-configs",
                                "name: config, mountPath: /elsewhere");
  EXPECT_EQ(Explained(bare).node("gpu-1").next, "kubectl edit daemonset plugin --namespace gpu-operator");
  const std::string_view daemonset = "{name: plugin, namespace: gpu-operator, uid: ds-plugin";
  const std::string chart =
      with(bare, daemonset, std::string(daemonset) + ", labels: {app.kubernetes.io/instance: nvdp-1}");
  EXPECT_EQ(Explained(chart).node("gpu-1").next,
            "helm upgrade nvdp-1 nvdp/nvidia-device-plugin --namespace gpu-operator --reuse-values --set "
            "config.name=CONFIGMAP,config.default=KEY");
  const std::string of_operator =
      with(bare, daemonset,
           std::string(daemonset) +
               ", ownerReferences: [{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: gpus, "
               "uid: u, controller: true}]");
  EXPECT_THAT(Explained(of_operator).node("gpu-1").next,
              HasSubstr("kubectl patch clusterpolicies.nvidia.com/gpus --type merge"));
}

TEST(ExplainNode, AKeyThatIsNotThereIsNotLinted) {
  const NodeExplanation invalid = Explained(cluster("    sharing: [", "", R"(nvidia.com/gpu: "2")")).node("gpu-1");
  EXPECT_EQ(invalid.next,
            "kubectl get configmap plugin-config --namespace gpu-operator -o yaml | gpu-sharing-operator lint -");
  EXPECT_EQ(invalid.strategy, "invalid");
  std::string missing = cluster(kSliced, "", R"(nvidia.com/gpu: "2")");
  missing.replace(missing.find("  any: |"), 8, "  other: |");
  EXPECT_EQ(Explained(missing).node("gpu-1").next, "kubectl edit configmap plugin-config --namespace gpu-operator");
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
                               [&](const Finding& f) { return f.reason == reason && f.object.name == name; });
  };
  EXPECT_EQ(out.nodes, 2);
  EXPECT_EQ(out.plugins.at("v0.17.1"), 1);
  EXPECT_EQ(out.profiles.at("plugin-config/any"), 1);
  EXPECT_TRUE(has(kPreexistingDrift, "gpu-1"));
  EXPECT_TRUE(has("NoPlugin", "bare"));
  EXPECT_TRUE(has(kConfigInvalid, "plugin-config"));
  EXPECT_TRUE(std::ranges::is_sorted(out.findings, {}, &Finding::severity));
}

}  // namespace
}  // namespace gso
