// What the executor makes of refusals and lost answers, how long it waits, and what it forgets again.
#include <gmock/gmock.h>

#include <chrono>

#include "reconcilers/reasons/names.h"
#include "tests/controller/writes/executor_fixture.h"

namespace gso::executor_failures_test {
namespace {

using namespace executor_test;
using namespace std::chrono_literals;
using k8s::test::Answer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// `hold`, a cordon or a label has arrived a moment ago.
TEST_F(ExecutorTest, ADisruptionIsNotSentWhenAnEarlierActionOfItsNodeFailedOtherNodesGoOn) {
  script["PATCH /api/v1/nodes/n1"] = [] { return Answer::status_of(409, "Conflict", "modified"); };
  const Execution done =
      execute({begin_change("n1"), drop_pod("n1", "p1", "u1"), patch("n2", {{"a", "1"}}), drop_pod("n2", "p2", "u2")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1", "PATCH /api/v1/nodes/n2",
                                    "DELETE /api/v1/namespaces/gpu-operator/pods/p2"));
  EXPECT_EQ(done.failed, 1U);
  EXPECT_EQ(done.deferred, 1U);
  EXPECT_TRUE(done.requeue_after.has_value());
  EXPECT_FALSE(expectations.current()) << "a conflict means that our view is old: read it again";
  EXPECT_TRUE(executor->nodes_being_written().contains("n1")) << "until it has been read";
}

TEST_F(ExecutorTest, NothingIsDisruptedWhenTheRecordCouldNotBeWrittenAndWhatIsPutOffIsCounted) {
  script["POST"] = [] { return Answer::status_of(403, "Forbidden", "sharingrollouts is forbidden"); };
  const Execution done = execute({create_rollout(), patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1"),
                                  drop_pod("n1", "p2", "u2"), drop_pod("n1", "p3", "u3")});
  EXPECT_THAT(writes(), ElementsAre("POST /apis/gpusharing.dev/v1alpha1/sharingrollouts", "PATCH /api/v1/nodes/n1"));
  EXPECT_EQ(done.deferred, 3U);
  EXPECT_EQ(metrics->value("gpusharing_writes_deferred_total", {{"cause", "record"}}), 3);
}

TEST_F(ExecutorTest, AnswersToADeletion) {
  struct Case {
    const char* name;
    Answer answer;
    bool fine;                                          // Nothing left to do: the pod that we meant is gone.
    std::optional<std::string> version = std::nullopt;  // Of the pod, a precondition.
  };
  const Case cases[] = {
      {"deleted", Answer::json(200, R"({"metadata":{}})"), true},
      {"gone already", Answer::status_of(404, "NotFound", "pods p1 not found"), true},
      {"another uid now", Answer::status_of(409, "Conflict", "Precondition failed: UID in precondition"), true},
      {"another version", Answer::status_of(409, "Conflict", "Precondition failed: ResourceVersion"), false, "5"},
      {"forbidden", Answer::status_of(403, "Forbidden", "pods is forbidden"), false},
      {"no answer", Answer::broken(), false},
  };
  for (const Case& c : cases) {
    script["DELETE"] = [&] { return c.answer; };
    sim.clock.run_for(10min);  // Past any backoff of the case before.
    PlannedAction planned = drop_pod("n1", "p1", "u1");
    std::get<DeletePod>(planned.action).resource_version = c.version;
    const Execution done = execute({planned});
    EXPECT_EQ(done.succeeded == 1, c.fine) << c.name;
    EXPECT_EQ(done.failed == 1, !c.fine) << c.name;
    ASSERT_EQ(writes().size(), 1U) << c.name;
    EXPECT_THAT(transport.requests.back().body, HasSubstr(R"("uid":"u1")")) << c.name;
  }
}

// Whatever a plan has: the planner and the executor ask the same question.
TEST_F(ExecutorTest, NoPodOfAProtectedNamespaceIsEvicted) {
  DaemonSet plugin;
  plugin.meta.ns = k8s::Interned("nvidia");
  plugin.meta.name = "device-plugin";
  plugin.containers.push_back({});
  plugin.containers.back().name = "nvidia-device-plugin";
  world.daemonsets.apply(std::move(plugin));
  for (const char* ns : {"kube-system", "gpu-sharing-operator", "nvidia"}) {
    const Execution done = execute({evict(ns, "p", "u1"), drop_pod("n1", "p1", "u2")});
    EXPECT_THAT(writes(), IsEmpty()) << ns;
    EXPECT_EQ(done.failed, 1U) << ns;
    ASSERT_EQ(done.findings.size(), 1U) << ns;
    EXPECT_THAT(done.findings[0].why.message, HasSubstr(std::string("pod ") + ns + "/p is not evicted: its namespace"))
        << ns;
  }
  execute({evict("team", "p", "u1")});
  EXPECT_THAT(writes(), ElementsAre("POST /api/v1/namespaces/team/pods/p/eviction"));
}

TEST_F(ExecutorTest, AnObjectThatExistsIsCreated) {
  script["POST"] = [] { return Answer::status_of(409, "AlreadyExists", "exists"); };
  EXPECT_EQ(execute({create_rollout(), drop_pod("n1", "p1", "u1")}).succeeded, 2U);
}

TEST_F(ExecutorTest, ForbiddenIsReportedByFindingAndEventNamingVerbKindAndRemedyAndNotRetriedForAWhile) {
  script["DELETE"] = [] { return Answer::status_of(403, "Forbidden", "pods p1 is forbidden"); };
  Execution done = execute({drop_pod("n1", "p1", "u1")});
  ASSERT_EQ(done.findings.size(), 1U);
  EXPECT_EQ(done.findings[0].why.code, "Forbidden");
  EXPECT_THAT(done.findings[0].why.message, HasSubstr("grant the verb delete on pods in namespace gpu-operator"));
  ASSERT_EQ(done.events.size(), 1U);
  EXPECT_TRUE(done.events[0].warning);
  EXPECT_EQ(metrics->value("controller_runtime_terminal_reconcile_errors_total", {{"controller", "sharing.rollout"}}),
            1);

  sim.clock.run_for(1min);
  done = execute({drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_EQ(done.findings.size(), 1U) << "still reported while it stands";
  EXPECT_EQ(done.requeue_after, 1min);
  const auto refused = executor->refused_writes();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused.at("n1"), HasSubstr("grant the verb delete on pods in namespace gpu-operator"));

  done = execute({drop_pod("n1", "p1", "u-other")});
  EXPECT_EQ(writes().size(), 1U) << "another action is another request";
  sim.clock.run_for(3min);
  done = execute({drop_pod("n1", "p1", "u-other")});
  EXPECT_EQ(writes().size(), 1U) << "tried again later";
}

TEST_F(ExecutorTest, ForbiddenNamesTheChartsValueThatGrantsTheVerb) {
  PlannedAction restarted = drop_pod("n1", "p1", "u1");
  restarted.action = RestartDaemonSet{{"gpu-operator", "plugin"}, "7", "v1-abc"};
  PlannedAction rejected = drop_pod("n1", "p2", "u2");
  rejected.why.code = kRejectedPod;
  const std::pair<PlannedAction, const char*> cases[] = {
      {evict("team", "p1", "u1"), "create on pods/eviction in namespace team (chart value eviction.enabled)"},
      {restarted, "patch on daemonsets in namespace gpu-operator (chart value daemonSetRestart.enabled)"},
      {rejected, "delete on pods in namespace gpu-operator (chart value rejectedPods.namespaces)"},
      {drop_pod("n1", "p1", "u1"), "delete on pods in namespace gpu-operator (chart value operandNamespaces)"},
  };
  for (const auto& method : {"POST", "PATCH", "DELETE"})
    script[method] = [] { return Answer::status_of(403, "Forbidden", "no"); };
  for (const auto& [action, wanted] : cases) {
    const Execution done = execute({action});
    ASSERT_EQ(done.findings.size(), 1U) << wanted;
    EXPECT_THAT(done.findings[0].why.message, HasSubstr(wanted));
  }
}

TEST_F(ExecutorTest, AServerErrorBacksOffLongerEachTimeAndSuccessForgets) {
  script["PATCH"] = [] { return Answer::status_of(500, "InternalError", "etcd"); };
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
  script["PATCH"] = [] { return Answer::status_of(500, "InternalError", "etcd"); };
  EXPECT_EQ(execute({patch("n1", {{"a", "2"}})}).requeue_after, 250ms);
}

TEST_F(ExecutorTest, APodThatIsEvictedHasAnEventThatSaysWhy) {
  const Execution done = execute({evict("default", "train", "u9")});
  EXPECT_EQ(sent_body()["deleteOptions"]["preconditions"]["uid"], "u9")
      << "of a name that came back another pod is meant";
  ASSERT_EQ(done.events.size(), 1U);
  const ObjectRef pod{"v1", "Pod", "default", "train", "u9"};
  EXPECT_EQ(done.events[0], (RecordEvent{pod, false, {"Evicted", "evicted from node n1"}, "Evict"}));
}

// A budget is recognised by its cause, whatever the words. The texts are for the node's state, which names the pod.
TEST_F(ExecutorTest, AnswersToAnEviction) {
  struct Case {
    const char* name;
    Answer answer;
    std::string text;  // Empty: nothing is remembered for the planner.
    bool of_budget;
    Duration asked_again;
  };
  options.eviction_retry = 20s;
  make_executor();
  const Case cases[] = {
      {"a budget, in its own time", Answer::budget("40"), "why", true, 40s},
      {"a budget that does not say when", Answer::budget(), "why", true, 20s},
      {"a budget in French", Answer::status_of(429, "TooManyRequests", "Le pod reste.", "40", "DisruptionBudget"),
       "why", true, 40s},
      {"several budgets",
       Answer::status_of(500, "InternalError",
                         "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                         "support.",
                         ""),
       "several PodDisruptionBudgets select it, and the API server evicts no such pod", true, 20s},
      {"an overloaded server",
       Answer::status_of(429, "TooManyRequests", "too many requests; no disruption budget was read", "1"), "", false,
       1s},
  };
  for (const Case& c : cases) {
    script["eviction"] = [&] { return c.answer; };
    const Execution done = execute({evict("default", "train", "u9")});
    EXPECT_THAT(done.events, IsEmpty()) << c.name;
    ASSERT_EQ(done.findings.size(), c.of_budget ? 1U : 0U) << c.name;
    EXPECT_EQ(done.evictions.empty(), !c.of_budget) << c.name;
    EXPECT_TRUE(c.of_budget || done.failed == 1) << c.name;
    if (c.of_budget) {
      EXPECT_EQ(done.findings[0].why.code, "PDBRefuses") << c.name;
      EXPECT_EQ(done.findings[0].why.message, "a PodDisruptionBudget prevents its eviction: " + c.text) << c.name;
      EXPECT_EQ(done.evictions.at("n1").at("u9").text, c.text) << c.name;
    }
    EXPECT_FALSE(executor->answer_lost_at().has_value()) << c.name << ": it is answered, and a stop releases the Lease";
    EXPECT_TRUE(executor->nodes_being_written().empty()) << c.name;
    EXPECT_EQ(done.requeue_after, c.asked_again) << c.name;
    sim.clock.run_for(c.asked_again - 1s);
    execute({evict("default", "train", "u9")});
    EXPECT_THAT(writes(), IsEmpty()) << c.name;
    sim.clock.run_for(1min);
  }
}

TEST_F(ExecutorTest, AnEvictionThatTheAccountIsNotAllowedToRequestIsRememberedWithTheValueToSet) {
  script["eviction"] = [] { return Answer::status_of(403, "Forbidden", "cannot create pods/eviction"); };
  const Execution done = execute({evict("default", "train", "u9")});
  EXPECT_TRUE(done.evictions.at("n1").at("u9").forbidden);
  EXPECT_THAT(done.evictions.at("n1").at("u9").text, HasSubstr("eviction.enabled")) << "for the node's state";
}

TEST_F(ExecutorTest, ABudgetThatKeepsOnePodKeepsNoOtherOfItsNode) {
  script["eviction"] = [] { return Answer::budget("10"); };
  const Execution done =
      execute({evict("default", "aaa", "u8"), evict("default", "bbb", "u9"), patch("n1", {{"a", "1"}})});
  EXPECT_EQ(done.evictions.at("n1").size(), 2U) << "both were asked";
  EXPECT_EQ(writes().size(), 2U) << "what comes after the evictions waits";
}

TEST_F(ExecutorTest, AWriteWhoseAnswerIsLostIsUnknownAndOneThatWasNeverSentIsNot) {
  end_by = sim.clock.monotonic();  // The Lease can pass to another replica now.
  EXPECT_EQ(execute({patch("n1", {{"a", "1"}})}).failed, 1U);
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_FALSE(executor->answer_lost_at().has_value());
  EXPECT_TRUE(executor->nodes_being_written().empty());
  end_by = MonoTime::never();
  script["PATCH"] = [] { return Answer::broken(); };
  EXPECT_EQ(execute({patch("n2", {{"a", "1"}})}).failed, 1U);
  EXPECT_EQ(executor->answer_lost_at(), sim.clock.monotonic());
  EXPECT_TRUE(executor->nodes_being_written().contains("n2"));
}

// A fleet that runs for months fails now and then for pods whose names never come back.
TEST_F(ExecutorTest, WhatIsOverAndNotPlannedAnyMoreIsForgotten) {
  struct Case {
    const char* name;
    std::function<PlannedAction(const std::string& n)> action;
    Answer answer;
    Duration over;  // When nothing of it may be left, once it is no longer planned.
  };
  const auto drop = [](const std::string& n) { return drop_pod("n" + n, "p" + n, "u" + n); };
  const auto label = [](const std::string& n) { return patch("n" + n, {{"a", n}}); };
  const auto status = [](const std::string& n) {
    PlannedAction planned = status_of("Progressing", 1);
    std::get<PatchStatus>(planned.action).object.name = "r" + n;
    return planned;
  };
  const Answer fine = Answer::json(200, R"({"metadata":{"name":"x","resourceVersion":"9"}})");
  const Case cases[] = {
      {"a deletion that succeeded", drop, fine, 0s},
      {"a pod that was gone already", drop, Answer::status_of(404, "NotFound", "not found"), 0s},
      {"a deletion that broke", drop, Answer::broken(), 1s},
      {"a deletion that was refused", drop, Answer::status_of(403, "Forbidden", "no"), 0s},
      {"a patch that the server failed", label, Answer::status_of(500, "InternalError", "etcd"), 1s},
      {"a patch of a node that is gone", label, Answer::status_of(404, "NotFound", "not found"), 1s},
      {"a status that was written", status, fine, 1s},
  };
  for (const Case& c : cases) {
    script["PATCH"] = script["DELETE"] = [&] { return c.answer; };
    std::vector<PlannedAction> actions;
    for (int i = 1; i <= 3; ++i) actions.push_back(c.action(std::to_string(i)));
    execute(actions);
    settle();
    sim.clock.run_for(c.over);
    execute({});
    EXPECT_EQ(executor->remembered(), 0U) << c.name;
  }
}

TEST_F(ExecutorTest, AFailureRefusedLaterAndALiveReadThatFailedAreForgottenToo) {
  script["PATCH"] = [] { return Answer::status_of(500, "InternalError", "etcd"); };
  execute({patch("n1", {{"a", "1"}})});
  sim.clock.run_for(1s);
  script["PATCH"] = [] { return Answer::status_of(403, "Forbidden", "no"); };
  execute({patch("n1", {{"a", "1"}})});
  execute({});
  EXPECT_EQ(executor->remembered(), 0U) << "it backed off first, and was refused then";

  settle();
  script["GET"] = [] { return Answer::status_of(403, "Forbidden", "no"); };
  EXPECT_EQ(execute({drop_pod("n1", "p1", "u1")}).requeue_after, 250ms);
  sim.clock.run_for(1s);
  EXPECT_EQ(execute({drop_pod("n1", "p1", "u1")}).requeue_after, 500ms) << "it is still planned";
  sim.clock.run_for(1s);
  execute({});
  EXPECT_EQ(executor->remembered(), 0U);
}

TEST_F(ExecutorTest, AWriteThatTheServerRefusesForItsLoadGivesItsPlaceToTheNextAndItsWaitDoesNotGrow) {
  script["DELETE /api/v1/namespaces/gpu-operator/pods/p1"] = [] {
    return Answer::status_of(429, "TooManyRequests", "slow down", "3");
  };
  const Execution done = execute({drop_pod("n1", "p1", "u1"), drop_pod("n2", "p2", "u2")});
  EXPECT_EQ(writes().size(), 2U) << "the refused one is not sent again by itself";
  EXPECT_EQ(done.succeeded, 1U);
  EXPECT_EQ(done.failed, 1U);
  EXPECT_LE(done.requeue_after, 3s);
  for (int refusals = 2; refusals <= 8; ++refusals) {
    sim.clock.run_for(10s);  // As long as the lane pauses at most.
    EXPECT_EQ(execute({drop_pod("n1", "p1", "u1")}).requeue_after, 3s) << refusals;
    EXPECT_EQ(execute({drop_pod("n1", "p1", "u1")}).deferred, 1U) << "not before";
  }
  script.clear();
  sim.clock.run_for(10s);
  EXPECT_EQ(execute({drop_pod("n1", "p1", "u1")}).succeeded, 1U);
}

}  // namespace
}  // namespace gso::executor_failures_test
