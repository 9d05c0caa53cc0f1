// `rollout history`: which of the recorded rollouts is current, what the nodes run, and what a rollout came after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_history_test {
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

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> out;
  for (const auto& entry : object.items()) out.insert(entry.key());
  return out;
}

// Scripts read these: docs/json.md names each field.
TEST_F(RolloutCommand, TheJsonOfStatusAndHistoryHasTheFieldsOfItsPage) {
  using Keys = std::set<std::string>;
  options.json = true;
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default/status",
        R"({"status":{"conditions":[{"type":"Progressing","status":"False","reason":"OutsideWindow","message":"m",
            "lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  (void)run(Verb::status);
  Json document = Json::parse(out.str());
  EXPECT_EQ(keys_of(document), (Keys{"version", "operator", "rollouts", "waiting", "failed", "incomplete"}));
  ASSERT_EQ(document["waiting"].size(), 1U);
  EXPECT_EQ(keys_of(document["waiting"][0]), (Keys{"policy", "reason", "message", "nodes", "count"}));
  rollout("r", "Progressing", target());
  const Json node{{"name", "gpu-1"}, {"state", "Waiting"}, {"reason", "WaitingForWorkloads"}, {"message", "m"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status", {{"nodes", Json::array({node})}}}}.dump());
  Keys of_rollout{"name",   "policy",  "configMap", "daemonSet",   "key",      "toRevision", "phase",
                  "reason", "message", "profile",   "paused",      "approved", "aborted",    "undone",
                  "wave",   "counts",  "startedAt", "completedAt", "after",    "nodes"};
  Keys of_status = of_rollout;
  of_status.insert({"estimatedCompletion", "inProgress", "next"});
  (void)run(Verb::status);
  document = Json::parse(out.str());
  ASSERT_EQ(document["rollouts"].size(), 1U);
  EXPECT_EQ(keys_of(document["rollouts"][0]), of_status);
  EXPECT_EQ(keys_of(document["rollouts"][0]["counts"]),
            (Keys{"total", "updated", "inProgress", "pending", "blocked", "failed"}));
  EXPECT_EQ(document["rollouts"][0]["nodes"], Json::array({node})) << "as the SharingRollout names it";
  of_rollout.insert({"current", "running"});
  ASSERT_EQ(run(Verb::history), 0) << err.str();
  document = Json::parse(out.str());
  EXPECT_EQ(keys_of(document), (Keys{"version", "rollouts"}));
  EXPECT_EQ(keys_of(document["rollouts"][0]), of_rollout);
}

}  // namespace
}  // namespace gso::rollout_history_test
