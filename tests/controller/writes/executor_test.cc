// What the executor sends, in which order, with which preconditions, and under whose lease; dry run; crash points.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/project.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"
#include "reconcilers/status/status.h"
#include "tests/controller/writes/executor_fixture.h"

namespace gso::executor_test {
namespace {

using namespace executor_test;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using k8s::test::Answer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_F(ExecutorTest, AnEmptyPlanSendsNothing) {
  const Execution done = execute({});
  EXPECT_THAT(transport.requests, IsEmpty());
  EXPECT_EQ(done.sent + done.deferred + done.failed, 0U);
}

TEST_F(ExecutorTest, AllPartsForOneNodeBecomeOnePatchWithTheResourceVersionThatAnyOfThemAsksFor) {
  PlannedAction cordon = patch("n1", {{"gpusharing.dev/state", "Updating"}}, "sharing.rollout");
  std::get<PatchNode>(cordon.action).unschedulable = true;
  std::get<PatchNode>(cordon.action).resource_version = "1";
  std::get<PatchNode>(cordon.action).set_annotations = {{"gpusharing.dev/message", "why"}};
  PlannedAction removal = patch("n1", {}, "node.mps-ready");
  std::get<PatchNode>(removal.action).remove = {"nvidia.mps/enabled"};
  execute({patch("n1", {{"nvidia.com/gpu.replicas", "4"}}), cordon, removal});
  ASSERT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(transport.requests.back().content_type, "application/merge-patch+json");
  EXPECT_EQ(Json::parse(transport.requests.back().body), Json::parse(R"({
    "metadata":{"resourceVersion":"1",
      "labels":{"nvidia.com/gpu.replicas":"4","gpusharing.dev/state":"Updating","nvidia.mps/enabled":null},
      "annotations":{"gpusharing.dev/message":"why"}},
    "spec":{"unschedulable":true}})"));
}

// As `kubectl uncordon` does: a value of false would be a difference for tools that compare objects with files.
TEST_F(ExecutorTest, AnUncordonRemovesTheField) {
  PlannedAction uncordon = patch("n1", {}, "sharing.rollout");
  std::get<PatchNode>(uncordon.action).unschedulable = false;
  execute({uncordon});
  EXPECT_EQ(Json::parse(transport.requests.back().body)["spec"], Json::parse(R"({"unschedulable":null})"));
}

TEST_F(ExecutorTest, NodesThatLoadedATextOutsideARolloutAreNoted) {
  PlannedAction recorded = patch("n1", {{"a", "1"}});
  recorded.why.code = kLoadedUngated;
  execute({recorded, patch("n2", {{"a", "1"}})});
  ASSERT_EQ(view->loaded_ungated.size(), 1U);
  EXPECT_EQ(view->loaded_ungated.begin()->first, "n1");
}

TEST_F(ExecutorTest, TwoReconcilersThatWantDifferentValuesAreAFinding) {
  const Execution done = execute({patch("n1", {{"a", "1"}}, "x"), patch("n1", {{"a", "2"}}, "y")});
  ASSERT_EQ(done.findings.size(), 1U);
  EXPECT_EQ(done.findings[0].why.code, "ConflictingWrites");
  EXPECT_THAT(transport.requests.back().body, HasSubstr(R"("a":"2")"));
}

TEST_F(ExecutorTest, RecordsComeFirstThenEachNodeInOrderStatusesLast) {
  const Execution done =
      execute({status_of("Progressing", 0), patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), create_rollout()});
  EXPECT_THAT(writes(), ElementsAre("POST /apis/gpusharing.dev/v1alpha1/sharingrollouts", "PATCH /api/v1/nodes/n1",
                                    "DELETE /api/v1/namespaces/gpu-operator/pods/p1",
                                    "PATCH /apis/gpusharing.dev/v1alpha1/sharingrollouts/r1/status"));
  EXPECT_EQ(done.succeeded, 4U);
}

std::vector<PlannedAction> patches_of(std::size_t nodes, const std::string& prefix) {
  std::vector<PlannedAction> actions;
  for (std::size_t i = 0; i < nodes; ++i) actions.push_back(patch(prefix + std::to_string(i), {{"a", "1"}}));
  return actions;
}

PlannedAction begin_change(const std::string& node) {
  PlannedAction begins = patch(node, {{"gpusharing.dev/state", "Updating"}}, "sharing.rollout");
  std::get<PatchNode>(begins.action).resource_version = "1";
  begins.disruptive = true;
  return begins;
}

TEST_F(ExecutorTest, APatchWithTheVersionThatWasPlannedFromNeedsNoReadBeforeIt) {
  const Execution done = execute({begin_change("n1"), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(transport.lines(),
              ElementsAre("PATCH /api/v1/nodes/n1", "DELETE /api/v1/namespaces/gpu-operator/pods/p1"));
  EXPECT_EQ(done.succeeded, 2U);

  PlannedAction of_any_version = begin_change("n2");
  std::get<PatchNode>(of_any_version.action).resource_version.reset();
  execute({of_any_version});
  EXPECT_THAT(transport.lines(), ElementsAre("GET /api/v1/nodes/n2", "PATCH /api/v1/nodes/n2"));
}

// `hold`, a cordon or a label has arrived a moment ago.
TEST_F(ExecutorTest, NothingIsDeletedOnANodeThatTheServerKnowsOtherwise) {
  script["PATCH"] = [] { return Answer::status_of(409, "Conflict", "the object has been modified"); };
  const Execution done = execute({begin_change("n1"), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(done.failed, 1U);
  EXPECT_EQ(done.deferred, 1U);
  EXPECT_TRUE(executor->nodes_being_written().contains("n1")) << "until it has been read";
}

TEST_F(ExecutorTest, AsManyRequestsAreUnansweredAsThereArePlaces) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 50ms); };
  const Execution done = execute(patches_of(50, "node"));
  EXPECT_EQ(done.succeeded, 50U);
  EXPECT_EQ(transport.most_in_flight, 16);
  places = 3;
  transport.most_in_flight = 0;
  std::vector<PlannedAction> more;
  for (int i = 0; i < 10; ++i) more.push_back(patch("node" + std::to_string(i), {{"b", "1"}}));
  EXPECT_EQ(execute(std::move(more)).succeeded, 10U);
  EXPECT_EQ(transport.most_in_flight, 3) << "the API server bears less by now";
}

// With the patience of the operator.
class SlowNodes : public ExecutorTest {
 protected:
  SlowNodes() {
    options.patience = ExecutorOptions().patience;
    options.record_patience = ExecutorOptions().record_patience;
    make_executor();
  }
};

// Behind a webhook that takes eight seconds for one node.
TEST_F(SlowNodes, ANodeThatIsSlowerThanTheOthersIsLeftBehindAndReportedWithTheNextPlan) {
  script["PATCH /api/v1/nodes/n1"] = [] { return Answer::json(200, node_json("n1", 2), 8s); };
  const MonoTime begun = sim.clock.monotonic();
  const Execution first = execute({patch("n1", {{"a", "1"}}), patch("n2", {{"a", "1"}}), status_of("Progressing", 1)});
  EXPECT_LE(sim.clock.monotonic() - begun, 1s);
  EXPECT_EQ(first.succeeded, 2U) << "n2 and the status";
  EXPECT_EQ(ended_late, 0);
  world.nodes.apply(*project_node(node_json("n2", 2)));
  EXPECT_THAT(executor->nodes_being_written(), ElementsAre(Pair("n1", nullptr)));

  const Execution second = execute({patch("n1", {{"a", "1"}}), patch("n3", {{"a", "1"}})});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n3")) << "nothing twice";
  EXPECT_EQ(second.deferred, 1U);

  sim.clock.run_for(8s);
  EXPECT_EQ(ended_late, 1);
  EXPECT_TRUE(executor->nodes_being_written().contains("n1")) << "the store does not show it yet";
  world.nodes.apply(*project_node(node_json("n1", 2)));
  EXPECT_FALSE(executor->nodes_being_written().contains("n1"));
  EXPECT_EQ(execute({}).succeeded, 1U) << "of n1";
}

// The API server does without a webhook after ten seconds, and then writes.
TEST_F(ExecutorTest, AWriteThatWaitsForAWebhookInVainIsNotGivenUpBeforeTheServerDoesWithoutIt) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 10s + 200ms); };
  EXPECT_EQ(execute({patch("n1", {{"a", "1"}})}).succeeded, 1U);
}

TEST_F(SlowNodes, NorDoesAStatusThatIsAnsweredSlowlyHoldUpAnybody) {
  const char* const status = "PATCH /apis/gpusharing.dev/v1alpha1/sharingrollouts/r1/status";
  script[status] = [] { return Answer::json(200, R"({"metadata":{"name":"r1","resourceVersion":"9"}})", 8s); };
  const MonoTime begun = sim.clock.monotonic();
  const Execution first = execute({patch("n1", {{"a", "1"}}), status_of("Progressing", 1)});
  EXPECT_LE(sim.clock.monotonic() - begun, 1s);
  EXPECT_EQ(first.succeeded, 1U);
  EXPECT_TRUE(executor->is_busy());

  const Execution second = execute({patch("n2", {{"a", "1"}}), status_of("Progressing", 2)});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n2")) << "one status at a time";
  EXPECT_EQ(second.deferred, 1U);

  sim.clock.run_for(8s);
  EXPECT_EQ(ended_late, 1);
  EXPECT_FALSE(expectations.fleet_is_current()) << "the store does not show it yet";
  EXPECT_EQ(execute({}).succeeded, 1U) << "of the status";
}

// A webhook for Nodes that does not answer: the API server does without it after ten seconds, or the write times out.
TEST_F(SlowNodes, NodesThatHangHoldUpNeitherTheRecordNorTheStatusOfAPause) {
  for (const Duration webhook : {Duration(10s), Duration(1h)}) {
    script["PATCH /api/v1/nodes/"] = [webhook] { return Answer::json(200, node_json("n1", 2), webhook); };
    places = 32;
    make_executor();
    execute(patches_of(40, "first-"));
    ASSERT_EQ(client.writes(k8s::WriteKind::object).open(), client.writes(k8s::WriteKind::object).limit());
    // Before and after the writes of nodes have timed out, which narrows their lane and makes it wait.
    for (const Duration later : {Duration(1s), Duration(13s)}) {
      sim.clock.run_for(later);
      const MonoTime begun = sim.clock.monotonic();
      const Execution paused = execute({create_rollout(), status_of("Paused", static_cast<int>(later / 1s))});
      EXPECT_LE(sim.clock.monotonic() - begun, options.patience);
      EXPECT_GE(paused.succeeded, 2U);
      EXPECT_THAT(writes(), ElementsAre("POST /apis/gpusharing.dev/v1alpha1/sharingrollouts",
                                        "PATCH /apis/gpusharing.dev/v1alpha1/sharingrollouts/r1/status"));
    }
    EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 1min)));
    sim.clock.run_for(10min);
  }
}

// While the records of a plan are written, or answers about its nodes come in one by one, what an earlier plan has left
// behind ends: this plan does not know it.
TEST_F(SlowNodes, WhatEndsWhileAPlanIsExecutedIsPlannedAnewBeforeItIsWrittenAgain) {
  const char* const status = "PATCH /apis/gpusharing.dev/v1alpha1/sharingrollouts/r1/status";
  const char* const created = R"({"metadata":{"name":"r1","resourceVersion":"9"}})";
  script[status] = [=] { return Answer::json(200, created, 500ms); };
  script["POST"] = [=] { return Answer::json(201, created, 900ms); };
  execute({status_of("Progressing", 1)});
  ASSERT_THAT(writes(), ElementsAre(status));

  const Execution second = execute({create_rollout(), status_of("Progressing", 1)});
  EXPECT_THAT(writes(), ElementsAre("POST /apis/gpusharing.dev/v1alpha1/sharingrollouts")) << "not the status again";
  EXPECT_EQ(second.deferred, 1U);
  EXPECT_EQ(ended_late, 1) << "it asks for the next plan";

  sim.clock.run_for(5s);  // No two statuses of an object follow at once.
  execute({status_of("Progressing", 2)});
  EXPECT_THAT(writes(), ElementsAre(status)) << "of a plan that knows it";
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 10s)));
}

// The next plan is made before the next execute(): it would evict once more.
TEST_F(SlowNodes, ALateEvictionIsKnownBeforeTheNextPlan) {
  script["POST /api/v1/namespaces/team/pods/train/eviction"] = [] { return Answer::json(201, "{}", 5s); };
  execute({PlannedAction{"sharing.rollout", EvictPod{{"team", "train"}, "u9"}, {"Evict", ""}, true, "n1"}});
  EXPECT_THAT(late_evictions, testing::IsEmpty());
  sim.clock.run_for(5s);
  EXPECT_THAT(late_evictions, ElementsAre("n1"));
  EXPECT_TRUE(execute({}).evictions.contains("n1")) << "for the report";
}

// No plan names the node meanwhile: that does not mean that its writes succeed.
TEST_F(SlowNodes, AWriteThatFailsSlowlyIsTriedEverMoreSeldom) {
  script["PATCH"] = [] {
    Answer lost = Answer::broken();
    lost.takes = 1s;
    return lost;
  };
  std::vector<Duration> waits;
  for (int attempt = 0; attempt < 4; ++attempt) {
    execute({patch("n1", {{"a", "1"}})});
    ASSERT_EQ(writes().size(), 1U);
    execute({});
    sim.clock.run_for(1s);
    waits.push_back(execute({}).requeue_after.value_or(0s));
    sim.clock.run_for(waits.back());
    execute({});
  }
  EXPECT_THAT(waits, ElementsAre(250ms, 500ms, 1s, 2s));
}

TEST_F(SlowNodes, NodesForWhichNoPlaceIsFreeArePlannedAgain) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 5s); };
  const Execution done = execute(patches_of(20, "node"));
  EXPECT_EQ(writes().size(), 16U);
  EXPECT_EQ(done.deferred, 4U);
  EXPECT_EQ(executor->nodes_being_written().size(), 16U);
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 10s)));
  EXPECT_EQ(ended_late, 16);
}

// The server has something to do while that plan is made.
TEST_F(SlowNodes, WhileAFullPlanIsAnsweredTheNextOneIsMade) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 100ms); };
  const Execution full = execute(patches_of(PlanDraft::kMostActions, "first-"));
  EXPECT_EQ(writes().size(), PlanDraft::kMostActions) << "all have begun";
  EXPECT_EQ(full.succeeded, 48U);
  EXPECT_EQ(full.deferred, 0U);
  EXPECT_TRUE(executor->is_busy());
  EXPECT_EQ(executor->nodes_being_written().size(), 12U) << "the last of 16 side by side; no store has the others";

  const Execution rest = execute(patches_of(20, "second-"));
  EXPECT_EQ(transport.most_in_flight, 16);
  EXPECT_EQ(ended_late, 12);
  EXPECT_EQ(rest.succeeded, 20U);
  EXPECT_FALSE(executor->is_busy());
  EXPECT_EQ(execute({}).succeeded, 12U) << "the last of the full plan";
}

// What the next plan may have (Snapshot::answered_lately).
TEST_F(SlowNodes, AnswersOfTheLastSecondAreCountedWhateverTheyAre) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 100ms); };
  script["PATCH /api/v1/nodes/node7"] = [] { return Answer::json(404, "{}", 100ms); };
  execute(patches_of(20, "node"));
  EXPECT_EQ(executor->answered_lately(), 20U);
  sim.clock.run_for(850ms);
  EXPECT_EQ(executor->answered_lately(), 20U);
  sim.clock.run_for(100ms);
  EXPECT_EQ(executor->answered_lately(), 4U) << "16 were answered 100 ms earlier";
  sim.clock.run_for(200ms);
  EXPECT_EQ(executor->answered_lately(), 0U);
}

TEST_F(SlowNodes, AFullPlanWaitsForNoSlowNode) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 5s); };
  const Execution done = execute(patches_of(PlanDraft::kMostActions, "node"));
  EXPECT_EQ(writes().size(), 16U);
  EXPECT_EQ(done.deferred, PlanDraft::kMostActions - 16U) << "planned again";
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 10s)));
}

TEST_F(SlowNodes, FinishSaysWhetherAnythingIsStillUnanswered) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 5s); };
  execute({patch("n1", {{"a", "1"}})});
  EXPECT_FALSE(sim.run(executor->finish(sim.clock.monotonic() + 1s)));
  executor->cancel();
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 1s)));
}

TEST_F(ExecutorTest, WithoutTheLeaseNothingIsSent) {
  leading = false;
  const Execution done = execute({patch("n1", {{"a", "1"}}), create_rollout()});
  EXPECT_THAT(transport.requests, IsEmpty());
  EXPECT_EQ(done.deferred, 2U);
}

TEST_F(ExecutorTest, TheLeaseLostBetweenTwoActionsStopsBeforeTheSecond) {
  script["PATCH"] = [this] {
    leading = false;
    return Answer::json(200, node_json("n1", 2));
  };
  const Execution done = execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(done.succeeded, 1U);
  EXPECT_EQ(done.deferred, 1U);
}

TEST_F(ExecutorTest, AWriteEndsBeforeAnotherLeaderMayAct) {
  script["PATCH"] = [] { return Answer::json(200, node_json("n1", 2), 1h); };
  end_by = sim.clock.monotonic() + 5s;
  const Execution done = execute({patch("n1", {{"a", "1"}})});
  EXPECT_EQ(done.failed, 1U);
  EXPECT_LE(sim.clock.monotonic(), end_by);
}

TEST_F(ExecutorTest, TheCrashPointEndsEverythingAfterTheNthWrite) {
  crash_at = 2;
  std::vector<PlannedAction> actions;
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i + 1);
    actions.push_back(patch("n" + n, {{"a", "1"}}));
    actions.push_back(drop_pod("n" + n, "p" + n, "u" + n));
  }
  const Execution done = execute(std::move(actions));
  EXPECT_TRUE(done.crashed);
  EXPECT_EQ(view->writes, 2U);
  EXPECT_LE(writes().size(), 3U) << "those in flight at that moment";
  EXPECT_TRUE(execute({patch("n1", {{"a", "1"}})}).crashed);
  EXPECT_THAT(transport.requests, IsEmpty());
}

TEST_F(ExecutorTest, AStatusIsSentOnceASecondAndAtOnceWhenThePhaseChanges) {
  execute({status_of("Progressing", 1)});
  EXPECT_EQ(writes().size(), 1U);
  Execution done = execute({status_of("Progressing", 2)});
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_EQ(done.requeue_after, 1s);
  execute({status_of("Completed", 3)});
  EXPECT_EQ(writes().size(), 1U);
  sim.clock.run_for(1s);
  execute({status_of("Completed", 4)});
  EXPECT_EQ(writes().size(), 1U);
}

TEST_F(ExecutorTest, AStatusPatchRemovesWhatTheNewStatusDoesNotHave) {
  world.rollouts.apply(*project_sharing_rollout(
      R"({"metadata":{"name":"r1","resourceVersion":"1"},"spec":{},"status":{"phase":"Paused","reason":"x"}})"));
  execute({status_of("Progressing", 1)});
  EXPECT_EQ(
      Json::parse(transport.requests.back().body),
      Json::parse(R"({"metadata":{"resourceVersion":"1"},"status":{"phase":"Progressing","ready":1,"reason":null}})"));
}

// What the leader before, or a person, has written since the plan was made is refused, and planned from anew.
TEST_F(ExecutorTest, RecordsKeysAndStatusesAreWrittenToTheVersionThatTheyWerePlannedFrom) {
  const auto config_map = [](const char* ns, const char* name, int version) {
    return *project_configmap(
        fmt::format(R"({{"metadata":{{"namespace":"{}","name":"{}","resourceVersion":"{}"}},"data":{{"k":"v"}}}})", ns,
                    name, version));
  };
  world.configmaps.apply(config_map("gpu-sharing-operator", "gpu-sharing-operator-state", 7));
  world.configmaps.apply(config_map("gpu-operator", "mps-config", 8));
  world.configmaps.apply(config_map("nos", "slices", 9));
  const auto sent = [this](const Action& action) {
    execute({{"sharing.rollout", action, {"Written", ""}, false, ""}});
    const Json body = Json::parse(transport.requests.back().body);
    return body.value(Json::json_pointer("/metadata/resourceVersion"), std::string());
  };
  EXPECT_EQ(sent(WriteConfigMap{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"baseline.json", "{}"}}, {}}),
            "7");
  EXPECT_EQ(sent(WriteConfigMap{{"gpu-operator", "mps-config"}, {{"gso-a", "x"}}, {}}), "8");
  EXPECT_EQ(sent(PatchConfigMap{{"nos", "slices"}, {{"a", "x"}}, {}}), "9");
  EXPECT_EQ(sent(WriteConfigMap{{"gpu-operator", "new"}, {{"gso-a", "x"}}, {}}), "") << "it does not exist yet";
}

TEST_F(ExecutorTest, ARecordThatSomebodyElseHasWrittenIsReadBeforeTheNextPlan) {
  world.configmaps.apply(*project_configmap(
      R"({"metadata":{"namespace":"gpu-sharing-operator","name":"gpu-sharing-operator-state","resourceVersion":"7"}})"));
  script["PATCH /api/v1/namespaces/gpu-sharing-operator/configmaps"] = [] {
    return Answer::status_of(409, "Conflict", "the object has been modified");
  };
  const WriteConfigMap record{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"baseline.json", "{}"}}, {}};
  const Execution done = execute({{"sharing.rollout", record, {"Recorded", ""}, false, ""}});
  EXPECT_EQ(done.failed, 1U);
  EXPECT_FALSE(expectations.fleet_is_current()) << "nothing is planned from the old one";
}

TEST_F(ExecutorTest, AnApplyKeepsOurOtherKeysAndNamesNoneOfOthers) {
  world.configmaps.apply(*project_configmap(R"({"metadata":{"namespace":"gpu-operator","name":"mps-config",
    "resourceVersion":"1","managedFields":[{"manager":"gpu-sharing-operator","operation":"Apply",
    "fieldsV1":{"f:data":{"f:gso-a":{},"f:gso-b":{}}}}]},
    "data":{"any":"theirs","gso-a":"ours","gso-b":"old","gso-theirs":"not ours, though it looks like it"}})"));
  WriteConfigMap theirs{{"gpu-operator", "mps-config"}, {{"gso-c", "new"}}, {"gso-b"}};
  execute({{"node.profile", theirs, {"Inline", ""}, false, ""}});
  EXPECT_THAT(transport.requests.back().path, HasSubstr("fieldManager=gpu-sharing-operator"));
  EXPECT_THAT(transport.requests.back().path, HasSubstr("force=true"));
  EXPECT_EQ(Json::parse(transport.requests.back().body)["data"], Json::parse(R"({"gso-a":"ours","gso-c":"new"})"));

  WriteConfigMap ours{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"baseline.json", "{}"}}, {}};
  execute({{"node.profile", ours, {"Baseline", ""}, false, ""}});
  EXPECT_THAT(transport.requests.back().path, HasSubstr("force=true"));
}

TEST_F(ExecutorTest, APartOfTheRecordCarriesTheLabelThatItsWatchFindsItBy) {
  const WriteConfigMap part{
      {"gpu-sharing-operator", "gpu-sharing-operator-state-15"}, {{std::string(kShardKey), "{}"}}, {}};
  execute({{"sharing.rollout", part, {"Baseline", ""}, false, ""}});
  const Json meta = Json::parse(transport.requests.back().body)["metadata"];
  EXPECT_EQ(meta["labels"][std::string(kRecordLabel)], kRecordShardValue);
  const WriteConfigMap head{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"baseline.json", "{}"}}, {}};
  execute({{"sharing.rollout", head, {"Baseline", ""}, false, ""}});
  EXPECT_FALSE(Json::parse(transport.requests.back().body)["metadata"].contains("labels"));
}

TEST_F(ExecutorTest, ADeletionNamesTheUidOfTheObjectThatIsMeant) {
  const DeleteObject action{{"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", "u7"}};
  execute({{"sharing.rollout", action, {"HistoryTrimmed", ""}, false, ""}});
  ASSERT_THAT(writes(), ElementsAre("DELETE /apis/gpusharing.dev/v1alpha1/sharingrollouts/r1"));
  const Json body = Json::parse(transport.requests.back().body);
  EXPECT_EQ(body["preconditions"]["uid"], "u7") << "another one of that name might have been created since";
}

TEST_F(ExecutorTest, ADryRunSendsNothing) {
  options.dry_run = true;
  make_executor();
  execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), create_rollout()});
  EXPECT_THAT(transport.requests, IsEmpty());
}
TEST_F(ExecutorTest, StatusesAreNoLogLinesWhereverTheyStand) {
  const WriteConfigMap state{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"status.json", "{}"}}, {}};
  execute({status_of("Progressing", 0), {"policy.status", state, {kStatusChanged, ""}, false, ""}});
  EXPECT_EQ(writes().size(), 2U);
  EXPECT_THAT(logged, IsEmpty());
  execute({{"node.profile", state, {"Baseline", ""}, false, ""}});
  EXPECT_THAT(logged, ElementsAre(HasSubstr("reason=Baseline")));
}

}  // namespace
}  // namespace gso::executor_test
