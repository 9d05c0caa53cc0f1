// explain POD over manifests: which cause a pod gets that has its node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "reconcilers/explain/pod.h"
#include "tests/reconcilers/explain/asked_pod.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_pod_on_node_test {
namespace {

using testing::HasSubstr;

TEST(ExplainPodOnNode, OneThatTheKubeletRejectedGetsTheReason) {
  const std::string status = R"("phase":"Failed","reason":"UnexpectedAdmissionError")";
  const std::string placed = R"("nodeName":"gpu-1",)";
  Explained refusing(cluster(kRefusing, "", R"(nvidia.com/gpu: "8")"));
  EXPECT_EQ(refusing.pod(pod(R"("nvidia.com/gpu":"2")", placed, "", status)).causes.front().reason.code,
            "RequestRefused");
  EXPECT_EQ(refusing.pod(pod(R"("nvidia.com/gpu":"1")", placed, "", status)).causes.front().reason.code,
            "DeviceNotGiven");
  EXPECT_EQ(refusing.pod(pod(R"("nvidia.com/gpu":"1")", placed, "", status)).causes.front().cure.command.text(),
            "kubectl describe pod train --namespace team");
}

TEST(ExplainPodOnNode, OneThatRunsGetsTheReasonWhyItIsSlow) {
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
  for (const PodCause& cause : out.causes) codes[cause.reason.code] = cause.severity;
  EXPECT_EQ(codes.count("UnaccountedUse"), 1U);
  EXPECT_EQ(codes.count("SeveralReplicas"), 1U);
  EXPECT_EQ(codes.count("SharesGPUs"), 1U);
  EXPECT_FALSE(out.hindered());
  // One that claims another device shares no GPU with them.
  const std::string claims = R"("nodeName":"gpu-1","resourceClaims":[{"name":"n","resourceClaimName":"nic"}],)";
  for (const PodCause& cause : explained.pod(pod("", claims, "", R"("phase":"Running")")).causes)
    EXPECT_NE(cause.reason.code, "SharesGPUs");
}

TEST(ExplainPodOnNode, OneThatANodeWaitsForIsReportedAsSuch) {
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
  rollout.status_json =
      R"({"nodes":[{"name":"gpu-1","state":"Waiting","reason":"WaitingForWorkloads","message":"waits for team/train"}]})";
  explained.world.rollouts.apply(rollout);
  explained.index.note_everything_changed();
  const PodExplanation out =
      explained.pod(pod(R"("nvidia.com/gpu":"1")", R"("nodeName":"gpu-1",)", "", R"("phase":"Running")"));
  ASSERT_FALSE(out.causes.empty());
  EXPECT_EQ(out.causes.front().reason.code, "NodeWaits");
  EXPECT_THAT(out.causes.front().reason.message, HasSubstr("waits for this pod to end"));
  EXPECT_EQ(explained.node("gpu-1").shown.message, "waits for team/train");
  explained.world.rollouts.erase({"", "default-any-1"});
  EXPECT_EQ(explained.node("gpu-1").shown.state, "Pending");
  EXPECT_THAT(explained.node("gpu-1").shown.message, testing::StartsWith("Settling: nodes start at "))
      << "nobody keeps it, and no step has been taken";
  rollout.status_json.replace(rollout.status_json.find("team/train"), 10, "team/train-2, team/other");
  explained.world.rollouts.apply(rollout);
  const PodExplanation beside =
      explained.pod(pod(R"("nvidia.com/gpu":"1")", R"("nodeName":"gpu-1",)", "", R"("phase":"Running")"));
  for (const PodCause& cause : beside.causes)
    EXPECT_NE(cause.reason.code, "NodeWaits") << "another pod's name begins so";
}

TEST(ExplainPodOnNode, AnInferenceServerThatReservesMoreThanItsSliceGetsTheNumber) {
  constexpr const char* kFourClients = R"(    sharing:
      mps:
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";
  const auto server = [](const std::string& args, const std::string& spec, const std::string& status) {
    std::string out = pod(R"("nvidia.com/gpu":"1")", spec, "", status);
    return out.replace(out.find(R"("image":"i")"), 11, R"("image":"vllm/vllm-openai","args":[)" + args + "]");
  };
  const auto told = [&](const char* profile, const std::string& asked) {
    for (const PodCause& cause : Explained(cluster(profile, "", R"(nvidia.com/gpu: "8")")).pod(asked).causes)
      if (cause.reason.code == "MemoryFractionAboveSlice") return cause.reason.message;
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

TEST(ExplainPodOnNode, AClientInAnotherDirectoryThanItsNodesMpsDaemonIsWarned) {
  const auto told = [](const std::string& label, const std::string& host_path) {
    const std::string labels = label.empty() ? "" : ", gpusharing.dev/mps-pipe-directory: " + label;
    Explained explained(cluster(kSliced, labels, R"(nvidia.com/gpu: "8")"));
    const std::string volumes =
        R"("nodeName":"gpu-1","volumes":[{"name":"m","hostPath":{"path":")" + host_path + R"("}}],)";
    const PodExplanation out =
        explained.pod(pod(R"("nvidia.com/gpu":"1")", volumes, kOfDeployment, R"("phase":"Running")"));
    const auto found = std::ranges::find_if(
        out.causes, [](const PodCause& cause) { return cause.reason.code == "OtherPipeDirectory"; });
    return found == out.causes.end() ? std::string() : found->reason.message + " | " + found->cure.options.back();
  };
  EXPECT_EQ(told("run.nvidia-mps", "/tmp/nvidia-mps"),
            "the pod mounts /tmp/nvidia-mps, but the MPS daemon of node gpu-1 is in /run/nvidia-mps (the node's label "
            "gpusharing.dev/mps-pipe-directory): a client that looks in another directory gets the whole GPU, without "
            "an error | select nodes whose daemon is in /tmp/nvidia-mps: "
            "gpusharing.dev/mps-pipe-directory=tmp.nvidia-mps");
  EXPECT_EQ(told("run.nvidia-mps", "/run/nvidia-mps"), "");
  EXPECT_EQ(told("run.nvidia-mps", "/run"), "") << "the directory is below";
  EXPECT_EQ(told("run.nvidia-mps", "/var/log"), "") << "no directory of MPS";
  EXPECT_EQ(told("", "/tmp/nvidia-mps"), "");
}

}  // namespace
}  // namespace gso::explain_pod_on_node_test
