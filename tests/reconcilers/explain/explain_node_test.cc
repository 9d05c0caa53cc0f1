// The word for the state of a node, and what a rollout says of it; tests/transcripts has the texts of explain NODE.
#include <gtest/gtest.h>

#include <string_view>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/reasons/names.h"

namespace gso::explain_node_test {
namespace {

TEST(StateName, ANodeThatDoesNotShowItsProfileIsNotCountedAsUpToDate) {
  struct Case {
    const char* name;
    Phase phase;
    bool matches, drift_at_install, held;
    std::string_view wanted;
  };
  const Case cases[] = {
      {"shows its profile", Phase::up_to_date, true, false, false, "UpToDate"},
      {"what it has loaded is not proven, and it shows it", Phase::up_to_date, true, true, false, "UpToDate"},
      {"shows something else", Phase::up_to_date, false, false, false, kDrift},
      {"showed something else from the start", Phase::up_to_date, false, true, false, kPreexistingDrift},
      {"held, and has nothing to do", Phase::up_to_date, true, false, true, "UpToDate"},
      {"held, and has to change", Phase::pending, false, false, true, "Held"},
      {"waits for its turn", Phase::pending, false, false, false, "Pending"},
      {"blocked", Phase::blocked, false, true, false, "Blocked"},
  };
  for (const Case& c : cases) {
    NodeAssessment assessment;
    assessment.phase = c.phase;
    assessment.pods_ready = assessment.verified.ok = c.matches;
    if (c.drift_at_install) assessment.at_install = AtInstall::drifted;
    if (c.held) assessment.holder = kHeld;
    EXPECT_EQ(state_name(assessment), c.wanted) << c.name;
  }
}

TEST(WhoKeeps, IsWhatTheRolloutUnderWaySaysOfTheNode) {
  World world;
  SharingRollout rollout;
  rollout.meta.name = "default-any-1";
  rollout.phase = "Progressing";
  rollout.status_json = R"({"nodes":[{"name":"gpu-1","state":"Waiting","reason":"WaitingForWorkloads",
    "message":"waits for team/job-1"},{"name":"gpu-10","state":"Failed","message":"no"}]})";
  world.rollouts.apply(rollout);
  EXPECT_EQ(blocking_pods_of(world, "gpu-1"), "waits for team/job-1");
  EXPECT_EQ(blocking_pods_of(world, "gpu-10"), "") << "it has failed, and waits for nobody";
  EXPECT_EQ(blocking_pods_of(world, "gpu-2"), "");
  rollout.phase = "Superseded";
  world.rollouts.apply(rollout);
  EXPECT_EQ(blocking_pods_of(world, "gpu-1"), "");
}

}  // namespace
}  // namespace gso::explain_node_test
