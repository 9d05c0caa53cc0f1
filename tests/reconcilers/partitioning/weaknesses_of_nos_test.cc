// One test for each wrong behaviour of nos's gpu-partitioner that is known (nebuly-ai/nos at 12e0a72), in the order of
// geometry, state and actuation. Not here, because nothing like them exists in this operator:
// - a plan that is "reverted" and keeps edited geometries: plans are values, computed anew in each pass;
// - a simulation against empty listers: no scheduler is embedded;
// - a dropped item of an unbuffered channel, and a batcher that two controllers share: planning is level-based;
// - an agent whose reports are refreshed late by mistake: the agent is nos's. Its late reports are in
//   partitioning_cases_test.cc (DuringAMove).
// Moves that fail are in moves_test.cc, and what the removal of the node's label restores is in release_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "slice_cluster.h"

namespace gso::testing::weaknesses_of_nos_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int k40 = 41'860;
constexpr int k24 = 25'476;
constexpr int k16 = 16'900;

// One key and one label later, node n has these free slices.
void expect_free(const char* rule, const Slices& free, const std::function<void(SliceCluster&)>& begin) {
  SCOPED_TRACE(rule);
  SliceCluster cluster;
  begin(cluster);
  EXPECT_EQ(cluster.settle(), 2);
  EXPECT_EQ(cluster.free("n"), free);
}

TEST(WeaknessesOfNos, SlicesAreCutForAllWhoWait) {
  expect_free("growth of a size that is there is not lost", {{0, {{10, 3}}}}, [](auto& c) {
    c.node("n", 1, 31'620, {}, {{0, {{10, 1}}}});
    for (const char* name : {"a", "b", "c"}) c.pod(name, {10});
  });
  expect_free("free slices are destroyed only as far as needed", {{0, {{10, 2}, {15, 1}}}}, [](auto& c) {
    c.node("n", 1, k40, {}, {{0, {{10, 4}}}});
    c.pod("p", {15});
  });
  expect_free("free slices are subtracted once", {{0, {{10, 2}}}}, [](auto& c) {
    c.node("n", 1, k40, {}, {{0, {{10, 1}}}});
    c.pod("p", {10, 10});
  });
  expect_free("two pods and one free slice get a second one at once", {{0, {{10, 2}}}}, [](auto& c) {
    c.node("n", 1, k40, {}, {{0, {{10, 1}}}});
    for (const char* name : {"a", "b"}) c.pod(name, {10});
  });
  expect_free("a bound pod that is not reported yet takes its free slice", {{0, {{10, 2}}}}, [](auto& c) {
    c.node("n", 1, k40, {}, {{0, {{10, 1}}}});
    c.pod("client", {10}, {.node = "n"})["status"]["phase"] = "Pending";
    c.pod("p", {10});
  });
  expect_free("a low priority does not beat a high one", {{0, {{40, 1}}}}, [](auto& c) {
    c.node("n", 1, k40);
    c.pod("low", {10}, {.priority = 1});
    c.pod("high", {40}, {.priority = 100});
  });
  expect_free("all four pods fit", {{0, {{4, 1}, {12, 1}}}, {1, {{4, 1}, {12, 1}}}}, [](auto& c) {
    c.node("n", 2, k16);
    for (const char* name : {"a", "b"}) c.pod(name, {12});
    for (const char* name : {"c", "d"}) c.pod(name, {4});
  });
  expect_free("two containers have slices of two GPUs", {{0, {{12, 1}}}, {1, {{12, 1}}}}, [](auto& c) {
    c.node("n", 2, k16);
    c.pod("p", {12, 12});
  });
  expect_free("a report about GPU 1 leaves GPU 0 empty", {{0, {{40, 1}}}}, [](auto& c) {
    c.node("n", 2, k40, {{1, {{20, 1}}}});
    c.pod("client", {20}, {.node = "n"});
    c.pod("p", {40});
  });
  expect_free("two slices of half the memory leave nothing for driver and server", {{0, {{16, 1}}}}, [](auto& c) {
    c.node("n", 1, 32'768);
    for (const char* name : {"a", "b"}) c.pod(name, {16});
  });
}

TEST(WeaknessesOfNos, OnlyTheNodeThatHelpsIsTouched) {
  const auto expect = [](const char* rule, const char* node, const std::function<void(SliceCluster&)>& begin) {
    SliceCluster cluster;
    begin(cluster);
    cluster.pod("p", {10});
    EXPECT_EQ(cluster.settle(), 2) << rule;
    EXPECT_THAT(cluster.touched(), ElementsAre(node)) << rule;
    EXPECT_EQ(total(cluster.free(node), 10), 1) << rule;
  };
  expect("a pod that was helped is not planned for again", "a", [](auto& c) {
    c.node("a", 1, k24);
    c.node("b", 1, k24);
  });
  expect("a free slice on a node that the pod cannot use suppresses nothing", "b", [](auto& c) {
    c.node("a", 1, k40, {}, {{0, {{10, 1}}}})["spec"]["taints"] = {{{"key", "team"}, {"effect", "NoSchedule"}}};
    c.node("b", 1, k40);
  });
  expect("a node that needs no change", "b", [](auto& c) {
    c.node("a", 1, k40, {{0, {{40, 1}}}});
    c.pod("client", {40}, {.node = "a"});
    c.node("b", 1, k40);
  });
  const std::string name = std::string(60, 'a') + "." + std::string(60, 'b') + ".example";
  expect("the key of a long node name is a label value", name.c_str(), [&](auto& c) { c.node(name, 1, k40); });
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
  cluster.wait(2h);
  cluster.apply(cluster.plan());
  EXPECT_THAT(cluster.keys(), ElementsAre(cluster.label("b")));
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
  cluster.labels("node-1")["only"] = "node-1";
  cluster.settle();
  cluster.wait(2h);
  cluster.apply(cluster.plan());
  EXPECT_EQ(cluster.label("node-10"), other);
  EXPECT_THAT(cluster.keys(), Contains(other));
}

TEST(WeaknessesOfNos, TheLabelMovesOnlyAfterTheKeyWasProjected) {
  SliceCluster cluster;
  cluster.node("n", 1, k40);
  cluster.pod("p", {10});
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty()) << "the batch window is open";
  cluster.wait(10s);
  const Plan keys = cluster.plan();
  EXPECT_THAT(writes_of(keys), ElementsAre("PatchConfigMap"));
  cluster.apply(keys);
  cluster.plan();
  cluster.wait(99s);
  EXPECT_THAT(writes_of(cluster.plan()), IsEmpty());
  cluster.wait(1s);
  EXPECT_THAT(writes_of(cluster.plan()), ElementsAre("PatchNode n"));
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
  cluster.wait(5h);
  cluster.apply(cluster.plan());
  EXPECT_THAT(cluster.keys(), Contains(old)) << "it is the key to return to";
}

void leave_no_room_for_a_key(SliceCluster& cluster) {
  Json& data = cluster.keys_and_texts();
  std::size_t bytes = 0;
  for (const auto& [key, text] : data.items()) bytes += key.size() + text.get<std::string>().size();
  data["of-somebody-else"] = std::string(1'000'000 - bytes - 250, '#');
}

TEST(WeaknessesOfNos, AFullConfigMapLosesKeysToReturnToBeforePodsWait) {
  SliceCluster cluster;
  const std::string old = key_to_return_to(cluster);
  leave_no_room_for_a_key(cluster);
  cluster.pod("c", {5});
  cluster.plan();
  cluster.pass(1, 1min);
  EXPECT_THAT(cluster.keys(), Contains(old)) << "the node has just moved: that can still turn out to have failed";
  cluster.wait(1h);
  cluster.settle();
  EXPECT_EQ(total(cluster.free("n"), 5), 1);
  EXPECT_THAT(cluster.keys(), ::testing::Not(Contains(old)));
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
