// Records that are answered slowly, refused or lost: which disruptions wait for them, and for how long a plan does.
#include <gmock/gmock.h>

#include <chrono>

#include "controller/writes/write_queue.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/node_change.h"
#include "tests/controller/writes/executor_fixture.h"

namespace gso::slow_records_test {
namespace {

using namespace executor_test;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using k8s::WriteKind;
using k8s::test::Answer;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string kRollouts = "/apis/gpusharing.dev/v1alpha1/sharingrollouts";
const std::string kState = "/api/v1/namespaces/gpu-sharing-operator/configmaps/gpu-sharing-operator-state";

// The rollout r-<policy> of that policy.
PlannedAction rollout_of(const std::string& policy) {
  CreateObject action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r-" + policy, ""};
  action.json = Json{{"metadata", {{"name", "r-" + policy}}}, {"spec", {{"policy", policy}}}}.dump();
  return {"sharing.rollout", action, {"RolloutStarted", ""}, false, ""};
}

PlannedAction record_write(const std::string& text) {
  const WriteConfigMap action{{"gpu-sharing-operator", "gpu-sharing-operator-state"}, {{"record.json", text}}, {}};
  return {"sharing.rollout", action, {"Canary", ""}, false, ""};
}

std::string change_of_policy(const std::string& policy) {
  NodeChange change;
  change.policy = policy;
  change.config_map = "gpu-operator/mps-config";
  change.key = "any";
  change.to = "v1-2";
  return print_change(change);
}

// The node enters a change of that policy.
PlannedAction start(const std::string& node, const std::string& policy) {
  PlannedAction begins = begin_change(node);
  std::get<PatchNode>(begins.action).set_annotations[std::string(kChangeAnnotation)] = change_of_policy(policy);
  return begins;
}

class SlowRecords : public SlowServer {
 protected:
  ~SlowRecords() override { EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 1min))); }
  // The store shows the rollout that was created with version 9.
  void show_rollout(const std::string& policy) {
    world.rollouts.apply(*project_sharing_rollout(R"({"metadata":{"name":"r-)" + policy +
                                                  R"(","resourceVersion":"9"},"spec":{"policy":")" + policy + "\"}}"));
  }
  // A node in a change of that policy.
  void put_into_change(const std::string& name, const std::string& policy) {
    const Json annotations{{kChangeAnnotation, change_of_policy(policy)}};
    const std::string node = node_json(name, 1, R"(,"annotations":)" + annotations.dump());
    world.nodes.apply(*project_node(node));
    script["GET /api/v1/nodes/" + name] = [node] { return Answer::json(200, node); };
  }
};

TEST_F(SlowRecords, WithinASecondThePlanGoesOnWithoutWhatRestsOnTheRecord) {
  answer_after("POST " + kRollouts, 10s);
  EXPECT_EQ(took({rollout_of("a"), start("n1", "a"), start("n2", "b"), patch("n3", {{"x", "1"}})}), 1s);
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n2", "PATCH /api/v1/nodes/n3"));
  EXPECT_EQ(done.deferred, 1U);
  EXPECT_THAT(done.without_record, ElementsAre("n1"));
  EXPECT_TRUE(executor->is_busy());
  EXPECT_FALSE(executor->nodes_being_written().contains("n1")) << "a pause can still keep it";

  put_into_change("n2", "b");  // Later plans wait for it no more and do not write it twice.
  EXPECT_EQ(took({rollout_of("a"), start("n1", "a"), drop_pod("n2", "p2", "u2")}), 0s);
  EXPECT_THAT(writes(), ElementsAre("DELETE /api/v1/namespaces/gpu-operator/pods/p2"));
  EXPECT_THAT(done.without_record, ElementsAre("n1"));
}

TEST_F(SlowRecords, ARecordThatIsAnsweredWithinASecondIsWaitedFor) {
  answer_after("POST " + kRollouts, 900ms);
  EXPECT_EQ(took({rollout_of("a"), start("n1", "a")}), 900ms);
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n1"));
  EXPECT_THAT(done.without_record, IsEmpty());
}

// A pause has arrived: the plan after the answer leaves n1 out, and nobody else sends what an earlier plan held.
TEST_F(SlowRecords, WhatRestedOnItIsSentByAPlanThatWasMadeAfterTheAnswerAlone) {
  answer_after("POST " + kRollouts, 10s);
  execute({rollout_of("a"), start("n1", "a")});
  execute({rollout_of("a"), start("n1", "a")});
  transport.requests.clear();
  sim.clock.run_for(10s);
  EXPECT_EQ(ended_late, 1) << "it asks for the next plan";
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_FALSE(expectations.fleet_is_current()) << "no plan before the store shows it";
  show_rollout("a");
  EXPECT_TRUE(expectations.fleet_is_current());

  EXPECT_EQ(execute({start("n2", "b")}).succeeded, 2U) << "the record's answer, and n2";
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n2"));
  execute({start("n1", "a")});
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n1"));
}

// The answer comes while a later plan waits for another record: that plan was made without it.
TEST_F(SlowRecords, AnAnswerThatComesWhileALaterPlanIsExecutedFreesNothingOfThatPlan) {
  answer_after("POST " + kRollouts, 1500ms);
  execute({rollout_of("a"), start("n1", "a")});
  answer_after("POST " + kRollouts, 900ms);
  EXPECT_EQ(took({rollout_of("c"), start("n1", "a"), start("n3", "c")}), 900ms);
  EXPECT_EQ(ended_late, 1);
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n3"));
  EXPECT_THAT(done.without_record, ElementsAre("n1"));

  const Execution again = execute({rollout_of("a"), start("n1", "a")});
  EXPECT_EQ(again.deferred, 0U) << "planned anew";
}

// A step that is not disruptive goes first and takes long. The record is answered by then, and the plan is old.
TEST_F(SlowRecords, AStepThatFollowsLaterIsNotFreedByTheAnswerEither) {
  answer_after("POST " + kRollouts, 2s);
  answer_after("PATCH /api/v1/nodes/n1", 5s);
  put_into_change("n1", "a");
  execute({rollout_of("a"), patch("n1", {{"x", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 10s)));
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n1"));
}

// Stops and canaries of all policies are in it. What ends a change, labels and statuses rest on nothing.
TEST_F(SlowRecords, WithoutTheRecordOfTheFleetNothingIsDisruptedAndTheRestGoesOn) {
  answer_after("PATCH " + kState, 10s);
  put_into_change("n2", "b");
  EXPECT_EQ(took({record_write("1"), start("n1", "a"), drop_pod("n2", "p2", "u2"), patch("n3", {{"x", "1"}}),
                  status_of("Progressing", 1)}),
            1s);
  EXPECT_THAT(writes(), ElementsAre("PATCH " + kState, "PATCH /api/v1/nodes/n3", "PATCH " + kRollouts + "/r1/status"));
  EXPECT_THAT(done.without_record, UnorderedElementsAre("n1", "n2"));

  EXPECT_EQ(took({record_write("2"), start("n1", "a")}), 0s);
  EXPECT_THAT(writes(), IsEmpty()) << "one write of an object at a time";
  // A plan that has nothing to record any more, because it does not see what is under way.
  EXPECT_EQ(took({start("n1", "a")}), 0s);
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_THAT(done.without_record, ElementsAre("n1"));
}

TEST_F(SlowRecords, WhatBelongsToNoPolicyRestsOnEachRecordAndTheStatusOfAnObjectOnItsCreation) {
  answer_after("POST " + kRollouts, 10s);
  PlannedAction restart = drop_pod("", "p1", "u1");
  restart.action = RestartDaemonSet{{"gpu-operator", "plugin"}, "7", "v1-abc"};
  PlannedAction status = status_of("Progressing", 1);
  std::get<PatchStatus>(status.action).object.name = "r-a";
  execute({rollout_of("a"), restart, drop_pod("n2", "p2", "u2"), status, status_of("Progressing", 1)});
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH " + kRollouts + "/r1/status"));
}

TEST_F(SlowRecords, ARecordThatIsRefusedHoldsItsOwnPolicyAlone) {
  script["POST " + kRollouts] = [] { return Answer::status_of(403, "Forbidden", "no"); };
  const std::vector<PlannedAction> plan{rollout_of("a"), start("n1", "a"), start("n2", "b")};
  EXPECT_THAT(execute(plan).without_record, ElementsAre("n1"));
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n2"));
  sim.clock.run_for(1s);
  EXPECT_THAT(execute({rollout_of("a"), start("n1", "a"), start("n3", "b")}).without_record, ElementsAre("n1"));
  EXPECT_THAT(writes(), ElementsAre("PATCH /api/v1/nodes/n3")) << "the record is not tried again yet";
}

TEST_F(SlowRecords, ARecordWhoseAnswerIsLostIsWrittenAgainBeforeWhatRestsOnIt) {
  answer_after("POST " + kRollouts, 1h);
  execute({rollout_of("a"), start("n1", "a")});
  sim.clock.run_for(12s);
  EXPECT_EQ(ended_late, 1);
  EXPECT_FALSE(expectations.fleet_is_current()) << "it can have been written: read it first";
  script["POST " + kRollouts] = [] { return Answer::status_of(409, "AlreadyExists", "exists"); };
  settle();
  sim.clock.run_for(1s);  // Past its backoff.
  execute({rollout_of("a"), start("n1", "a")});
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n1"));
}

TEST_F(SlowRecords, RecordsForWhichNoPlaceIsFreeArePlannedAgainBeforeWhatRestsOnThem) {
  places = 1;
  answer_after("POST " + kRollouts, 10s);
  execute({rollout_of("a"), rollout_of("b"), start("n1", "a"), start("n2", "b"), start("n3", "c")});
  EXPECT_THAT(writes(), ElementsAre("POST " + kRollouts, "PATCH /api/v1/nodes/n3"));
  EXPECT_FALSE(sim.run(executor->finish(sim.clock.monotonic() + 1s)));
  executor->cancel();
  EXPECT_TRUE(sim.run(executor->finish(sim.clock.monotonic() + 1s)));
  EXPECT_FALSE(executor->is_busy());
}

TEST(UnwrittenRecords, HoldWhatRestsOnThem) {
  CreateObject policy;
  policy.object = {"gpusharing.dev/v1alpha1", "SharingPolicy", "", "a", ""};
  PlannedAction unreadable = rollout_of("a");
  std::get<CreateObject>(unreadable.action).json = "{}";
  const PlannedAction profile_key{"", WriteConfigMap{{"ns", "profiles"}, {{"gso-a", "x"}}, {}}, {"", ""}, false, ""};
  struct Case {
    const char* name;
    PlannedAction record;
    bool of_a, of_b, of_none;  // Which changes it holds: of policy a, of policy b, of none that can be read.
  };
  const Case cases[] = {
      {"a rollout of a", rollout_of("a"), true, false, true},
      {"a rollout of nobody knows whom", unreadable, true, true, true},
      {"policy a", {"", policy, {}, false, ""}, true, false, true},
      {"finalizers of policy a", {"", PatchFinalizers{policy.object, {}, "1"}, {}, false, ""}, true, false, true},
      {"the record of the fleet", record_write("1"), true, true, true},
      {"a key of a profile", profile_key, true, true, true},
      {"a key of somebody else", {"", PatchConfigMap{{"ns", "kai"}, {}, {}}, {"", ""}, false, ""}, false, false, false},
      {"a status", status_of("Progressing", 1), false, false, false},
  };
  for (const Case& c : cases) {
    UnwrittenRecords unwritten;
    const Chain of_a{"node/n1", "n1", {start("n1", "a"), drop_pod("n1", "p1", "u1")}};
    const Chain of_b{"node/n2", "n2", {start("n2", "b")}};
    const Chain of_none{"node/n3", "n3", {drop_pod("n3", "p3", "u3")}};
    const Chain harmless{"node/n1", "n1", {patch("n1", {{"x", "1"}})}};
    EXPECT_FALSE(unwritten.hold(of_a, nullptr) || unwritten.hold(of_none, nullptr)) << c.name;
    unwritten.add(c.record);
    EXPECT_EQ(unwritten.hold(of_a, nullptr), c.of_a) << c.name;
    EXPECT_EQ(unwritten.hold(of_b, nullptr), c.of_b) << c.name;
    EXPECT_EQ(unwritten.hold(of_none, nullptr), c.of_none) << c.name;
    EXPECT_FALSE(unwritten.hold(harmless, nullptr)) << c.name;
  }
}

boost::asio::awaitable<void> note_after_a_minute(k8s::Clock* clock, std::vector<std::string>* ended, Chain chain) {
  co_await clock->sleep_for(1min);
  ended->push_back(chain.subject);
}

// Places by kind of writes, and what becomes of chains that find none.
class WriteQueueTest : public testing::Test {
 protected:
  void add(WriteKind kind, const std::string& subject) {
    queue.add(sim.io.get_executor(), kind, {subject, "", {}},
              [this](Chain chain) { return note_after_a_minute(&sim.clock, &ended, std::move(chain)); });
  }
  Sim sim;
  std::vector<std::string> ended;
  WriteQueue queue{&sim.clock, [](WriteKind kind) { return kind == WriteKind::object ? 2U : 1U; }};
};

TEST_F(WriteQueueTest, ChainsOfOneKindWaitForTheirPlacesAndForNoOtherKind) {
  for (const char* node : {"node/1", "node/2", "node/3"}) add(WriteKind::object, node);
  add(WriteKind::status, "status/1");
  EXPECT_EQ(queue.running(WriteKind::object).size(), 2U);
  EXPECT_TRUE(queue.some_wait(WriteKind::object));
  EXPECT_TRUE(queue.has(WriteKind::object, "node/3"));
  EXPECT_FALSE(queue.has(WriteKind::record, "node/3"));
  EXPECT_EQ(queue.running(WriteKind::status).size(), 1U);
  sim.clock.run_for(61s);
  EXPECT_THAT(ended, ElementsAre("node/1", "node/2", "status/1"));
  sim.clock.run_for(1min);
  EXPECT_THAT(ended, ElementsAre("node/1", "node/2", "status/1", "node/3"));
  EXPECT_FALSE(queue.is_busy());
}

TEST_F(WriteQueueTest, WhatHasNotBegunIsTakenBackInOrderAndACancelledQueueIsEmpty) {
  for (const char* record : {"a", "b", "c"}) add(WriteKind::record, record);
  std::vector<std::string> back;
  for (const Chain& chain : queue.take_back(WriteKind::record)) back.push_back(chain.subject);
  EXPECT_THAT(back, ElementsAre("b", "c"));
  EXPECT_THAT(queue.take_back(WriteKind::record), IsEmpty());
  sim.clock.run_for(2min);
  EXPECT_THAT(ended, ElementsAre("a"));
  for (const char* record : {"d", "e"}) add(WriteKind::record, record);
  sim.clock.run_for(1s);
  queue.cancel();
  sim.clock.run_for(2min);
  EXPECT_THAT(ended, ElementsAre("a"));
  EXPECT_FALSE(queue.is_busy());
  EXPECT_EQ(queue.failure(), "");
}

}  // namespace
}  // namespace gso::slow_records_test
