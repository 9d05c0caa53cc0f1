// Profile labels that somebody moves or removes under pods that use slices of the operator's key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "slice_cluster.h"

namespace gso::testing::returned_labels_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kConfig = "nvidia.com/device-plugin.config";

// Pod a uses its slice on n, whose label has been taken away: the plugin offers nothing more, and the agent reports it.
// Returns the operator's key.
std::string without_label(SliceCluster& cluster) {
  cluster.node("n", 1, 41'860);
  cluster.pod("a", {10});
  cluster.settle();
  cluster.object("Pod", "a")["spec"]["nodeName"] = "n";
  cluster.object("Pod", "a")["status"] = {{"phase", "Running"}};
  std::string key = cluster.label("n");
  Json& meta = cluster.object("Node", "n")["metadata"];
  meta["labels"].erase(kConfig);
  for (const char* status : {"used", "free"})
    meta["annotations"].erase(std::string("nos.nebuly.com/status-gpu-0-10gb-") + status);
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
  cluster.object("Node", "n")["metadata"]["annotations"]["gpusharing.dev/hold"] = "true";
  EXPECT_EQ(cluster.settle(), 0);
}

// The kubelet shows the slices of the other key: the report is from before, and pods might use those by now.
TEST(ReturnedLabels, AKeyThatTheKubeletShowsIsNotMovedBackOnTheWordOfAnOldReport) {
  for (const bool shown : {true, false}) {
    SliceCluster cluster;
    cluster.node("n", 1, 41'860, {{0, {{10, 1}}}});
    cluster.pod("a", {10}, {.node = "n"});
    cluster.pod("b", {20});
    cluster.settle();
    cluster.object("ConfigMap", "nos-device-plugin-configs")["data"]["mine"] =
        "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, rename: gpu-30gb, memoryGB: 30, replicas: 1, "
        "devices: [\"0\"]}]}}\n";
    Json& node = cluster.object("Node", "n");
    node["metadata"]["labels"][kConfig] = "mine";
    if (shown) node["status"]["capacity"] = node["status"]["allocatable"] = {{"nvidia.com/gpu-30gb", "1"}};
    cluster.plan();
    cluster.wait(3min);
    EXPECT_EQ(writes_of(cluster.plan()).empty(), shown);
  }
}

}  // namespace
}  // namespace gso::testing::returned_labels_test
