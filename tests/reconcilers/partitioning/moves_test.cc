// Between the plan of a key and the end of its move: pods come and go, machines are replaced, somebody moves the label,
// clocks are set, and the node does not show its slices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "slice_cluster.h"

namespace gso::testing::moves_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// --- A key that is written and not projected yet is kept as long as it is of use.

// A pod every 20 seconds for five minutes. True if the node got slices.
bool is_served_under_a_stream_of_pods(SliceCluster& cluster) {
  cluster.node("n", 2, 81'559);
  for (int i = 0; i < 15; ++i) {
    cluster.pod("p" + std::to_string(i), {5});
    cluster.pass(1, 20s);
    cluster.apply(cluster.plan());  // As soon as the stores show what was written.
  }
  return !cluster.label("n").empty();
}

TEST(PendingKeys, AStreamOfPodsDoesNotPutOffTheMoveOfTheLabel) {
  SliceCluster cluster;
  EXPECT_TRUE(is_served_under_a_stream_of_pods(cluster));
}

TEST(PendingKeys, APodOfAHigherPriorityThatNoNodeAdmitsPutsOffNothing) {
  SliceCluster cluster;
  cluster.pod("elsewhere", {10}, {.priority = 9, .spec = {{"nodeSelector", {{"zone", "b"}}}}});
  EXPECT_TRUE(is_served_under_a_stream_of_pods(cluster));
}

// Its key would serve a pod that comes later, and there is room for one of the two.
TEST(PendingKeys, AKeyGivesWayToAPodOfAHigherPriority) {
  for (const bool hopeless : {false, true}) {
    SliceCluster cluster;
    if (hopeless) cluster.pod("elsewhere", {10}, {.priority = 90, .spec = {{"nodeSelector", {{"zone", "b"}}}}});
    cluster.node("n", 1, 41'860);
    cluster.pod("low", {30});
    cluster.plan();
    cluster.pass(1, 1min);
    ASSERT_THAT(cluster.keys(), SizeIs(1));
    cluster.pod("high", {39}, {.priority = 9});
    cluster.pass(7, 1min);
    EXPECT_EQ(cluster.free("n"), (Slices{{0, {{39, 1}}}})) << hopeless;
  }
}

// --- A machine comes back under the name of another one: the key was made for other GPUs.

// A key for the node's pods is written, and its label does not name it yet. Then the machine is replaced. Returns what
// the label names in the end.
Slices replaced_after_the_key(SliceCluster& cluster, int gpus, int memory_mib) {
  cluster.apply(cluster.plan());  // The batch window begins.
  cluster.pass(1, 70s);
  EXPECT_THAT(cluster.keys(), SizeIs(1)) << "the key for the former machine";
  cluster.apply(cluster.plan());  // The operator sees it, and waits for its projection.
  cluster.remove("Node", "n");
  cluster.node("n", gpus, memory_mib);
  cluster.pass(4, 5min);
  const std::string key = cluster.label("n");
  return key.empty() ? Slices() : slices_of_document(cluster.keys_and_texts().at(key).get<std::string>());
}

TEST(ReplacedNodes, AMachineWithFewerGpusGetsNoSlicesOfTheGpuThatItLacks) {
  SliceCluster cluster;
  cluster.node("n", 2, 41'860);
  cluster.pod("a", {39});
  cluster.pod("b", {39});
  EXPECT_EQ(replaced_after_the_key(cluster, 1, 41'860), (Slices{{0, {{39, 1}}}}));
}

TEST(ReplacedNodes, AMachineWithLessMemoryGetsNoMoreSlicesThanItHas) {
  SliceCluster cluster;
  cluster.node("n", 1, 41'860);
  cluster.pod("a", {10});
  cluster.pod("b", {20});
  const Slices named = replaced_after_the_key(cluster, 1, 25'476);  // 24 GiB.
  EXPECT_EQ(total(named, 10) + total(named, 20), 1) << "one of the two fits";
}

TEST(ReplacedNodes, AMachineThatIsAlikeGetsTheKeyThatIsThere) {
  SliceCluster cluster;
  cluster.node("n", 1, 41'860);
  cluster.pod("a", {10});
  EXPECT_EQ(replaced_after_the_key(cluster, 1, 41'860), (Slices{{0, {{10, 1}}}}));
}

// --- Somebody moves or removes the label under pods that use slices of the operator's key.

// Pod a uses its slice on n, whose label has been taken away: the plugin offers nothing more, and the agent reports it.
// Returns the operator's key.
std::string without_label(SliceCluster& cluster) {
  cluster.node("n", 1, 41'860);
  cluster.pod("a", {10});
  cluster.settle();
  cluster.bind("a", "n");
  std::string key = cluster.label("n");
  cluster.labels("n").erase(kConfig);
  for (const char* status : {"used", "free"})
    cluster.annotations("n").erase(std::string("nos.nebuly.com/status-gpu-0-10gb-") + status);
  return key;
}

// Scripts set labels anew, and reports are late.
TEST(ReturnedLabels, ALabelIsWrittenAgainOnlyAfterTwoMinutes) {
  SliceCluster cluster;
  const std::string key = without_label(cluster);
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty());
  cluster.wait(119s);
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty());
  cluster.wait(1s);
  const Plan plan = cluster.plan();
  EXPECT_THAT(writes_of(plan), ElementsAre("PatchNode n"));
  EXPECT_THAT(events_about(plan, "n"), ElementsAre(HasSubstr("node n has no label nvidia.com/device-plugin.config")));
  cluster.apply(plan, false);
  EXPECT_EQ(cluster.label("n"), key);
}

TEST(ReturnedLabels, APersonsHoldIsRespected) {
  SliceCluster cluster;
  without_label(cluster);
  cluster.annotations("n")["gpusharing.dev/hold"] = "true";
  EXPECT_EQ(cluster.settle(), 0);
}

// The kubelet shows the slices of the other key: the report is from before, and pods might use those by now.
TEST(ReturnedLabels, AKeyThatTheKubeletShowsIsNotMovedBackOnTheWordOfAnOldReport) {
  for (const bool shown : {true, false}) {
    SliceCluster cluster;
    Json& node = cluster.node("n", 1, 41'860, {{0, {{10, 1}}}});
    cluster.pod("a", {10}, {.node = "n"});
    cluster.pod("b", {20});
    cluster.settle();
    cluster.keys_and_texts()["mine"] =
        "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, rename: gpu-30gb, memoryGB: 30, replicas: 1, "
        "devices: [\"0\"]}]}}\n";
    cluster.labels("n")[kConfig] = "mine";
    if (shown) node["status"]["capacity"] = node["status"]["allocatable"] = {{"nvidia.com/gpu-30gb", "1"}};
    cluster.plan();
    cluster.wait(3min);
    EXPECT_EQ(writes_of(cluster.plan()).empty(), shown);
  }
}

// --- Node n does not show the slices of its new key. Returns the key before.
std::string begin_move(SliceCluster& cluster) {
  cluster.node("n", 1, 41'860, {{0, {{10, 1}}}});
  cluster.pod("client", {10}, {.node = "n"});
  cluster.pod("p", {20});
  std::string good = cluster.move("n");
  cluster.plan();
  return good;
}

TEST(FailedMoves, ReturnToTheKeyBeforeAndPauseWhateverTheWallClockSays) {
  const auto still_pauses = Contains(HasSubstr("not changed again before"));
  for (const std::chrono::hours step : {-1h, 0h, 1h}) {
    SCOPED_TRACE(step.count());
    SliceCluster cluster;
    const std::string good = begin_move(cluster);
    cluster.step_wall_clock(step);
    cluster.wait(14min);
    EXPECT_THAT(writes_of(cluster.plan()), IsEmpty()) << "its slices can still come";
    cluster.wait(1min);
    const Plan back = cluster.plan();
    ASSERT_THAT(writes_of(back), ElementsAre("PatchNode n"));
    EXPECT_THAT(events_about(back, "n"), ElementsAre(HasSubstr("did not show the slices")));
    cluster.apply(back, false);
    cluster.report("n");
    EXPECT_EQ(cluster.label("n"), good);
    EXPECT_THAT(findings_about(cluster.plan(), "n"), still_pauses);
    cluster.step_wall_clock(step);
    cluster.wait(8min);
    EXPECT_THAT(findings_about(cluster.plan(), "n"), still_pauses);
    cluster.wait(2min);
    EXPECT_THAT(findings_about(cluster.plan(), "n"), Not(still_pauses));
  }
}

TEST(FailedMoves, AreNotTakenBackUnderObserveWhichSaysThatItWould) {
  SliceCluster cluster;
  begin_move(cluster);
  cluster.mode = PartitioningMode::observe;
  Plan plan;
  for (int pass = 0; pass < 6; ++pass) {
    cluster.wait(5min);
    plan = cluster.plan();
    EXPECT_THAT(writes_of(plan), IsEmpty());
  }
  EXPECT_THAT(findings_about(plan, "n"),
              Contains(HasSubstr("It would change: node n did not show the slices of key gso-n-")));
  EXPECT_THAT(events_about(plan, "n"), IsEmpty()) << "an Event would report what has not been done";
}

}  // namespace
}  // namespace gso::testing::moves_test
