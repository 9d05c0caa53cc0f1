// The slices of partitioned nodes as explain shows them, and what a container with a slice can allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod_parts.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_slices_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string partitioned(const std::string& annotations,
                        const std::string& label = "nos.nebuly.com/gpu-partitioning: mps") {
  return fmt::format(R"(
apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  labels: {{nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2", nvidia.com/gpu.memory: "40960", {}}}
  annotations: {{{}}}
spec: {{}}
status: {{conditions: [{{type: Ready, status: "True"}}]}}
)",
                     label, annotations);
}

std::vector<std::string> bars(const std::string& manifests) {
  std::vector<std::string> out;
  const Explained cluster(manifests);
  for (const GpuBar& bar : slice_bars(*cluster.world.nodes.find("gpu-1"))) out.push_back(to_string(bar));
  return out;
}

TEST(ExplainSlices, EachGpuHasABarOfUsedAndFreeMemory) {
  EXPECT_THAT(
      bars(partitioned(R"(nos.nebuly.com/status-gpu-0-10gb-used: "2", nos.nebuly.com/status-gpu-0-5gb-free: "2")")),
      ElementsAre("GPU 0 [##########-----.....] 40.0 GiB; used: 2 x 10 GiB; free: 2 x 5 GiB",
                  "GPU 1 [....................] 40.0 GiB; used: none; free: none"));
}

TEST(ExplainSlices, ASmallSliceIsSeenAndAFullGpuFillsTheBar) {
  EXPECT_THAT(bars(partitioned(R"(nos.nebuly.com/status-gpu-0-1gb-used: "1", nos.nebuly.com/status-gpu-0-39gb-free: "1",
                                  nos.nebuly.com/status-gpu-1-39gb-used: "1", nos.nebuly.com/status-gpu-1-1gb-free: "1")")),
              ElementsAre("GPU 0 [#-------------------] 40.0 GiB; used: 1 x 1 GiB; free: 1 x 39 GiB",
                          "GPU 1 [###################-] 40.0 GiB; used: 1 x 39 GiB; free: 1 x 1 GiB"));
}

TEST(ExplainSlices, ANodeWithoutTheLabelOrWithASenselessReportHasNoBars) {
  const std::string used = R"(nos.nebuly.com/status-gpu-0-10gb-used: "1")";
  EXPECT_THAT(bars(partitioned(used, "zone: a")), IsEmpty());
  EXPECT_THAT(bars(partitioned(R"(nos.nebuly.com/status-gpu-0-10gb-used: "9")")), IsEmpty()) << "90 GiB on 40";
}

TEST(ExplainSlices, ANodeIsShownWithItsBarsAndWithWhoPartitionsIt) {
  const NodeExplanation told =
      Explained(partitioned(R"(nos.nebuly.com/status-gpu-0-10gb-used: "2", gpusharing.dev/partitioning: '{"v":1}')"))
          .node("gpu-1");
  ASSERT_EQ(told.slices.size(), 2u);
  EXPECT_THAT(to_string(told.slices[0]), HasSubstr("used: 2 x 10 GiB"));
  EXPECT_THAT(told.shown.message,
              HasSubstr("by the operator while it runs and the chart value modes.partitioning is Enforce"));
}

std::string pod(const std::string& containers, const std::string& phase = "Running") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","namespace":"team","uid":"u1"},"spec":{"nodeName":"gpu-1","hostIPC":true,"containers":[)" +
         containers + R"(]},"status":{"phase":")" + phase + R"("}})";
}
std::string container(const std::string& name, const std::string& limit) {
  return R"({"name":")" + name + R"(","image":"i","resources":{"limits":{)" + limit + "}}}";
}

TEST(ExplainSlices, EachContainerIsToldItsLimitAndThatNvidiaSmiShowsTheWholeGpu) {
  const PodExplanation told =
      Explained(partitioned(""))
          .pod(pod(container("main", R"("nvidia.com/gpu-10gb":"1")") + "," + container("side", R"("cpu":"1")") + "," +
                   container("draft", R"("nvidia.com/gpu-4gb":"1")")));
  std::vector<std::string> limits;
  for (const PodCause& cause : told.causes) {
    if (cause.reason.code != "SliceMemory") continue;
    limits.push_back(cause.reason.message.substr(0, cause.reason.message.find(':')));
    EXPECT_THAT(cause.reason.message, HasSubstr("nvidia-smi"));
    EXPECT_EQ(cause.severity, Severity::info);
  }
  EXPECT_THAT(limits, ElementsAre("container main gets a slice of 10 GiB", "container draft gets a slice of 4 GiB"));
  EXPECT_FALSE(told.hindered());
}

TEST(ExplainSlices, ACommandInsideThePodIsNamedOnlyWhileItRuns) {
  for (const auto& [phase, runs] : {std::pair("Pending", false), std::pair("Running", true)}) {
    const PodExplanation told =
        Explained(partitioned("")).pod(pod(container("main", R"("nvidia.com/gpu-10gb":"1")"), phase));
    EXPECT_EQ(
        std::ranges::any_of(told.causes,
                            [](const PodCause& cause) { return cause.cure.command.line.starts_with("kubectl exec"); }),
        runs)
        << phase;
  }
}

// As the planner's Events say it.
TEST(ExplainSlices, AWaitingPodIsToldWhatIsPlannedForIt) {
  Explained cluster(partitioned(""));
  const Snapshot snapshot = cluster.snapshot();
  AskedPod waiting;
  waiting.pod.meta.name = "w";
  waiting.pod.meta.ns = k8s::Interned("team");
  const auto told = [&](bool warning, const std::string& ns, const std::string& code) {
    Plan plan;
    plan.actions.emplace_back().action = RecordEvent{{"v1", "Pod", ns, "w", ""}, warning, {code, "needs it"}, "Wait"};
    return awaited_slices({snapshot, cluster.index, waiting, &plan});
  };
  EXPECT_FALSE(told(false, "team", "KAIPodStuck"));
  EXPECT_FALSE(told(true, "other", "SlicePlanned"));
  const auto planned = told(false, "team", "SlicePlanned");
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->severity, Severity::warning);
  EXPECT_EQ(planned->reason.code, "SlicePlanned");
  EXPECT_EQ(planned->reason.message, "the pod needs it");
  EXPECT_EQ(planned->cure.options.size(), 1u);
  EXPECT_TRUE(told(true, "team", "SliceTooLarge")->cure.options.empty());
}

TEST(ExplainSlices, AUserWithoutRightsOnNodesIsToldTheLimitToo) {
  const auto told = explain_pod_alone({}, {}, pod(container("main", R"("nvidia.com/gpu-10gb":"1")")));
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(
      std::ranges::any_of(told->causes, [](const PodCause& cause) { return cause.reason.code == "SliceMemory"; }));
}

TEST(ExplainSlices, APodWithWholeGpusIsToldNothingOfSlices) {
  const PodExplanation told = Explained(partitioned("")).pod(pod(container("main", R"("nvidia.com/gpu":"1")")));
  EXPECT_TRUE(
      std::ranges::none_of(told.causes, [](const PodCause& cause) { return cause.reason.code == "SliceMemory"; }));
}

}  // namespace
}  // namespace gso::explain_slices_test
