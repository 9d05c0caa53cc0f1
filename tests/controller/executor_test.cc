// The executor against a scripted API server: order, merging, preconditions, failures, the lease, crash points.
#include "controller/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/model/project.h"
#include "tests/controller/scripted_transport.h"
#include "tests/controller/sim_time.h"

namespace gso {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PlannedAction patch(const std::string& node, std::map<std::string, std::string> labels,
                    const std::string& reconciler = "node.labels") {
  PatchNode action;
  action.name = node;
  action.set = std::move(labels);
  return {reconciler, action, "Labels", "", false, node};
}

PlannedAction drop_pod(const std::string& node, const std::string& pod, const std::string& uid) {
  return {"sharing.rollout", DeletePod{{"gpu-operator", pod}, uid, {}, {}}, "Restart", "", true, node};
}

PlannedAction status_of(const std::string& phase, int ready) {
  PatchStatus action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""};
  action.status_json = Json{{"phase", phase}, {"ready", ready}}.dump();
  return {"sharing.rollout", action, "Status", "", false, ""};
}

PlannedAction create_rollout() {
  CreateObject action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""};
  action.json = R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"r1"}})";
  return {"sharing.rollout", action, "Start", "", false, ""};
}

std::string node_json(const std::string& name, int version, const std::string& extra = "") {
  return R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"(","uid":"u-)" + name +
         R"(","resourceVersion":")" + std::to_string(version) + "\"" + extra + R"(},"spec":{},"status":{}})";
}

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest() {
    world.nodes.init();
    for (const char* name : {"n1", "n2", "n3"}) world.nodes.init_apply(*project_node(node_json(name, 1)));
    world.nodes.init_done();
    world.operand_pods.mark_absent();
    world.configmaps.mark_absent();
    world.rollouts.mark_absent();
    Executor::Parts parts;
    parts.client = &client;
    parts.clock = &sim.clock;
    parts.world = &world;
    parts.expectations = &expectations;
    parts.log = Logger::silent();
    parts.metrics = metrics;
    parts.view = view;
    parts.gate.check = [this]() -> k8s::Result<void> {
      if (!leading) return k8s::fail(k8s::Reason::cancelled, "the lease is not held");
      return {};
    };
    parts.gate.end_by = [this] { return end_by; };
    parts.hooks.crash_after_write = [this](std::uint64_t n, const PlannedAction&) { return n == crash_at; };
    ExecutorOptions options;
    options.state_config_map = {"gpu-sharing-operator", "gpu-sharing-operator-state"};
    executor = std::make_unique<Executor>(parts, options);
  }

  ScriptedAnswer answer(const k8s::HttpRequest& request) {
    const std::string line =
        std::string(k8s::to_string(request.method)) + " " + request.path.substr(0, request.path.find('?'));
    for (const auto& [pattern, instead] : script) {
      if (line.find(pattern) != std::string::npos) return instead();
    }
    if (line.starts_with("GET /api/v1/nodes/")) return ScriptedAnswer::json(200, node_json(line.substr(18), 1));
    if (line.starts_with("PATCH /api/v1/nodes/")) return ScriptedAnswer::json(200, node_json(line.substr(20), 2));
    return ScriptedAnswer::json(200, R"({"metadata":{"name":"x","resourceVersion":"9"}})");
  }

  Execution execute(std::vector<PlannedAction> actions) {
    Plan plan;
    plan.actions = std::move(actions);
    transport.seen.clear();
    return sim.run(executor->execute(plan));
  }
  std::vector<std::string> writes() const {
    std::vector<std::string> out;
    for (const std::string& line : transport.lines()) {
      if (!line.starts_with("GET")) out.push_back(line);
    }
    return out;
  }

  Sim sim;
  std::map<std::string, std::function<ScriptedAnswer()>> script;  // Part of "METHOD path" -> answer.
  ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest& r) { return answer(r); }};
  k8s::ApiClient client{&transport, &sim.clock, client_options()};
  static k8s::ClientOptions client_options() {
    k8s::ClientOptions options;
    options.field_manager = "gpu-sharing-operator";
    return options;
  }
  World world;
  Expectations expectations{&client, &sim.clock, &world};
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::shared_ptr<RuntimeView> view = std::make_shared<RuntimeView>();
  std::unique_ptr<Executor> executor;
  bool leading = true;
  MonoTime end_by = MonoTime::never();
  std::uint64_t crash_at = 0;
};

TEST_F(ExecutorTest, AnEmptyPlanSendsNothing) {
  const Execution done = execute({});
  EXPECT_THAT(transport.seen, IsEmpty());
  EXPECT_EQ(done.sent + done.deferred + done.failed, 0U);
}

TEST_F(ExecutorTest, AllPartsForOneNodeBecomeOnePatchWithTheResourceVersionThatAnyOfThemAsksFor) {
  PlannedAction cordon = patch("n1", {{"gpusharing.dev/state", "Updating"}}, "sharing.rollout");
  std::get<PatchNode>(cordon.action).unschedulable = true;
  std::get<PatchNode>(cordon.action).resource_version = "1";
  std::get<PatchNode>(cordon.action).set_annotations = {{"gpusharing.dev/target-revision", "v1-abc"}};
  PlannedAction removal = patch("n1", {}, "node.mps-ready");
  std::get<PatchNode>(removal.action).remove = {"nvidia.mps/enabled"};
  execute({patch("n1", {{"nvidia.com/gpu.replicas", "4"}}), cordon, removal});
  ASSERT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(transport.seen.back().request.content_type, "application/merge-patch+json");
  EXPECT_EQ(Json::parse(transport.seen.back().request.body), Json::parse(R"({
    "metadata":{"resourceVersion":"1",
      "labels":{"nvidia.com/gpu.replicas":"4","gpusharing.dev/state":"Updating","nvidia.mps/enabled":null},
      "annotations":{"gpusharing.dev/target-revision":"v1-abc"}},
    "spec":{"unschedulable":true}})"));
}

TEST_F(ExecutorTest, TwoReconcilersThatWantDifferentValuesAreAFinding) {
  const Execution done = execute({patch("n1", {{"a", "1"}}, "x"), patch("n1", {{"a", "2"}}, "y")});
  ASSERT_EQ(done.findings.size(), 1U);
  EXPECT_EQ(done.findings[0].reason, "ConflictingWrites");
  EXPECT_THAT(transport.seen.back().request.body, HasSubstr(R"("a":"2")"));
}

TEST_F(ExecutorTest, RecordsComeFirstThenEachNodeInOrderStatusesLast) {
  const Execution done =
      execute({status_of("Progressing", 0), patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), create_rollout()});
  EXPECT_THAT(writes(), ElementsAre("POST /apis/gpusharing.dev/v1alpha1/sharingrollouts", "PATCH /api/v1/nodes/n1",
                                    "DELETE /api/v1/namespaces/gpu-operator/pods/p1",
                                    "PATCH /apis/gpusharing.dev/v1alpha1/sharingrollouts/r1/status"));
  EXPECT_EQ(done.succeeded, 4U);
}

TEST_F(ExecutorTest, ADisruptionIsNotSentWhenAnEarlierActionOfItsNodeFailedOtherNodesGoOn) {
  script["PATCH /api/v1/nodes/n1"] = [] { return ScriptedAnswer::status(409, "Conflict", "modified"); };
  const Execution done = execute(
      {patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), patch("n2", {{"a", "1"}}), drop_pod("n2", "p2", "u2")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1", "PATCH /api/v1/nodes/n2",
                                    "DELETE /api/v1/namespaces/gpu-operator/pods/p2"));
  EXPECT_EQ(done.failed, 1U);
  EXPECT_EQ(done.deferred, 1U);
  EXPECT_TRUE(done.requeue_after.has_value());
  EXPECT_FALSE(expectations.current()) << "a conflict means that our view is old: read it again";
}

TEST_F(ExecutorTest, NothingIsDisruptedWhenTheRecordCouldNotBeWritten) {
  script["POST"] = [] { return ScriptedAnswer::status(403, "Forbidden", "sharingrollouts is forbidden"); };
  const Execution done = execute({create_rollout(), patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), ElementsAre("POST /apis/gpusharing.dev/v1alpha1/sharingrollouts", "PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(done.deferred, 1U);
}

TEST_F(ExecutorTest, AtMostSixteenRequestsAreInFlight) {
  script["PATCH"] = [] { return ScriptedAnswer::json(200, node_json("n1", 2), 50ms); };
  std::vector<PlannedAction> actions;
  for (int i = 0; i < 100; ++i) actions.push_back(patch("node" + std::to_string(i), {{"a", "1"}}));
  const Execution done = execute(std::move(actions));
  EXPECT_EQ(done.succeeded, 100U);
  EXPECT_EQ(transport.most_in_flight, 16);
}

TEST_F(ExecutorTest, AnswersToADeletion) {
  struct Case {
    const char* name;
    ScriptedAnswer answer;
    bool fine;  // Nothing left to do: the pod that we meant is gone.
  };
  const Case cases[] = {
      {"deleted", ScriptedAnswer::json(200, R"({"metadata":{}})"), true},
      {"gone already", ScriptedAnswer::status(404, "NotFound", "pods p1 not found"), true},
      {"another uid now", ScriptedAnswer::status(409, "Conflict", "Precondition failed: UID in precondition"), true},
      {"forbidden", ScriptedAnswer::status(403, "Forbidden", "pods is forbidden"), false},
      {"no answer", ScriptedAnswer::broken(), false},
  };
  for (const Case& c : cases) {
    script["DELETE"] = [&] { return c.answer; };
    sim.clock.run_for(10min);  // Past any backoff of the case before.
    const Execution done = execute({drop_pod("n1", "p1", "u1")});
    EXPECT_EQ(done.succeeded == 1, c.fine) << c.name;
    EXPECT_EQ(done.failed == 1, !c.fine) << c.name;
    ASSERT_EQ(writes().size(), 1U) << c.name;
    EXPECT_THAT(transport.seen.back().request.body, HasSubstr(R"("uid":"u1")")) << c.name;
  }
}

TEST_F(ExecutorTest, AResourceVersionConflictOfADeletionIsNotSuccess) {
  script["DELETE"] = [] { return ScriptedAnswer::status(409, "Conflict", "Precondition failed: ResourceVersion"); };
  PlannedAction planned = drop_pod("n1", "p1", "u1");
  std::get<DeletePod>(planned.action).resource_version = "5";
  EXPECT_EQ(execute({planned}).failed, 1U);
}

TEST_F(ExecutorTest, AnObjectThatExistsIsCreated) {
  script["POST"] = [] { return ScriptedAnswer::status(409, "AlreadyExists", "exists"); };
  const Execution done = execute({create_rollout(), drop_pod("n1", "p1", "u1")});
  EXPECT_EQ(done.succeeded, 2U);
}

TEST_F(ExecutorTest, ForbiddenIsToldByFindingAndEventNamingVerbKindAndRemedyAndNotRetriedForAWhile) {
  script["DELETE"] = [] { return ScriptedAnswer::status(403, "Forbidden", "pods p1 is forbidden"); };
  Execution done = execute({drop_pod("n1", "p1", "u1")});
  ASSERT_EQ(done.findings.size(), 1U);
  EXPECT_EQ(done.findings[0].reason, "Forbidden");
  EXPECT_THAT(done.findings[0].message, HasSubstr("grant the verb delete on pods in namespace gpu-operator"));
  ASSERT_EQ(done.events.size(), 1U);
  EXPECT_TRUE(done.events[0].warning);
  EXPECT_EQ(metrics->value("controller_runtime_terminal_reconcile_errors_total", {{"controller", "sharing.rollout"}}),
            1);

  sim.clock.run_for(1min);
  done = execute({drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_EQ(done.findings.size(), 1U) << "still told while it stands";
  EXPECT_EQ(done.requeue_after, 1min);

  done = execute({drop_pod("n1", "p1", "u-other")});
  EXPECT_EQ(writes().size(), 1U) << "another action is another request";
  sim.clock.run_for(3min);
  done = execute({drop_pod("n1", "p1", "u-other")});
  EXPECT_EQ(writes().size(), 1U) << "tried again later";
}

TEST_F(ExecutorTest, AServerErrorBacksOffLongerEachTimeAndSuccessForgets) {
  script["PATCH"] = [] { return ScriptedAnswer::status(500, "InternalError", "etcd"); };
  std::vector<Duration> waits;
  for (int i = 0; i < 4; ++i) {
    const Execution done = execute({patch("n1", {{"a", "1"}})});
    ASSERT_TRUE(done.requeue_after.has_value());
    waits.push_back(*done.requeue_after);
    sim.clock.run_for(*done.requeue_after);
  }
  EXPECT_THAT(waits, ElementsAre(250ms, 500ms, 1s, 2s));
  script.clear();
  execute({patch("n1", {{"a", "1"}})});
  script["PATCH"] = [] { return ScriptedAnswer::status(500, "InternalError", "etcd"); };
  EXPECT_EQ(execute({patch("n1", {{"a", "2"}})}).requeue_after, 250ms);
}

TEST_F(ExecutorTest, AWriteWithoutAnAnswerIsSettledByALiveRead) {
  script["PATCH"] = [] { return ScriptedAnswer::broken(); };
  execute({patch("n1", {{"a", "1"}})});
  EXPECT_FALSE(expectations.current());
  EXPECT_LE(expectations.next_refresh(), sim.clock.monotonic()) << "at once";
  script["GET /api/v1/nodes/n1"] = [] {
    return ScriptedAnswer::json(200, node_json("n1", 7, R"(,"labels":{"a":"1"})"));
  };
  EXPECT_EQ(sim.run(expectations.refresh()), std::nullopt);
  EXPECT_TRUE(expectations.current());
  EXPECT_EQ(world.nodes.find("n1")->meta.labels.get("a"), "1") << "the store learned it";
}

TEST_F(ExecutorTest, TheViewIsNotCurrentUntilTheStoreShowsTheWrite) {
  execute({patch("n1", {{"a", "1"}})});
  EXPECT_FALSE(expectations.current());
  world.nodes.apply(*project_node(node_json("n1", 2)));
  EXPECT_TRUE(expectations.current());
}

TEST_F(ExecutorTest, AStalledWatchIsOvercomeByALiveReadAfterPatience) {
  execute({patch("n1", {{"a", "1"}})});
  script["GET /api/v1/nodes/n1"] = [] { return ScriptedAnswer::json(200, node_json("n1", 3)); };
  EXPECT_EQ(expectations.next_refresh(), sim.clock.monotonic() + 5s);
  sim.clock.run_for(5s);
  sim.run(expectations.refresh());
  EXPECT_TRUE(expectations.current());
}

TEST_F(ExecutorTest, ADeletedPodIsWaitedForInTheStore) {
  const char* pod = R"({"metadata":{"name":"p1","namespace":"gpu-operator","uid":"u1","resourceVersion":"4"}})";
  world.operand_pods.apply(*project_pod(pod));
  execute({drop_pod("n1", "p1", "u1")});
  EXPECT_FALSE(expectations.current());
  world.operand_pods.erase({"gpu-operator", "p1"});
  EXPECT_TRUE(expectations.current());
}

TEST_F(ExecutorTest, ANodeThatChangedSinceThePlanIsNotDisrupted) {
  script["GET /api/v1/nodes/n1"] = [] {
    return ScriptedAnswer::json(200, node_json("n1", 5, R"(,"annotations":{"gpusharing.dev/hold":"true"})"));
  };
  const Execution done = execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_TRUE(done.replan);
  EXPECT_EQ(world.nodes.find("n1")->meta.annotations.get("gpusharing.dev/hold"), "true");
}

TEST_F(ExecutorTest, AHeartbeatSinceThePlanChangesNothing) {
  script["GET /api/v1/nodes/n1"] = [] { return ScriptedAnswer::json(200, node_json("n1", 5)); };
  execute({drop_pod("n1", "p1", "u1")});
  EXPECT_EQ(writes().size(), 1U);
}

TEST_F(ExecutorTest, ANodeDeletedMeanwhileIsNotDisruptedAndTheOthersGoOn) {
  script["GET /api/v1/nodes/n1"] = [] { return ScriptedAnswer::status(404, "NotFound", "nodes n1 not found"); };
  execute({drop_pod("n1", "p1", "u1"), drop_pod("n2", "p2", "u2")});
  EXPECT_THAT(writes(), ElementsAre("DELETE /api/v1/namespaces/gpu-operator/pods/p2"));
  EXPECT_EQ(world.nodes.find("n1"), nullptr);
}

TEST_F(ExecutorTest, WithoutTheLeaseNothingIsSent) {
  leading = false;
  const Execution done = execute({patch("n1", {{"a", "1"}}), create_rollout()});
  EXPECT_THAT(transport.seen, IsEmpty());
  EXPECT_EQ(done.deferred, 2U);
}

TEST_F(ExecutorTest, TheLeaseLostBetweenTwoActionsStopsBeforeTheSecond) {
  script["PATCH"] = [this] {
    leading = false;
    return ScriptedAnswer::json(200, node_json("n1", 2));
  };
  const Execution done = execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(done.succeeded, 1U);
  EXPECT_EQ(done.deferred, 1U);
}

TEST_F(ExecutorTest, AWriteEndsBeforeAnotherLeaderMayAct) {
  script["PATCH"] = [] { return ScriptedAnswer::json(200, node_json("n1", 2), 1h); };
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
  EXPECT_THAT(transport.seen, IsEmpty());
}

TEST_F(ExecutorTest, AnEvictionThatABudgetRefusesIsAFindingAndAskedAgainLater) {
  script["eviction"] = [] {
    return ScriptedAnswer::status(429, "TooManyRequests",
                                  "Cannot evict pod as it would violate the pod's disruption budget.", "10");
  };
  PlannedAction evict{"sharing.rollout", EvictPod{{"default", "train"}, "u9"}, "Drain", "", true, "n1"};
  const Execution done = execute({evict});
  ASSERT_EQ(done.findings.size(), 1U);
  EXPECT_EQ(done.findings[0].reason, "PDBRefuses");
  EXPECT_GE(done.requeue_after.value_or(0s), 10s);
  EXPECT_THAT(done.evictions.at("n1").at("u9"), testing::HasSubstr("disruption budget")) << "for the node's state";
}

TEST_F(ExecutorTest, AnEvictionThatAnOverloadedServerRefusesIsNoBudgets) {
  script["eviction"] = [] { return ScriptedAnswer::status(429, "TooManyRequests", "too many requests", "1"); };
  PlannedAction evict{"sharing.rollout", EvictPod{{"default", "train"}, "u9"}, "Drain", "", true, "n1"};
  const Execution done = execute({evict});
  EXPECT_THAT(done.findings, IsEmpty());
  EXPECT_TRUE(done.evictions.empty());
  EXPECT_EQ(done.failed, 1U);
}

TEST_F(ExecutorTest, SeveralBudgetsOfOnePodRefuseItToo) {
  script["eviction"] = [] {
    return ScriptedAnswer::status(500, "InternalError",
                                  "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
                                  "not support.",
                                  "");
  };
  PlannedAction evict{"sharing.rollout", EvictPod{{"default", "train"}, "u9"}, "Drain", "", true, "n1"};
  const Execution done = execute({evict});
  ASSERT_EQ(done.findings.size(), 1U);
  EXPECT_EQ(done.findings[0].reason, "PDBRefuses");
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
  EXPECT_EQ(Json::parse(transport.seen.back().request.body),
            Json::parse(R"({"status":{"phase":"Progressing","ready":1,"reason":null}})"));
}

TEST_F(ExecutorTest, AnApplyKeepsOurOtherKeysAndNamesNoneOfOthers) {
  world.configmaps.apply(*project_configmap(R"({"metadata":{"namespace":"gpu-operator","name":"mps-config",
    "resourceVersion":"1","managedFields":[{"manager":"gpu-sharing-operator","operation":"Apply",
    "fieldsV1":{"f:data":{"f:gso-a":{},"f:gso-b":{}}}}]},
    "data":{"any":"theirs","gso-a":"ours","gso-b":"old","gso-theirs":"not ours, though it looks like it"}})"));
  WriteConfigMap theirs{{"gpu-operator", "mps-config"}, {{"gso-c", "new"}}, {"gso-b"}};
  execute({{"node.profile", theirs, "Inline", "", false, ""}});
  EXPECT_THAT(transport.seen.back().request.path, HasSubstr("fieldManager=gpu-sharing-operator"));
  EXPECT_THAT(transport.seen.back().request.path, HasSubstr("force=true"));
  EXPECT_EQ(Json::parse(transport.seen.back().request.body)["data"], Json::parse(R"({"gso-a":"ours","gso-c":"new"})"));

  WriteConfigMap ours{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"baseline.json", "{}"}}, {}};
  execute({{"node.profile", ours, "Baseline", "", false, ""}});
  EXPECT_THAT(transport.seen.back().request.path, HasSubstr("force=true"));
}

TEST_F(ExecutorTest, ADryRunSendsNothing) {
  Executor::Parts parts;
  parts.client = &client;
  parts.clock = &sim.clock;
  parts.world = &world;
  parts.expectations = &expectations;
  parts.log = Logger::silent();
  parts.metrics = metrics;
  ExecutorOptions options;
  options.dry_run = true;
  executor = std::make_unique<Executor>(parts, options);
  execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"), create_rollout()});
  EXPECT_THAT(transport.seen, IsEmpty());
}

}  // namespace
}  // namespace gso
