// explain POD over manifests: which cause a pod gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/pod.h"
#include "reconcilers/explain/pod_parts.h"
#include "tests/reconcilers/explain/asked_pod.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_pod_test {
namespace {

std::string says(const std::string& message) {
  return R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":")" + message + R"("}])";
}

std::string by(const std::string& scheduler, std::string pod) {
  constexpr std::string_view kUsual = "default-scheduler";
  return pod.replace(pod.find(kUsual), kUsual.size(), scheduler);
}

std::string with_another_container(std::string pod) {
  const std::string containers = R"("containers":[)";
  return pod.insert(pod.find(containers) + containers.size(),
                    R"({"name":"b","image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}},)");
}

constexpr const char* kRenaming = R"(    sharing:
      timeSlicing:
        renameByDefault: true
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";
constexpr const char* kOfJob =
    R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train","uid":"j","controller":true}])";

// What the command would change: the JSON of its patch, "" for a command that only reads, and "CHANGES" for any other.
std::string changes_of(const std::string& command) {
  for (const char* reads : {"kubectl get ", "kubectl describe ", "kubectl logs ", "gpu-sharing-operator explain ",
                            "gpu-sharing-operator status", "gpu-sharing-operator rollout status"}) {
    if (command.starts_with(reads)) return "";
  }
  constexpr std::string_view kPatch = "kubectl patch deployment web --namespace team --patch '";
  if (command.starts_with(kPatch) && command.ends_with('\''))
    return command.substr(kPatch.size(), command.size() - kPatch.size() - 1);
  return "CHANGES: " + command;
}

// Nobody checks what a pod's author writes as its owner.
TEST(ExplainPod, AnOwnerThatIsNoNameOfAnObjectBecomesNoPartOfACommand) {
  const auto command = [](const std::string& kind, const std::string& name) {
    const auto asked = read_pod(pod("", "",
                                    R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":")" + kind +
                                        R"(","name":")" + name + R"(","uid":"j","controller":true}])"));
    return show_template(*asked).text();
  };
  EXPECT_EQ(command("Job", "train"), "kubectl get job train --namespace team --output yaml");
  const std::string of_pod = "kubectl get pod train --namespace team --output yaml";
  for (const char* name : {"train; reboot", "$(reboot)", "--kubeconfig=/tmp/x", "a'b", "a\\nb"}) {
    EXPECT_EQ(command("Job", name), of_pod) << name;
    EXPECT_EQ(command(name, "train"), of_pod) << name;
  }
}

struct Case {
  const char* name;
  std::string manifests;
  std::string pod;
  std::string code;
  std::string changes = "";
};

TEST(ExplainPod, EachCauseIsNamedAndItsCommandChangesNothingOfOthers) {
  const std::string four = R"(nvidia.com/gpu: "8")";
  const std::string shared = R"(nvidia.com/gpu: "0", nvidia.com/gpu.shared: "8")";
  const std::string plain = cluster(kSliced, "", four);
  const std::string ask = R"("nvidia.com/gpu":"1")";
  const std::string renamed =
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":null,"nvidia.com/gpu.shared":"1"}}}]}}}})";
  const std::string asks_for_one =
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}}})";
  const std::string busy = plain + R"(---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: team}
spec: {nodeName: gpu-1, containers: [{name: c, resources: {limits: {nvidia.com/gpu: "8"}}}]}
status: {phase: Running}
)";
  const auto selects = [&](const std::string& label, const std::string& value) {
    return pod(ask, R"("nodeSelector":{")" + label + R"(":")" + value + R"("},)");
  };
  const auto tainted = [&](const std::string& taint) {
    return cluster(kSliced, "", four, "{taints: [{" + taint + "}]}");
  };
  const auto without = [](std::string manifests, const std::string& part, const std::string& by) {
    const std::size_t at = manifests.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return manifests.replace(at, part.size(), by);
  };
  const std::string not_ready = without(plain, R"(type: Ready, status: "True")", R"(type: Ready, status: "False")");
  const std::string changing = without(
      cluster(kSliced, "}, annotations: {gpusharing.dev/owned: \"x\"", four, "{unschedulable: true}"),
      R"(gpusharing.dev/owned: "x")",
      R"(gpusharing.dev/change: '{"v":1,"policy":"default","configMap":"gpu-operator/mps-config","key":"any","product":"","from":"","to":"v1-0","kind":"plugin-only","cause":"edited","begun":"2026-01-02T23:00:00Z","listed":"2026-01-02T23:00:00Z","served":true,"pods":{},"cordoned":true}')");
  const std::string other_model = plain + R"(---
apiVersion: v1
kind: Node
metadata: {name: t4, labels: {nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2", model: t4}}
status: {capacity: {nvidia.com/gpu: "8"}, allocatable: {nvidia.com/gpu: "8"}, conditions: [{type: Ready, status: "True"}]}
)";
  const std::string cpu_only = plain + R"(---
apiVersion: v1
kind: Node
metadata: {name: cpu, labels: {zone: b}}
status: {conditions: [{type: Ready, status: "True"}]}
)";
  const std::vector<Case> cases{
      {"renamed", cluster(kRenaming, "", shared), pod(ask), "Renamed"},
      {"renamed, of a Deployment", cluster(kRenaming, "", shared), pod(ask, "", kOfDeployment), "Renamed", renamed},
      {"renamed, of a Job", cluster(kRenaming, "", shared), pod(ask, "", kOfJob), "Renamed"},
      {"more than any node has", plain, pod(R"("nvidia.com/gpu":"9")", "", kOfDeployment), "TooFew"},
      {"a resource that nobody serves", plain, pod(R"("nvidia.com/mig-1g.5gb":"1")"), "NotServed"},
      {"a misspelt resource", plain, pod(R"("nvidia.com/gpus":"1")"), "NotServed"},
      {"a misspelt resource, of a Deployment", plain, pod(R"("nvidia.com/gpus":"1")", "", kOfDeployment), "NotServed",
       R"({"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1","nvidia.com/gpus":null}}}]}}}})"},
      {"allocatable is gone", cluster(kSliced, "", R"(nvidia.com/gpu: "0")"), pod(ask), "NoneAllocatable"},
      {"another zone", plain, selects("topology.kubernetes.io/zone", "b"), "NotSelected"},
      {"a node that is gone", plain, selects("kubernetes.io/hostname", "gone"), "NotSelected"},
      {"another node pool", plain, selects("cloud.google.com/gke-nodepool", "b"), "NotSelected"},
      {"the product without its suffix", cluster(kSliced, ", nvidia.com/gpu.product: Tesla-T4-SHARED", four),
       selects("nvidia.com/gpu.product", "Tesla-T4"), "NotSelected"},
      {"an affinity for other nodes", plain,
       pod(ask,
           R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]}]}}},)"),
       "NotSelected"},
      {"the selected model has none allocatable, another one has",
       without(other_model, R"(allocatable: {nvidia.com/gpu: "8"})", R"(allocatable: {nvidia.com/gpu: "0"})"),
       pod(ask,
           R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"model","operator":"DoesNotExist"}]}]}}},)"),
       "NoneAllocatable"},
      {"nodes without GPUs", cpu_only, selects("zone", "b"), "NoGPUsThere"},
      {"a taint", tainted("key: gpu, value: only, effect: NoSchedule"), pod(ask), "NotTolerated"},
      {"a taint, of a Deployment", tainted("key: gpu, effect: NoSchedule"),
       pod(ask,
           R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists"},{"key":"mine","operator":"Exists"}],)",
           kOfDeployment),
       "NotTolerated",
       R"({"spec":{"template":{"spec":{"tolerations":[{"key":"mine","operator":"Exists"},{"effect":"NoSchedule","key":"gpu","operator":"Exists"}]}}}})"},
      {"a taint that evicts", tainted("key: maintenance, effect: NoExecute"), pod(ask, "", kOfDeployment),
       "NotTolerated"},
      {"an autoscaler's taint", tainted("key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule"),
       pod(ask, "", kOfDeployment), "NotTolerated"},
      {"disk pressure", tainted("key: node.kubernetes.io/disk-pressure, effect: NoSchedule"),
       pod(ask, "", kOfDeployment), "NodeCondition"},
      {"no network", tainted("key: node.kubernetes.io/network-unavailable, effect: NoSchedule"), pod(ask),
       "NodeCondition"},
      {"unreachable", tainted("key: node.kubernetes.io/unreachable, effect: NoExecute"), pod(ask), "NotReady"},
      {"not Ready", not_ready, pod(ask), "NotReady"},
      {"cordoned by somebody", cluster(kSliced, "", four, "{unschedulable: true}"), pod(ask), "Cordoned"},
      {"in a change of the operator", changing, pod(ask), "NodeInChange"},
      {"full", busy, pod(ask), "AllInUse"},
      {"refused by the plugin", cluster(kRefusing, "", four), pod(R"("nvidia.com/gpu":"2")", "", kOfDeployment),
       "RequestRefused", asks_for_one},
      {"refused, and more than any node has", cluster(kRefusing, "", four),
       pod(R"("nvidia.com/gpu":"9")", "", kOfDeployment), "RequestRefused", asks_for_one},
      {"refused, and the node is cordoned", cluster(kRefusing, "", four, "{unschedulable: true}"),
       pod(R"("nvidia.com/gpu":"2")"), "RequestRefused"},
      {"refused, and none is allocatable", cluster(kRefusing, "", R"(nvidia.com/gpu: "0")"),
       pod(R"("nvidia.com/gpu":"2")"), "RequestRefused"},
      {"one for each of two containers is not refused", cluster(kRefusing, "", four), with_another_container(pod(ask)),
       "NotScheduledYet"},
      {"gated by Kueue", plain, pod(ask, R"("schedulingGates":[{"name":"kueue.x-k8s.io/admission"}],)"),
       "SchedulingGated"},
      {"too little memory", plain, pod(ask, "", "", says("0/1 nodes are available: 1 Insufficient memory.")),
       "NotEnoughMemory"},
      {"too little cpu", plain, pod(ask, "", "", says("0/1 nodes are available: 1 Insufficient cpu.")), "NotEnoughCPU"},
      {"another reason of the scheduler", plain, pod(ask, "", "", says("0/1 nodes are available: 1 Too many pods.")),
       "SchedulerRefuses"},
      {"KAI's scheduler, without KAI", plain, by("kai-scheduler", pod(ask)), "NoScheduler"},
      {"a scheduler that nobody runs", plain, by("volcano", pod(ask, "", kOfDeployment)), "NoScheduler",
       R"({"spec":{"template":{"spec":{"schedulerName":"default-scheduler"}}}})"},
      {"another scheduler, which has spoken", plain,
       by("volcano", pod(ask, "", "", says("0/1 nodes are available: 1 Insufficient cpu."))), "NotEnoughCPU"},
      {"a taint that is tolerated", tainted("key: gpu, value: only, effect: NoSchedule"),
       pod(ask, R"("tolerations":[{"key":"gpu","operator":"Exists"}],)"), "NotScheduledYet"},
      {"it waits for victims", plain, pod(ask, "", "", R"("phase":"Pending","nominatedNodeName":"gpu-1")"),
       "Preempting"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Explained explained(c.manifests);
    const PodExplanation out = explained.pod(c.pod);
    ASSERT_FALSE(out.causes.empty());
    EXPECT_EQ(out.causes.front().reason.code, c.code) << out.causes.front().reason.message;
    EXPECT_EQ(changes_of(out.causes.front().cure.command.text()), c.changes);
    EXPECT_EQ(out.hindered(), c.code != "NotScheduledYet" && c.code != "Preempting");
    for (std::size_t i = 1; i < out.causes.size(); ++i) EXPECT_EQ(changes_of(out.causes[i].cure.command.text()), "");
  }
}

// A node that would take the request is nearer than one whose plugin refuses it; the refusal is named after it.
TEST(ExplainPod, ANodeThatTakesTheRequestIsNamedBeforeOneThatRefusesIt) {
  std::string manifests = cluster(kRefusing, "", R"(nvidia.com/gpu: "8")");
  const std::string any = "  any: |";
  manifests.replace(manifests.find(any), any.size(), "  whole: |\n    version: v1\n" + any);
  manifests += R"(---
apiVersion: v1
kind: Node
metadata: {name: gpu-2, labels: {nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2", nvidia.com/device-plugin.config: whole}}
spec: {unschedulable: true}
status: {capacity: {nvidia.com/gpu: "2"}, allocatable: {nvidia.com/gpu: "2"}, conditions: [{type: Ready, status: "True"}]}
)";
  Explained explained(manifests);
  const PodExplanation out = explained.pod(pod(R"("nvidia.com/gpu":"2")"));
  std::vector<std::string> codes;
  for (const PodCause& cause : out.causes) codes.push_back(cause.reason.code);
  EXPECT_EQ(codes, (std::vector<std::string>{"Cordoned", "RequestRefused"}));
}

TEST(ExplainPod, OnlyTheContainerThatAsksForAGpuIsChanged) {
  const std::string shared = R"(nvidia.com/gpu: "0", nvidia.com/gpu.shared: "8")";
  std::string asks = pod(R"("nvidia.com/gpu":"1")", "", kOfDeployment);
  const std::string containers = R"("containers":[)";
  asks.insert(
      asks.find(containers) + containers.size(),
      R"({"name":"proxy","image":"envoy"},{"name":"b","image":"i","resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}},)");
  Explained explained(cluster(kRenaming, "", shared));
  const PodExplanation out = explained.pod(asks);
  ASSERT_FALSE(out.causes.empty());
  EXPECT_EQ(
      changes_of(out.causes.front().cure.command.text()),
      R"({"spec":{"template":{"spec":{"containers":[{"name":"b","resources":{"limits":{"nvidia.com/gpu":null,"nvidia.com/gpu.shared":"1"},"requests":{"nvidia.com/gpu":null}}},)"
      R"({"name":"c","resources":{"limits":{"nvidia.com/gpu":null,"nvidia.com/gpu.shared":"1"}}}]}}}})");
}

TEST(ExplainPod, NodesWithAnotherObstacleAreNamedAfterTheNearest) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")", "{unschedulable: true}") + R"(---
apiVersion: v1
kind: Node
metadata: {name: gpu-2, labels: {nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2"}}
status: {capacity: {nvidia.com/gpu: "8"}, allocatable: {nvidia.com/gpu: "8"}, conditions: [{type: Ready, status: "False"}]}
)");
  const PodExplanation out = explained.pod(pod(R"("nvidia.com/gpu":"1")"));
  std::vector<std::string> codes;
  for (const PodCause& cause : out.causes) codes.push_back(cause.reason.code);
  EXPECT_EQ(codes, (std::vector<std::string>{"Cordoned", "NotReady"}));
}

TEST(ExplainPod, AYoungPodOfAnotherSchedulerIsWaitedFor) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  const PodExplanation out = explained.pod(
      by("volcano", pod(R"("nvidia.com/gpu":"1")", "", R"(,"creationTimestamp":"2026-01-02T23:59:30Z")")));
  ASSERT_EQ(out.causes.size(), 1U);
  EXPECT_EQ(out.causes[0].reason.code, "NoScheduler");
  EXPECT_FALSE(out.hindered());
}

// docs/json.md: the deciding one first.
TEST(ExplainPod, AnErrorComesBeforeAWarningThatStandsBeforeIt) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  const std::string notes = R"(,"annotations":{"gpu-fraction-container-name":"c","mps":"true"})";
  const PodExplanation out = explained.pod(by("kai-scheduler", pod(R"("nvidia.com/gpu":"1")", "", notes)));
  ASSERT_GE(out.causes.size(), 2U);
  EXPECT_EQ(out.causes[0].reason.code, "MPSWithoutFraction");
  EXPECT_EQ(out.causes.back().reason.code, "AnnotationIgnored");
}

}  // namespace
}  // namespace gso::explain_pod_test
