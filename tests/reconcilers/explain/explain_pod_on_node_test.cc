// explain POD over manifests: which cause a pod gets that has its node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gso::explain_pod_on_node_test
