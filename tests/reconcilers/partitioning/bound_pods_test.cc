// What pods that are bound take from a node before nos's gpu-agent reports it: slices, CPUs and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "reconcilers/model/project.h"
#include "reconcilers/partitioning/node_moves.h"
#include "reconcilers/partitioning/packing.h"
#include "reconcilers/partitioning/partitioned_node.h"
#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::bound_pods_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two GPUs, each with a free slice of 20 GiB and 19 GiB of room.
PackNode two_free_slices(std::int32_t just_taken) {
  PackNode out;
  out.gpus = {{19, {1, 0}}, {19, {1, 0}}};
  out.taken = {0, 0};
  out.just_taken = {just_taken, 0};
  out.changeable = true;
  return out;
}

TEST(BoundPods, OnEachGpuSoManyFreeSlicesStayAsPodsMightHaveTakenAMomentAgo) {
  const std::vector<std::int64_t> sizes{20, 39};
  EXPECT_TRUE(pack_node(sizes, two_free_slices(0), {0, 1}).has_value());
  EXPECT_FALSE(pack_node(sizes, two_free_slices(1), {0, 1}).has_value()) << "it is not known on which GPU";
  const auto serves = pack_node(sizes, two_free_slices(1), {2, 0});
  ASSERT_TRUE(serves.has_value());
  EXPECT_FALSE(serves->changed()) << "they serve other pods all the same: the report might show the pod already";
}

// A pod has ended on GPU 0, whose slice the report still calls used; one of its size was bound, and might be on GPU 1.
TEST(BoundPods, AGpuOnWhichTheyMightBeIsNotCutForHalfAMinute) {
  struct Row {
    std::chrono::seconds since;
    bool cut;
  };
  for (const Row& row : {Row{0s, false}, Row{29s, false}, Row{30s, true}}) {
    SliceCluster cluster;
    cluster.node("n", 2, 41'860, {{0, {{20, 1}}}}, {{0, {{19, 1}}}, {1, {{20, 1}, {19, 1}}}});
    cluster.pod("late", {20}, {.node = "n"})["status"]["conditions"][0]["lastTransitionTime"] =
        k8s::format_time(cluster.now() - row.since);
    cluster.pod("waits", {39});
    const std::string said = row.cut ? "planned on node n" : "; ";
    EXPECT_THAT(events_about(cluster.plan(), "waits"), ElementsAre(HasSubstr(said))) << row.since.count();
  }
}

TEST(BoundPods, AKeyThatGivesUpASliceThatTheyMightHaveIsNotSafe) {
  PartitionedNode node;
  node.slices.gpus.resize(2);
  for (GpuSlices& gpu : node.slices.gpus) gpu.free[20] = 1;
  const Geometry cut{{0, {{39, 1}}}, {1, {{20, 1}}}};
  EXPECT_FALSE(might_cut_bound_slices(node, cut));
  node.just_bound[20] = 1;
  EXPECT_TRUE(might_cut_bound_slices(node, cut));
  EXPECT_FALSE(might_cut_bound_slices(node, {{0, {{20, 1}, {19, 1}}}, {1, {{20, 1}}}})) << "it gives up none";
  node.just_bound.clear();
  node.unreported[20] = 1;
  EXPECT_TRUE(might_cut_bound_slices(node, cut));
}

SlicePod pod_of(const std::string& spec, const std::string& status = "{}") {
  auto pod = project_slice_pod(R"({"metadata":{"name":"p","namespace":"n","labels":{"a":"b"}},"spec":)" + spec +
                               R"(,"status":)" + status + "}");
  EXPECT_TRUE(pod.has_value()) << pod.error().message;
  return pod ? *std::move(pod) : SlicePod();
}

TEST(BoundPods, TheTimeOfTheirBindingIsThatOfTheirConditionPodScheduledOrOfTheirKubelet) {
  const std::string since = R"("lastTransitionTime":"2026-01-02T03:04:05Z")";
  const SlicePod bound = pod_of("{}", R"({"conditions":[{"type":"PodScheduled","status":"True",)" + since +
                                          R"(},{"type":"Ready","status":"True",)" + since + "}]}");
  ASSERT_TRUE(bound.bound.has_value());
  EXPECT_EQ(k8s::format_time(*bound.bound), "2026-01-02T03:04:05Z");
  EXPECT_FALSE(pod_of("{}", R"({"conditions":[{"type":"PodScheduled","status":"False",)" + since + "}]}").bound);
  EXPECT_FALSE(pod_of("{}", R"({"conditions":[{"type":"Ready","status":"True",)" + since + "}]}").bound);
  // A kubelet that was down gives it a slice only when it takes it.
  const SlicePod late = pod_of("{}", R"({"startTime":"2026-01-02T03:09:00Z","conditions":[{"type":"PodScheduled",)"
                                     R"("status":"True",)" +
                                         since + "}]}");
  ASSERT_TRUE(late.bound.has_value());
  EXPECT_EQ(k8s::format_time(*late.bound), "2026-01-02T03:09:00Z");
}

// Source: k8s.io/component-helpers, resource.PodRequests.
TEST(BoundPods, CpusAndMemoryAreCountedAsTheSchedulerDoes) {
  const struct {
    const char* spec;
    std::int64_t cpu;
    std::int64_t memory;
  } rows[] = {
      {R"({"containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Ki"}}},{"resources":{"requests":{"cpu":2}}}]})",
       2500, 1024},
      // The API server takes limits for requests that are missing.
      {R"({"containers":[{"resources":{"limits":{"cpu":"1.5","memory":"1M"},"requests":{"memory":"2k"}}}]})", 1500,
       2000},
      // Init containers run before the others, one after the other; a sidecar runs beside all that follow.
      {R"({"initContainers":[{"resources":{"requests":{"cpu":"3"}}},{"resources":{"requests":{"cpu":"4"}}}],
           "containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
       4000, 0},
      {R"({"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"3"}}},{"resources":{"requests":{"cpu":"2"}}}],
           "containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
       5000, 0},
      {R"({"overhead":{"cpu":"250m","memory":"10"},"containers":[{"resources":{"requests":{"cpu":"1"}}}]})", 1250, 10},
      // Resources of the pod as a whole, where they are named.
      {R"({"resources":{"requests":{"cpu":"6"}},"containers":[{"resources":{"requests":{"cpu":"1","memory":"7"}}}]})",
       6000, 7},
      {R"({"containers":[{"name":"c"}]})", 0, 0},
  };
  for (const auto& row : rows) {
    const SlicePod pod = pod_of(row.spec);
    EXPECT_EQ(pod.needs.cpu, row.cpu) << row.spec;
    EXPECT_EQ(pod.needs.memory, row.memory) << row.spec;
  }
}

TEST(BoundPods, ThatAskForNoGpuAreKeptForTheirCpusAlone) {
  EXPECT_FALSE(pod_of(R"({"nodeSelector":{"a":"b"},"containers":[]})").meta.labels.contains("a"));
  EXPECT_TRUE(pod_of(R"({"nodeSelector":{"a":"b"},"containers":[]})").node_selector.empty());
  const char* asks =
      R"({"nodeSelector":{"a":"b"},"containers":[{"resources":{"limits":{"nvidia.com/gpu-10gb":"1"}}}]})";
  EXPECT_TRUE(pod_of(asks).meta.labels.contains("a"));
  EXPECT_FALSE(pod_of(asks).node_selector.empty());
}

PodOptions asking(const std::string& cpu, const std::string& memory, int priority, const std::string& node = {}) {
  const Json requests = {{"cpu", cpu}, {"memory", memory}};
  const Json container = {{"name", "main"}, {"image", "app:1"}, {"resources", {{"requests", requests}}}};
  return {.priority = priority, .node = node, .spec = {{"containers", {container}}}};
}

TEST(BoundPods, LeaveTheirNodeSoManyCpusSoMuchMemoryAndSoManyPlacesForAPodThatWaits) {
  // The node has 8 CPUs, 8 GiB, and room for three pods; `refusal`: a part of the Event, empty: the pod gets its slice.
  const auto expect = [](const char* rule, const char* refusal, const std::function<void(SliceCluster&)>& there) {
    SliceCluster cluster;
    cluster.node("n", 1, 40'960)["status"]["allocatable"].update({{"cpu", "8"}, {"memory", "8Gi"}, {"pods", "3"}});
    there(cluster);
    cluster.pod("waits", {10}, asking("4", "2Gi", 5));
    cluster.plan();
    cluster.wait(60s);
    const Plan plan = cluster.plan();
    EXPECT_EQ(writes_of(plan).empty(), *refusal != '\0') << rule;
    if (*refusal != '\0') {
      EXPECT_THAT(events_about(plan, "waits"), ElementsAre(HasSubstr(refusal))) << rule;
    }
  };
  const char* left = "has 4 CPUs and 2048 MiB of memory left";
  expect("enough", "", [](auto& c) { c.pod("there", {}, asking("4", "1Gi", 5, "n")); });
  expect("too few CPUs", left, [](auto& c) { c.pod("there", {}, asking("5", "1Gi", 5, "n")); });
  expect("too little memory", left, [](auto& c) { c.pod("there", {}, asking("4", "7Gi", 5, "n")); });
  expect("the scheduler can preempt it", "", [](auto& c) { c.pod("there", {}, asking("5", "1Gi", 4, "n")); });
  expect("it is nominated", left,
         [](auto& c) { c.pod("first", {10}, asking("5", "1Gi", 9))["status"]["nominatedNodeName"] = "n"; });
  for (const int there : {2, 3}) {
    expect("pods on the node", there == 3 ? "; " : "", [there](auto& c) {
      for (int i = 0; i < there; ++i) c.pod("p" + std::to_string(i), {}, {.priority = 5, .node = "n"});
    });
  }
}

// The scheduler ends others on the node for their sake, and keeps for them what they ask for.
TEST(BoundPods, KeepTheirSliceFromTheMomentInWhichTheyAreNominated) {
  SliceCluster cluster;
  cluster.node("n", 1, 40'960, {}, {{0, {{10, 1}}}});
  cluster.pod("first", {10}, {.priority = 9})["status"]["nominatedNodeName"] = "n";
  cluster.pod("beside", {10}, {.priority = 5});
  cluster.settle();
  EXPECT_EQ(cluster.free("n"), (Slices{{0, {{10, 2}}}}));
  EXPECT_THAT(events_about(cluster.plan(), "beside"), ElementsAre(HasSubstr("planned on node n")));
}

}  // namespace
}  // namespace gso::testing::bound_pods_test
