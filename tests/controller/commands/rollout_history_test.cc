// `rollout history`: which of the recorded rollouts is current, what the nodes run, and what a rollout came after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controller/commands/rollout_commands.h"

namespace gso {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

TEST_F(RolloutCommand, HistorySaysWhichRevisionIsCurrentAndWhichOneTheNodesRun) {
  const std::string loaded = "v1-00000000000000aa";
  record_gpu_1(loaded);
  rollout("first", "Completed", "v1-9");
  rollout("second", "Completed", loaded);
  rollout("third", "Progressing", target());
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  EXPECT_THAT(out.str(), ContainsRegex("third .* current +Progressing "));
  EXPECT_THAT(out.str(), ContainsRegex("second .* v1-00000000000000aa +1 node +Completed "));
  EXPECT_THAT(out.str(), ContainsRegex("first .* v1-9 +- +Completed "));
  options.json = true;
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  const Json rollouts = Json::parse(out.str())["rollouts"];
  ASSERT_EQ(rollouts.size(), 3U);
  EXPECT_EQ(rollouts[0]["current"], true);
  EXPECT_EQ(rollouts[0]["running"], 0);
  EXPECT_EQ(rollouts[1]["current"], false);
  EXPECT_EQ(rollouts[1]["running"], 1);
}

TEST_F(RolloutCommand, HistoryDoesNotSayWhatTheNodesRunWhereNothingIsRecorded) {
  rollout("r", "Progressing", target());
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  EXPECT_THAT(out.str(), ContainsRegex("r .* current +Progressing "));
  options.json = true;
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  EXPECT_TRUE(Json::parse(out.str())["rollouts"][0]["running"].is_null());
}

// Whoever sees a rollout to an earlier revision asks why.
TEST_F(RolloutCommand, HistoryAndStatusSayWhatARolloutCameAfter) {
  const std::string bad = "/apis/gpusharing.dev/v1alpha1/sharingrollouts/bad";
  rollout("bad", "Superseded", "v1-2");
  rollout("of-another-key", "Superseded", "v1-3", "other");
  rollout("back", "Progressing", target());
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("after"))) << "an edit replaced it";
  const auto expect_after = [&](const std::string& after) {
    ASSERT_EQ(run(Verb::history), 0) << err.str();
    EXPECT_THAT(out.str(), testing::EndsWith("\nback: " + after + "\n"));
    (void)run(Verb::status);
    EXPECT_THAT(out.str(), HasSubstr(" under policy default\n  Begun " + after + "\n"));
  };
  merge(bad, R"({"spec":{"paused":true}})");
  expect_after("after bad, which was paused");
  merge(bad, R"({"spec":{"aborted":true}})");
  expect_after("after bad, which was aborted");
  merge(bad, R"({"metadata":{"annotations":{"gpusharing.dev/undo":"true"}}})");
  expect_after("after an undo of bad");
  options.json = true;
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["after"], "after an undo of bad");
}

}  // namespace
}  // namespace gso
