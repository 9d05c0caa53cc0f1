// The bars of slices, and what a plan says of a pod that waits for one; tests/transcripts has what explain says of
// both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod_parts.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_slices_test {
namespace {

using testing::ElementsAre;
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

}  // namespace
}  // namespace gso::explain_slices_test
