// What the executor sends, in which order, with which preconditions, and under whose lease; dry run; crash points.
#include <gmock/gmock.h>

#include <chrono>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/project.h"
#include "reconcilers/reasons/names.h"
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

const std::string kRollouts = "/apis/gpusharing.dev/v1alpha1/sharingrollouts";
const std::string kStatusOfR1 = "PATCH " + kRollouts + "/r1/status";
const std::string kDeletePod = "DELETE /api/v1/namespaces/gpu-operator/pods/p1";
const k8s::ObjectKey kState{"gpu-sharing-operator", "gpu-sharing-operator-state"};

// Each patch of a node is answered after this time.
Answer patched(Duration after = {}) {
  return Answer::json(200, node_json("n1", 2), after);
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
  EXPECT_EQ(sent_body(), Json::parse(R"({
    "metadata":{"resourceVersion":"1",
      "labels":{"nvidia.com/gpu.replicas":"4","gpusharing.dev/state":"Updating","nvidia.mps/enabled":null},
      "annotations":{"gpusharing.dev/message":"why"}},
    "spec":{"unschedulable":true}})"));
  // As `kubectl uncordon` does: a value of false would be a difference for tools that compare objects with files.
  std::get<PatchNode>(cordon.action).unschedulable = false;
  execute({cordon});
  EXPECT_EQ(sent_body()["spec"], Json::parse(R"({"unschedulable":null})"));
  const Execution nothing = execute({});
  EXPECT_THAT(transport.requests, IsEmpty());
  EXPECT_EQ(nothing.sent + nothing.deferred + nothing.failed, 0U);
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
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n1", kDeletePod, kStatusOfR1));
  EXPECT_EQ(done.succeeded, 4U);
}

// One that a reconciler plans for no node.
PlannedAction planned(const Action& action, std::string code = "Written") {
  return {"sharing.rollout", action, {std::move(code), ""}, false, ""};
}

std::vector<PlannedAction> patches_of(std::size_t nodes, const std::string& prefix) {
  std::vector<PlannedAction> actions;
  for (std::size_t i = 0; i < nodes; ++i) actions.push_back(patch(prefix + std::to_string(i), {{"a", "1"}}));
  return actions;
}

TEST_F(ExecutorTest, APatchWithTheVersionThatWasPlannedFromNeedsNoReadBeforeIt) {
  const Execution done = execute({begin_change("n1"), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(transport.lines(), ElementsAre("PATCH /api/v1/nodes/n1", kDeletePod));
  EXPECT_EQ(done.succeeded, 2U);

  PlannedAction of_any_version = begin_change("n2");
  std::get<PatchNode>(of_any_version.action).resource_version.reset();
  execute({of_any_version});
  EXPECT_THAT(transport.lines(), ElementsAre("GET /api/v1/nodes/n2", "PATCH /api/v1/nodes/n2"));
}

TEST_F(ExecutorTest, AsManyRequestsAreUnansweredAsThereArePlaces) {
  script["PATCH"] = [] { return patched(50ms); };
  const Execution done = execute(patches_of(50, "node"));
  EXPECT_EQ(done.succeeded, 50U);
  EXPECT_EQ(transport.most_in_flight, 16);
  places = 3;
  transport.most_in_flight = 0;
  EXPECT_EQ(execute(patches_of(10, "other")).succeeded, 10U);
  EXPECT_EQ(transport.most_in_flight, 3) << "the API server bears less by now";
}

// Behind a webhook that takes eight seconds for one node.
TEST_F(SlowServer, ANodeThatIsSlowerThanTheOthersIsLeftBehindAndReportedWithTheNextPlan) {
  script["PATCH /api/v1/nodes/n1"] = [] { return patched(8s); };
  EXPECT_LE(took({patch("n1", {{"a", "1"}}), patch("n2", {{"a", "1"}}), status_of("Progressing", 1)}), 1s);
  EXPECT_EQ(done.succeeded, 2U) << "n2 and the status";
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

TEST_F(SlowServer, NorDoesAStatusThatIsAnsweredSlowlyHoldUpAnybody) {
  answer_after(kStatusOfR1, 8s);
  EXPECT_LE(took({patch("n1", {{"a", "1"}}), status_of("Progressing", 1)}), 1s);
  EXPECT_EQ(done.succeeded, 1U);
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
TEST_F(SlowServer, NodesThatHangHoldUpNeitherTheRecordNorTheStatusOfAPause) {
  for (const Duration webhook : {Duration(10s), Duration(1h)}) {
    script["PATCH /api/v1/nodes/"] = [webhook] { return patched(webhook); };
    places = 32;
    make_executor();
    execute(patches_of(40, "first-"));
    ASSERT_EQ(client.writes(k8s::WriteKind::object).open(), client.writes(k8s::WriteKind::object).limit());
    // Before and after the writes of nodes have timed out, which narrows their lane and makes it wait.
    for (const Duration later : {Duration(1s), Duration(13s)}) {
      sim.clock.run_for(later);
      EXPECT_LE(took({create_rollout(), status_of("Paused", static_cast<int>(later / 1s))}), options.patience);
      EXPECT_GE(done.succeeded, 2U);
      EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, kStatusOfR1));
    }
    EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 1min)));
    sim.clock.run_for(10min);
  }
}

// While the records of a plan are written, or answers about its nodes come in one by one, what an earlier plan has left
// behind ends: this plan does not know it.
TEST_F(SlowServer, WhatEndsWhileAPlanIsExecutedIsPlannedAnewBeforeItIsWrittenAgain) {
  answer_after(kStatusOfR1, 500ms);
  answer_after("POST", 900ms);
  execute({status_of("Progressing", 1)});
  ASSERT_THAT(writes(), ElementsAre(kStatusOfR1));

  const Execution second = execute({create_rollout(), status_of("Progressing", 1)});
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts)) << "not the status again";
  EXPECT_EQ(second.deferred, 1U);
  EXPECT_EQ(ended_late, 1) << "it asks for the next plan";

  sim.clock.run_for(5s);  // No two statuses of an object follow at once.
  execute({status_of("Progressing", 2)});
  EXPECT_THAT(writes(), ElementsAre(kStatusOfR1)) << "of a plan that knows it";
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 10s)));
}

// The next plan is made before the next execute(): it would evict once more.
TEST_F(SlowServer, ALateEvictionIsKnownBeforeTheNextPlan) {
  answer_after("POST /api/v1/namespaces/team/pods/train/eviction", 5s);
  execute({evict("team", "train", "u9")});
  EXPECT_THAT(late_evictions, testing::IsEmpty());
  sim.clock.run_for(5s);
  EXPECT_THAT(late_evictions, ElementsAre("n1"));
  EXPECT_TRUE(execute({}).evictions.contains("n1")) << "for the report";
}

// No plan names the node meanwhile: that does not mean that its writes succeed.
TEST_F(SlowServer, AWriteThatFailsSlowlyIsTriedEverMoreSeldom) {
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

// Nor does a full plan wait for a slow node.
TEST_F(SlowServer, NodesForWhichNoPlaceIsFreeArePlannedAgain) {
  script["PATCH"] = [] { return patched(5s); };
  int late = 0;
  for (const std::size_t nodes : {std::size_t{20}, PlanDraft::kMostActions}) {
    EXPECT_EQ(execute(patches_of(nodes, "node" + std::to_string(late))).deferred, nodes - 16);
    EXPECT_EQ(writes().size(), 16U);
    EXPECT_GE(executor->nodes_being_written().size(), 16U);
    EXPECT_FALSE(sim.run(executor->finish(sim.clock.monotonic() + 1s))) << "some are unanswered";
    EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 10s)));
    EXPECT_EQ(ended_late, late += 16);
  }
}

// The server has something to do while that plan is made.
TEST_F(SlowServer, WhileAFullPlanIsAnsweredTheNextOneIsMade) {
  script["PATCH"] = [] { return patched(100ms); };
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
TEST_F(SlowServer, AnswersOfTheLastSecondAreCountedWhateverTheyAre) {
  script["PATCH"] = [] { return patched(100ms); };
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

TEST_F(ExecutorTest, WithoutTheLeaseNothingIsSentAndOneLostBetweenTwoActionsStopsBeforeTheSecond) {
  leading = false;
  EXPECT_EQ(execute({patch("n1", {{"a", "1"}}), create_rollout()}).deferred, 2U);
  EXPECT_THAT(transport.requests, IsEmpty());
  leading = true;
  script["PATCH"] = [this] {
    leading = false;
    return patched();
  };
  const Execution done = execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(done.succeeded, 1U);
  EXPECT_EQ(done.deferred, 1U);
}

// The API server does without a webhook after ten seconds, and then writes.
TEST_F(ExecutorTest, AWriteEndsBeforeAnotherLeaderMayActAndNotBeforeTheServerDoesWithoutAWebhook) {
  script["PATCH"] = [] { return patched(10s + 200ms); };
  EXPECT_EQ(execute({patch("n1", {{"a", "1"}})}).succeeded, 1U);
  end_by = sim.clock.monotonic() + 5s;
  EXPECT_EQ(execute({patch("n2", {{"a", "1"}})}).failed, 1U);
  EXPECT_LE(sim.clock.monotonic(), end_by);
}

TEST_F(ExecutorTest, TheCrashPointEndsEverythingAfterTheNthWrite) {
  crash_at = 2;
  EXPECT_TRUE(execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), patch("n2", {{"a", "1"}}),
                       drop_pod("n2", "p2", "u2"), patch("n3", {{"a", "1"}}), drop_pod("n3", "p3", "u3")})
                  .crashed);
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
      sent_body(),
      Json::parse(R"({"metadata":{"resourceVersion":"1"},"status":{"phase":"Progressing","ready":1,"reason":null}})"));
}

// What the leader before, or a person, has written since the plan was made is refused, and planned from anew.
TEST_F(ExecutorTest, RecordsKeysAndStatusesAreWrittenToTheVersionThatTheyWerePlannedFrom) {
  const ObjectKey profiles{"gpu-operator", "mps-config"};
  const ObjectKey slices{"nos", "slices"};
  int version = 7;
  for (const ObjectKey& key : {kState, profiles, slices}) {
    const Json metadata{{"namespace", key.ns}, {"name", key.name}, {"resourceVersion", std::to_string(version++)}};
    world.configmaps.apply(*project_configmap(Json{{"metadata", metadata}, {"data", {{"k", "v"}}}}.dump()));
  }
  const auto sent = [this](const Action& action) {
    execute({planned(action)});
    return sent_body().value(Json::json_pointer("/metadata/resourceVersion"), std::string());
  };
  EXPECT_EQ(sent(WriteConfigMap{kState, {{"baseline.json", "{}"}}, {}}), "7");
  EXPECT_EQ(sent(WriteConfigMap{profiles, {{"gso-a", "x"}}, {}}), "8");
  EXPECT_EQ(sent(PatchConfigMap{slices, {{"a", "x"}}, {}}), "9");
  EXPECT_EQ(sent(WriteConfigMap{{"gpu-operator", "new"}, {{"gso-a", "x"}}, {}}), "") << "it does not exist yet";
  script["PATCH"] = [] { return Answer::status_of(409, "Conflict", "the object has been modified"); };
  EXPECT_EQ(execute({planned(WriteConfigMap{kState, {{"baseline.json", "{}"}}, {}})}).failed, 1U);
  EXPECT_FALSE(expectations.fleet_is_current()) << "nothing is planned from the old one";
}

TEST_F(ExecutorTest, AnApplyKeepsOurOtherKeysAndNamesNoneOfOthers) {
  world.configmaps.apply(*project_configmap(R"({"metadata":{"namespace":"gpu-operator","name":"mps-config",
    "resourceVersion":"1","managedFields":[{"manager":"gpu-sharing-operator","operation":"Apply",
    "fieldsV1":{"f:data":{"f:gso-a":{},"f:gso-b":{}}}}]},
    "data":{"any":"theirs","gso-a":"ours","gso-b":"old","gso-theirs":"not ours, though it looks like it"}})"));
  execute({planned(WriteConfigMap{{"gpu-operator", "mps-config"}, {{"gso-c", "new"}}, {"gso-b"}})});
  EXPECT_THAT(transport.requests.back().path, HasSubstr("fieldManager=gpu-sharing-operator"));
  EXPECT_THAT(transport.requests.back().path, HasSubstr("force=true"));
  EXPECT_EQ(sent_body()["data"], Json::parse(R"({"gso-a":"ours","gso-c":"new"})"));

  execute({planned(WriteConfigMap{kState, {{"baseline.json", "{}"}}, {}})});
  EXPECT_THAT(transport.requests.back().path, HasSubstr("force=true"));
}

TEST_F(ExecutorTest, APartOfTheRecordCarriesTheLabelThatItsWatchFindsItBy) {
  const WriteConfigMap part{
      {"gpu-sharing-operator", "gpu-sharing-operator-state-15"}, {{std::string(kShardKey), "{}"}}, {}};
  execute({planned(part)});
  EXPECT_EQ(sent_body()["metadata"]["labels"][std::string(kRecordLabel)], kRecordShardValue);
  execute({planned(WriteConfigMap{kState, {{"baseline.json", "{}"}}, {}})});
  EXPECT_FALSE(sent_body()["metadata"].contains("labels"));
}

TEST_F(ExecutorTest, ADeletionNamesTheUidOfTheObjectThatIsMeant) {
  execute({planned(DeleteObject{{"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", "u7"}})});
  ASSERT_THAT(writes(), ElementsAre("DELETE " + kRollouts + "/r1"));
  EXPECT_EQ(sent_body()["preconditions"]["uid"], "u7") << "another one of that name might have been created since";
}

// What it said is forgotten once it is not planned.
TEST_F(ExecutorTest, ADryRunSendsNothing) {
  options.dry_run = true;
  make_executor();
  execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), create_rollout()});
  EXPECT_THAT(transport.requests, IsEmpty());
  EXPECT_EQ(executor->remembered(), 3U) << "so that each is logged once";
  execute({});
  EXPECT_EQ(executor->remembered(), 0U);
}

TEST_F(ExecutorTest, StatusesAreNoLogLinesWhereverTheyStand) {
  const WriteConfigMap state{kState, {{"status.json", "{}"}}, {}};
  execute({status_of("Progressing", 0), planned(state, std::string(kStatusChanged))});
  EXPECT_EQ(writes().size(), 2U);
  EXPECT_THAT(logged, IsEmpty());
  execute({planned(state, "Baseline")});
  EXPECT_THAT(logged, ElementsAre(HasSubstr("reason=Baseline")));
}

}  // namespace
}  // namespace gso::executor_test
