// MPSUncleanExit: reported for a daemon that was killed while its pod was deleted, according to its last state.
#include "reconcilers/cluster/cluster_pods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/model/project.h"

namespace gso::killed_daemons_test {
namespace {

constexpr std::string_view kRuns = R"({"running":{"startedAt":"2026-03-01T07:00:00Z"}})";
constexpr std::string_view kKilled = R"({"terminated":{"exitCode":137,"reason":"OOMKilled"}})";
constexpr std::string_view kEnded = R"({"terminated":{"exitCode":0,"reason":"Completed"}})";
constexpr std::string_view kFailed = R"({"terminated":{"exitCode":1,"reason":"Error"}})";

struct KilledDaemons : testing::Test {
  KilledDaemons() { follow_killed_daemons(world); }
  void see(std::string_view name, bool deleted, std::string_view state, std::string_view last_state = "{}") {
    const auto pod = project_operand_pod(fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"gpu"{}}},"spec":{{"nodeName":"n1"}},"status":{{
        "containerStatuses":[{{"name":"mps-control-daemon-ctr","ready":{},"state":{},"lastState":{}}}]}}}})",
        name, deleted ? R"(,"deletionTimestamp":"2026-03-01T08:00:00Z")" : "", state == kRuns, state, last_state));
    ASSERT_TRUE(pod.has_value()) << pod.error().message;
    world.operand_pods.apply(*pod);
  }
  World world;
};

TEST_F(KilledDaemons, AreRecognisedByTheirPresentStateAlone) {
  const struct {
    const char* why;
    bool deleted;
    std::string_view state, last_state;
    bool told;
  } rows[] = {
      {"killed as it went", true, kKilled, "{}", true},
      {"killed as it went, and had failed before", true, kKilled, kFailed, true},
      {"it still runs; it was killed once, long ago", true, kRuns, kKilled, false},
      {"it ended by itself; it was killed once, long ago", true, kEnded, kKilled, false},
      {"killed, and started again by the kubelet", false, kKilled, "{}", false},
  };
  for (const auto& row : rows) {
    world.killed_daemons.clear();
    see("mps-1", row.deleted, row.state, row.last_state);
    EXPECT_EQ(world.killed_daemons.contains("n1"), row.told) << row.why;
  }
}

// Kubelet removes a pod as soon as it has published how its containers ended: both events come before the next pass.
TEST_F(KilledDaemons, ArePassedOnToTheNextPassAlthoughTheirPodIsGone) {
  see("mps-1", true, kKilled);
  world.operand_pods.erase({"gpu", "mps-1"});
  ASSERT_TRUE(world.killed_daemons.contains("n1"));
  EXPECT_EQ(world.killed_daemons.at("n1").pod, "mps-1");
  EXPECT_FALSE(world.killed_daemons.at("n1").replaced);
}

TEST_F(KilledDaemons, ArePassedOnToTheNextPassHoweverSoonAnotherDaemonRuns) {
  see("mps-1", true, kKilled);
  see("mps-2", false, kRuns);
  ASSERT_TRUE(world.killed_daemons.contains("n1"));
  EXPECT_EQ(world.killed_daemons.at("n1").pod, "mps-1");
  EXPECT_TRUE(world.killed_daemons.at("n1").replaced);
}

}  // namespace
}  // namespace gso::killed_daemons_test
