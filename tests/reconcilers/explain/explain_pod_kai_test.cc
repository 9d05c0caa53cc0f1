// explain POD of a pod that KAI's scheduler keeps waiting because of its queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/explain/pod.h"
#include "tests/reconcilers/explain/asked_pod.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_pod_kai_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kConfig =
    "---\n{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}, spec: {admission: {gpuSharing: "
    "true, gpuPodRuntimeClassName: ''}}}\n";

// The pod requests a share of a GPU in queue team-a; `message`: of its condition PodScheduled.
PodCause cause_of(const std::string& message, const std::string& queue = "team-a") {
  std::string asks = pod(
      "", "", R"(,"labels":{"kai.scheduler/queue":")" + queue + R"("},"annotations":{"gpu-fraction":"0.5"})",
      R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":")" + message + R"("}])");
  asks.replace(asks.find("default-scheduler"), 17, "kai-scheduler");
  const std::string labels = R"(, nvidia.com/gpu.memory: "40960")";
  const PodExplanation out = Explained(cluster(kSliced, labels, R"(nvidia.com/gpu: "8")") + kConfig).pod(asks);
  return out.causes.empty() ? PodCause{Severity::info, {"none", ""}} : out.causes.front();
}

struct Row {
  const char* name;
  const char* message;
  const char* code;
  const char* command;
  const char* option;
};

TEST(ExplainPodKai, WhatItsSchedulerSaysOfTheQueueIsPassedOn) {
  const std::vector<Row> rows{
      {"no such queue", "queue team-a does not exist", "NoQueue", "kubectl get queues.scheduling.run.ai",
       "the pod's owner sets label kai.scheduler/queue to a queue that exists; whoever runs KAI says which one, or "
       "creates the queue"},
      {"no more for this queue",
       "Non-preemptible workload is over quota. Workload requested 1 GPUs, but team-a quota is 0 GPUs", "QueueFull",
       "kubectl get queues.scheduling.run.ai team-a --output yaml",
       "whoever runs KAI decides how much each queue gets"},
      {"its limit", "team-a quota has reached the allowable limit of GPUs. Limit is 1 GPUs", "QueueFull",
       "kubectl get queues.scheduling.run.ai team-a --output yaml",
       "whoever runs KAI decides how much each queue gets"},
      {"anything else", "node-pool default: 1 node(s) had untolerated taint", "NotChosen",
       "kubectl describe pod train --namespace team", nullptr},
  };
  for (const Row& row : rows) {
    const PodCause cause = cause_of(row.message);
    EXPECT_EQ(cause.reason.code, row.code) << row.name;
    EXPECT_EQ(cause.severity, Severity::error) << row.name;
    EXPECT_EQ(cause.reason.message, std::string("KAI's scheduler reports: ") + row.message) << row.name;
    EXPECT_EQ(cause.cure.command.text(), row.command) << row.name;
    if (row.option == nullptr)
      EXPECT_THAT(cause.cure.options, IsEmpty()) << row.name;
    else
      EXPECT_THAT(cause.cure.options, testing::Contains(row.option)) << row.name;
  }
}

TEST(ExplainPodKai, WithoutAMessageItsQueueIsShown) {
  const PodCause cause = cause_of("");
  EXPECT_EQ(cause.reason.code, "NotChosen");
  EXPECT_EQ(cause.severity, Severity::warning);
  EXPECT_THAT(cause.reason.message, HasSubstr("check the queue's quota"));
  EXPECT_EQ(cause.cure.command.text(), "kubectl get queues.scheduling.run.ai team-a --output yaml");
}

}  // namespace
}  // namespace gso::explain_pod_kai_test
