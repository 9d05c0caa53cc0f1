// The word for the phase of a rollout, and since when it starts no node.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_phase_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

// The API has one phase, Paused, for what a person has paused and for what stopped by itself.
TEST_F(RolloutCommand, ARolloutIsCalledPausedOnlyIfAPersonPausedIt) {
  const struct {
    const char* reason;
    const char* shown;
  } rows[] = {{"MaxFailures", "Stopped (MaxFailures)"},
              {"ConfigInvalid", "Stopped (ConfigInvalid)"},
              {"Observe", "Stopped (Observe)"},
              {"Paused", "Paused"}};
  for (const auto& row : rows) {
    rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", row.reason);
    (void)run(Verb::status, "r");
    EXPECT_THAT(out.str(), testing::StartsWith(std::string("r: ") + row.shown + "\n"));
    (void)run(Verb::history);
    EXPECT_THAT(out.str(), HasSubstr(std::string(" ") + row.shown + "  "));
    options.json = true;
    (void)run(Verb::history);
    EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["phase"], "Paused") << "programs compare it";
    options.json = false;
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
  }
}

// The API has one phase, Progressing, for what moves and for what waits until somebody acts.
TEST_F(RolloutCommand, ARolloutThatStandsIsNotCalledProgressing) {
  rollout("r", "Progressing", "v1-2", "any", "version: v1\n", "default", "BudgetExhausted");
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), testing::StartsWith("r: Progressing\n"));
  Json status = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["status"];
  const std::string since = k8s::format_time(sim.clock.now());
  status["conditions"].push_back({{"type", "Progressing"},
                                  {"status", "False"},
                                  {"reason", "BudgetExhausted"},
                                  {"message", "it is so"},
                                  {"lastTransitionTime", since}});
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", status}}.dump());
  EXPECT_EQ(run(Verb::status, "r"), 0) << "nothing went wrong";
  EXPECT_THAT(out.str(), Not(HasSubstr("Running ")));
  sim.clock.run_for(std::chrono::minutes(5));
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(),
              HasSubstr(fmt::format("r: Waiting (BudgetExhausted); no node starts since {} (5m ago)\n", since)));
  (void)run(Verb::history);
  EXPECT_THAT(out.str(), HasSubstr(" Waiting (BudgetExhausted)  "));
  sim.clock.run_for(std::chrono::hours(50));
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), HasSubstr("(2d2h ago)\n"));
  options.json = true;
  (void)run(Verb::status, "r");
  EXPECT_EQ(Json::parse(out.str())["rollouts"][0]["phase"], "Progressing") << "programs compare it";
}

// The record of an earlier attempt says what stops the next one, and its condition has the time of then.
TEST_F(RolloutCommand, AStopOfAnEarlierAttemptIsNotSaidToHaveStoppedThisOneThen) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "MaxFailures");
  Json status = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["status"];
  const std::string since = k8s::format_time(sim.clock.now());
  for (const auto& [type, reason] : {std::pair("Progressing", "MaxFailures"), std::pair("Current", "NewAttempt")}) {
    status["conditions"].push_back({{"type", type},
                                    {"status", "False"},
                                    {"reason", reason},
                                    {"message", "it is so"},
                                    {"lastTransitionTime", since}});
  }
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", status}}.dump());
  sim.clock.run_for(std::chrono::minutes(5));
  (void)run(Verb::status, "r");
  EXPECT_THAT(out.str(), HasSubstr("r: Stopped (MaxFailures)\n"));
}

// The condition of a rollout that failures stopped and a person paused later keeps the time of the failures.
TEST_F(RolloutCommand, StatusShowsSinceWhenAStoppedRolloutStartsNoNode) {
  const struct {
    const char* reason;
    int failed;
    const char* shown;  // With the time as {}.
  } rows[] = {{"Paused", 0, "r: Paused; no node starts since {} (5m ago)\n"},
              {"Paused", 1, "r: Paused\n"},
              {"MaxFailures", 1, "r: Stopped (MaxFailures); no node starts since {} (5m ago)\n"}};
  for (const auto& row : rows) {
    rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", row.reason);
    Json status = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r")["status"];
    const std::string since = k8s::format_time(sim.clock.now());
    status["conditions"].push_back({{"type", "Progressing"},
                                    {"status", "False"},
                                    {"reason", row.reason},
                                    {"message", "it is so"},
                                    {"lastTransitionTime", since}});
    status["counts"]["failed"] = row.failed;
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status", Json{{"status", status}}.dump());
    sim.clock.run_for(std::chrono::minutes(5));
    (void)run(Verb::status, "r");
    EXPECT_THAT(out.str(), HasSubstr(fmt::format(fmt::runtime(row.shown), since)));
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
  }
}

}  // namespace
}  // namespace gso::rollout_phase_test
