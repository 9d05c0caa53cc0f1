// One test for each wrong behaviour of nos's gpu-partitioner that is known (nebuly-ai/nos at 12e0a72), in the order of
// geometry, state and actuation. Not here, because nothing like them exists in this operator:
// - a plan that is "reverted" and keeps edited geometries: plans are values, computed anew in each pass;
// - a simulation against empty listers: no scheduler is embedded;
// - a dropped item of an unbuffered channel, and a batcher that two controllers share: planning is level-based;
// - an agent whose reports are refreshed late by mistake: the agent is nos's. Its late reports are in
//   partitioning_cases_test.cc (AStatusOlderThanTheLastMoveIsNotPlannedFrom).
// What the removal of the node's label restores is in release_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slice_cluster.h"

namespace gso::testing::weaknesses_of_nos_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int k40 = 41'860;
constexpr int k24 = 25'476;
constexpr int k16 = 16'900;

int total(const Slices& slices, int size) {
  int out = 0;
  for (const auto& [gpu, sizes] : slices) out += sizes.contains(size) ? sizes.at(size) : 0;
  return out;
}

TEST(WeaknessesOfNos, SameSizeGrowthIsNotLost) {
  SliceCluster cluster;
  cluster.node("n", 1, 31'620, {}, {{0, {{10, 1}}}});
  for (const char* name : {"a", "b", "c"}) cluster.pod(name, {10});
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 10), 3);
}

TEST(WeaknessesOfNos, FreeSlicesAreDestroyedOnlyAsFarAsNeeded) {
  SliceCluster cluster;
  cluster.node("n", 1, k40, {}, {{0, {{10, 4}}}});
  cluster.pod("p", {15});
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 15), 1);
  EXPECT_EQ(total(cluster.free("n"), 10), 2);
}

TEST(WeaknessesOfNos, FreeSlicesAreSubtractedOnce) {
  SliceCluster cluster;
  cluster.node("n", 1, k40, {}, {{0, {{10, 1}}}});
  cluster.pod("p", {10, 10});
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 10), 2);
}

TEST(WeaknessesOfNos, AFreeSliceOnANodeThatThePodCannotUseSuppressesNothing) {
  SliceCluster cluster;
  cluster.node("a", 1, k40, {}, {{0, {{10, 1}}}})["spec"]["taints"] = {{{"key", "team"}, {"effect", "NoSchedule"}}};
  cluster.node("b", 1, k40);
  cluster.pod("p", {10});
  cluster.settle();
  EXPECT_THAT(cluster.touched(), ElementsAre("b"));
  EXPECT_EQ(total(cluster.free("b"), 10), 1);
}

TEST(WeaknessesOfNos, TwoPodsAndOneFreeSliceGetASecondSliceAtOnce) {
  SliceCluster cluster;
  cluster.node("n", 1, k40, {}, {{0, {{10, 1}}}});
  cluster.pod("a", {10});
  cluster.pod("b", {10});
  EXPECT_EQ(cluster.settle(), 2) << "one key and one label";
  EXPECT_EQ(total(cluster.free("n"), 10), 2);
}

TEST(WeaknessesOfNos, ALowPriorityDoesNotBeatAHighOne) {
  SliceCluster cluster;
  cluster.node("n", 1, k40);
  cluster.pod("low", {10}, {.priority = 1});
  cluster.pod("high", {40}, {.priority = 100});
  cluster.settle();
  EXPECT_EQ(cluster.free("n"), (Slices{{0, {{40, 1}}}}));
}

TEST(WeaknessesOfNos, SlicesArePackedSoThatAllFourPodsFit) {
  SliceCluster cluster;
  cluster.node("n", 2, k16);
  for (const char* name : {"a", "b"}) cluster.pod(name, {12});
  for (const char* name : {"c", "d"}) cluster.pod(name, {4});
  cluster.settle();
  EXPECT_EQ(cluster.free("n"), (Slices{{0, {{4, 1}, {12, 1}}}, {1, {{4, 1}, {12, 1}}}}));
}

TEST(WeaknessesOfNos, APodThatWasHelpedIsNotPlannedForAgain) {
  SliceCluster cluster;
  cluster.node("a", 1, k24);
  cluster.node("b", 1, k24);
  cluster.pod("p", {8});
  cluster.settle();
  EXPECT_EQ(cluster.touched().size(), 1U);
}

TEST(WeaknessesOfNos, APodWithTwoContainersIsHelpedAcrossTwoGpus) {
  SliceCluster cluster;
  cluster.node("n", 2, k16);
  cluster.pod("p", {12, 12});
  cluster.settle();
  EXPECT_EQ(cluster.free("n"), (Slices{{0, {{12, 1}}}, {1, {{12, 1}}}}));
}

TEST(WeaknessesOfNos, ADeletedNodeIsForgottenAndItsKeyCollectedLate) {
  SliceCluster cluster;
  cluster.node("a", 1, k16);
  cluster.pod("p", {12});
  cluster.settle();
  const std::string key = cluster.label("a");
  cluster.remove("Node", "a");
  cluster.node("b", 1, k40);
  cluster.settle();
  EXPECT_EQ(total(cluster.free("b"), 12), 1);
  EXPECT_THAT(cluster.keys(), Contains(key));
  cluster.wait(std::chrono::hours(2));
  cluster.apply(cluster.plan());
  EXPECT_THAT(cluster.keys(), ElementsAre(cluster.label("b")));
}

TEST(WeaknessesOfNos, AReportAboutGpuOneLeavesGpuZeroEmpty) {
  SliceCluster cluster;
  cluster.node("n", 2, k40, {{1, {{20, 1}}}});
  cluster.pod("client", {20}, {.node = "n"});
  cluster.pod("p", {40});
  cluster.settle();
  EXPECT_EQ(cluster.free("n"), (Slices{{0, {{40, 1}}}}));
  EXPECT_EQ(cluster.used("n"), (Slices{{1, {{20, 1}}}}));
}

TEST(WeaknessesOfNos, OneBadNodeIsSkippedWithAFindingAndTheOthersArePlanned) {
  SliceCluster cluster;
  cluster.node("a-bad", 1, k40)["metadata"]["labels"].erase("nvidia.com/gpu.memory");
  cluster.node("b-overfull", 1, k16, {}, {{0, {{10, 2}}}});
  cluster.node("c", 1, k40);
  cluster.pod("p", {10});
  const Plan first = cluster.plan();
  EXPECT_THAT(findings_about(first, "a-bad"), ElementsAre(HasSubstr("nvidia.com/gpu.memory is missing")));
  EXPECT_THAT(findings_about(first, "b-overfull"), ElementsAre(HasSubstr("more than the 16900 MiB")));
  cluster.settle();
  EXPECT_THAT(cluster.touched(), ElementsAre("c"));
}

TEST(WeaknessesOfNos, ABoundPodThatIsNotReportedYetTakesItsFreeSlice) {
  SliceCluster cluster;
  cluster.node("n", 1, k40, {}, {{0, {{10, 1}}}});
  cluster.pod("client", {10}, {.node = "n"})["status"]["phase"] = "Pending";
  cluster.pod("p", {10});
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 10), 2);
}

TEST(WeaknessesOfNos, NodesThatNeedNoChangeAreSilent) {
  SliceCluster cluster;
  cluster.node("a", 1, k40, {{0, {{40, 1}}}});
  cluster.pod("client", {40}, {.node = "a"});
  cluster.node("b", 1, k40);
  cluster.pod("p", {10});
  const std::string before = cluster.object("Node", "a").dump();
  cluster.settle();
  EXPECT_EQ(cluster.object("Node", "a").dump(), before);
}

TEST(WeaknessesOfNos, TheKeyOfANodeIsNotTakenForThatOfANodeWithALongerName) {
  SliceCluster cluster;
  cluster.node("node-1", 1, k16);
  cluster.node("node-10", 1, k16);
  cluster.pod("a", {12});
  cluster.pod("b", {12});
  cluster.settle();
  const std::string other = cluster.label("node-10");
  ASSERT_FALSE(other.empty());
  cluster.pod("c", {4}).at("spec")["nodeSelector"] = {{"only", "node-1"}};
  cluster.object("Node", "node-1")["metadata"]["labels"]["only"] = "node-1";
  cluster.settle();
  cluster.wait(std::chrono::hours(2));
  cluster.apply(cluster.plan());
  EXPECT_EQ(cluster.label("node-10"), other);
  EXPECT_THAT(cluster.keys(), Contains(other));
}

TEST(WeaknessesOfNos, TheKeyOfALongNodeNameIsALabelValue) {
  SliceCluster cluster;
  const std::string name = std::string(60, 'a') + "." + std::string(60, 'b') + ".example";
  cluster.node(name, 1, k40);
  cluster.pod("p", {10});
  cluster.settle();
  EXPECT_LE(cluster.label(name).size(), 63U);
  EXPECT_EQ(total(cluster.free(name), 10), 1);
}

TEST(WeaknessesOfNos, TheLabelMovesOnlyAfterTheKeyWasProjected) {
  SliceCluster cluster;
  cluster.node("n", 1, k40);
  cluster.pod("p", {10});
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty()) << "the batch window is open";
  cluster.wait(std::chrono::seconds(10));
  const Plan keys = cluster.plan();
  EXPECT_THAT(writes_of(keys), ElementsAre("PatchConfigMap"));
  cluster.apply(keys);
  cluster.plan();
  cluster.wait(std::chrono::seconds(99));
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty());
  cluster.wait(std::chrono::seconds(1));
  EXPECT_THAT(writes_of(cluster.plan()), ElementsAre("PatchNode n"));
}

TEST(WeaknessesOfNos, ANodeThatDoesNotShowItsSlicesReturnsToTheLastGoodKey) {
  SliceCluster cluster;
  cluster.node("n", 1, k40, {{0, {{10, 1}}}});
  cluster.pod("client", {10}, {.node = "n"});
  cluster.pod("p", {20});
  const std::string good = cluster.label("n");
  cluster.apply(cluster.plan());
  cluster.wait(std::chrono::minutes(5));
  cluster.apply(cluster.plan());
  cluster.plan();
  cluster.wait(std::chrono::minutes(5));
  cluster.apply(cluster.plan(), false);
  ASSERT_NE(cluster.label("n"), good);
  cluster.plan();
  cluster.wait(std::chrono::minutes(14));
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty()) << "its slices can still come";
  cluster.wait(std::chrono::minutes(1));
  const Plan back = cluster.plan();
  EXPECT_THAT(writes_of(back), ElementsAre("PatchNode n"));
  EXPECT_THAT(events_about(back, "n"), ElementsAre(HasSubstr("did not show the slices")));
  cluster.apply(back, false);
  EXPECT_EQ(cluster.label("n"), good);
  EXPECT_THAT(findings_about(cluster.plan(), "n"), ElementsAre(HasSubstr("not changed again before")));
}

// Node n has moved from a key for pod a to one for a and b. Returns the first.
std::string key_to_return_to(SliceCluster& cluster) {
  cluster.node("n", 1, k40);
  cluster.pod("a", {10});
  cluster.settle();
  std::string old = cluster.label("n");
  cluster.pod("b", {20});
  cluster.settle();
  EXPECT_NE(cluster.label("n"), old);
  return old;
}

TEST(WeaknessesOfNos, TheOldKeyStaysUntilLongAfterTheNewOneIsKnownGood) {
  SliceCluster cluster;
  const std::string old = key_to_return_to(cluster);
  cluster.wait(std::chrono::hours(5));
  cluster.apply(cluster.plan());
  EXPECT_THAT(cluster.keys(), Contains(old)) << "it is the key to return to";
}

void leave_no_room_for_a_key(SliceCluster& cluster) {
  Json& data = cluster.object("ConfigMap", "nos-device-plugin-configs")["data"];
  std::size_t bytes = 0;
  for (const auto& [key, text] : data.items()) bytes += key.size() + text.get<std::string>().size();
  data["of-somebody-else"] = std::string(1'000'000 - bytes - 250, '#');
}

TEST(WeaknessesOfNos, AFullConfigMapLosesKeysToReturnToBeforePodsWait) {
  SliceCluster cluster;
  const std::string old = key_to_return_to(cluster);
  cluster.wait(std::chrono::hours(1));
  leave_no_room_for_a_key(cluster);
  cluster.pod("c", {5});
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 5), 1);
  EXPECT_THAT(cluster.keys(), ::testing::Not(Contains(old)));
}

TEST(WeaknessesOfNos, AFullConfigMapKeepsTheKeyToReturnToOfANodeThatHasJustMoved) {
  SliceCluster cluster;
  const std::string old = key_to_return_to(cluster);
  leave_no_room_for_a_key(cluster);
  cluster.pod("c", {5});
  cluster.plan();
  cluster.wait(std::chrono::minutes(1));
  cluster.apply(cluster.plan());
  EXPECT_THAT(cluster.keys(), Contains(old)) << "the move can still turn out to have failed";
}

TEST(WeaknessesOfNos, SlicesAreGiBAndLeaveRoomForDriverAndServer) {
  SliceCluster cluster;
  cluster.node("n", 1, 32'768);
  cluster.pod("a", {16});
  cluster.pod("b", {16});
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 16), 1) << "two of them leave nothing for the MPS server";
}

TEST(WeaknessesOfNos, EveryPodHearsWhyItWaits) {
  SliceCluster cluster;
  cluster.node("node-3", 1, k16, {{0, {{5, 3}}}});
  for (const char* name : {"a", "b", "c"}) cluster.pod(name, {5}, {.node = "node-3"});
  cluster.pod("p", {10});
  cluster.pod("large", {20});
  const Plan plan = cluster.plan();
  EXPECT_THAT(
      events_about(plan, "p"),
      ElementsAre("needs 10 GiB of GPU memory; node node-3 could free 2 x 5 GiB; held by pods ns/a, ns/b, ns/c"));
  EXPECT_THAT(events_about(plan, "large"), ElementsAre(HasSubstr("could ever hold that")));
  EXPECT_THAT(findings_about(plan, "large"), ElementsAre(HasSubstr("largest GPU has room for 16 GiB of slices")));
}

}  // namespace
}  // namespace gso::testing::weaknesses_of_nos_test
