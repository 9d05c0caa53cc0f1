// MPSUncleanExit: reported for a daemon that was killed while its pod was deleted, according to its last state.
#include "reconcilers/cluster/cluster_pods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/model/project.h"

namespace gso::killed_daemons_test {
namespace {

struct Row {
  std::string_view why;
  bool deleted;
  std::string_view state;
  std::string_view last_state;
  bool told;
};

constexpr std::string_view kRuns = R"({"running":{"startedAt":"2026-03-01T07:00:00Z"}})";
constexpr std::string_view kKilled = R"({"terminated":{"exitCode":137,"reason":"OOMKilled"}})";
constexpr std::string_view kEnded = R"({"terminated":{"exitCode":0,"reason":"Completed"}})";
constexpr std::string_view kFailed = R"({"terminated":{"exitCode":1,"reason":"Error"}})";

TEST(KilledDaemons, AreRecognisedByTheirPresentStateAlone) {
  const Row rows[] = {
      {"killed as it went", true, kKilled, "{}", true},
      {"killed as it went, and had failed before", true, kKilled, kFailed, true},
      {"it still runs; it was killed once, long ago", true, kRuns, kKilled, false},
      {"it ended by itself; it was killed once, long ago", true, kEnded, kKilled, false},
      {"killed, and started again by the kubelet", false, kKilled, "{}", false},
  };
  for (const Row& row : rows) {
    World world;
    follow_killed_daemons(world);
    const auto pod = project_operand_pod(fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"mps-1","namespace":"gpu"{}}},"spec":{{"nodeName":"n1"}},"status":{{
        "containerStatuses":[{{"name":"mps-control-daemon-ctr","ready":false,"state":{},"lastState":{}}}]}}}})",
        row.deleted ? R"(,"deletionTimestamp":"2026-03-01T08:00:00Z")" : "", row.state, row.last_state));
    ASSERT_TRUE(pod.has_value()) << pod.error().message;
    world.operand_pods.apply(*pod);
    EXPECT_EQ(world.killed_daemons.contains("n1"), row.told) << row.why;
  }
}

// Kubelet removes a pod as soon as it has published how its containers ended: both events come before the next pass.
TEST(KilledDaemons, ArePassedOnToTheNextPassAlthoughTheirPodIsGone) {
  World world;
  follow_killed_daemons(world);
  const auto pod = project_operand_pod(
      R"({"kind":"Pod","metadata":{"name":"mps-1","namespace":"gpu","deletionTimestamp":"2026-03-01T08:00:00Z"},
          "spec":{"nodeName":"n1"},"status":{"containerStatuses":[{"name":"mps-control-daemon-ctr","ready":false,
          "state":{"terminated":{"exitCode":137,"reason":"Error"}}}]}})");
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  world.operand_pods.apply(*pod);
  world.operand_pods.erase({"gpu", "mps-1"});
  ASSERT_TRUE(world.killed_daemons.contains("n1"));
  EXPECT_EQ(world.killed_daemons.at("n1").pod, "mps-1");
  EXPECT_FALSE(world.killed_daemons.at("n1").replaced);
}

TEST(KilledDaemons, ArePassedOnToTheNextPassHoweverSoonAnotherDaemonRuns) {
  World world;
  follow_killed_daemons(world);
  for (const auto* pod_text : {
           R"({"kind":"Pod","metadata":{"name":"mps-1","namespace":"gpu","deletionTimestamp":"2026-03-01T08:00:00Z"},
               "spec":{"nodeName":"n1"},"status":{"containerStatuses":[{"name":"mps-control-daemon-ctr","ready":false,
               "state":{"terminated":{"exitCode":137,"reason":"Error"}}}]}})",
           R"({"kind":"Pod","metadata":{"name":"mps-2","namespace":"gpu"},"spec":{"nodeName":"n1"},
               "status":{"containerStatuses":[{"name":"mps-control-daemon-ctr","ready":true,
               "state":{"running":{"startedAt":"2026-03-01T08:00:01Z"}}}]}})",
       }) {
    const auto pod = project_operand_pod(pod_text);
    ASSERT_TRUE(pod.has_value()) << pod.error().message;
    world.operand_pods.apply(*pod);
  }
  ASSERT_TRUE(world.killed_daemons.contains("n1"));
  EXPECT_EQ(world.killed_daemons.at("n1").pod, "mps-1");
  EXPECT_TRUE(world.killed_daemons.at("n1").replaced);
}

}  // namespace
}  // namespace gso::killed_daemons_test
