// What the Events of waiting pods say: it must be true, also where not everything has been compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "slice_cluster.h"

namespace gso::testing::pod_reports_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two nodes with GPUs of 16 GiB and one of 40, all in use.
void begin(SliceCluster& cluster) {
  for (const char* node : {"n1", "n2"}) cluster.node(node, 1, 16'900, {{0, {{15, 1}}}});
  cluster.node("n3", 1, 41'860, {{0, {{30, 1}}}});
  cluster.pod("user", {30}, {.node = "n3"});
}

TEST(PodReports, NameTheNearestAlternativeOfAllNodes) {
  SliceCluster cluster;
  begin(cluster);
  cluster.pod("p", {30});
  EXPECT_THAT(events_about(cluster.plan(), "p"),
              ElementsAre("needs 30 GiB of GPU memory; node n3 could free 1 x 30 GiB; held by pod ns/user"));
}

TEST(PodReports, OfVeryManyKindsOfPodsSayWhichNodesWereCompared) {
  SliceCluster cluster;
  begin(cluster);
  constexpr int kKinds = 1'500;
  for (int i = 0; i < kKinds; ++i) {
    const std::string name = "p" + std::to_string(i);
    cluster.pod(name, {30}, {.spec = {{"tolerations", {{{"key", name}, {"operator", "Exists"}}}}}});
  }
  const Plan plan = cluster.plan();
  for (const std::string& pod : {std::string("p0"), "p" + std::to_string(kKinds - 1)}) {
    EXPECT_THAT(events_about(plan, pod),
                ElementsAre(HasSubstr("none of the first 2 of 3 nodes that admit it could free enough")))
        << pod;
  }
}

TEST(PodReports, SpeakOfOneNodeInTheSingular) {
  SliceCluster cluster;
  cluster.node("n1", 1, 41'860)["spec"]["unschedulable"] = true;
  cluster.pod("p", {10});
  EXPECT_THAT(events_about(cluster.plan(), "p"),
              ElementsAre(HasSubstr("the only node that is labelled for partitioning does not admit it")));
}

}  // namespace
}  // namespace gso::testing::pod_reports_test
