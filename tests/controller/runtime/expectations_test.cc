// What the stores must still show after a write, and live reads: before a disruption, and where the watch lags.
#include <gmock/gmock.h>

#include <chrono>

#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "tests/controller/writes/executor_fixture.h"

namespace gso::expectations_test {
namespace {

using namespace executor_test;
using namespace std::chrono_literals;
using k8s::test::Answer;
using testing::ElementsAre;
using testing::IsEmpty;

// A pod of the plugin as the server has it.
const std::string kPod = R"({"metadata":{"name":"p1","namespace":"gpu-operator","uid":"u1","resourceVersion":"4"}})";
const std::string kGetPod = "GET /api/v1/namespaces/gpu-operator/pods/p1";
const ObjectRef kNode{"v1", "Node", "", "n1", ""};

class ExpectationsTest : public ExecutorTest {
 protected:
  // What the server says of n1 from now on.
  void serve_node(int version, const std::string& extra = "") {
    script["GET /api/v1/nodes/n1"] = [=] { return Answer::json(200, node_json("n1", version, extra)); };
  }
  void label_n1() { execute({patch("n1", {{"a", "1"}})}); }
  void show_n1(int version, const std::string& extra = "") {
    world.nodes.apply(*project_node(node_json("n1", version, extra)));
  }
  void read(const ObjectRef& object) { EXPECT_TRUE(sim.run(expectations.refresh_one(object)).has_value()); }
};

TEST_F(ExpectationsTest, AWriteWithoutAnAnswerIsSettledByALiveRead) {
  script["PATCH"] = [] { return Answer::broken(); };
  label_n1();
  EXPECT_FALSE(expectations.current());
  EXPECT_LE(expectations.next_refresh(), sim.clock.monotonic()) << "at once";
  serve_node(7, R"(,"labels":{"a":"1"})");
  settle();
  EXPECT_TRUE(expectations.current());
  EXPECT_EQ(world.nodes.find("n1")->meta.labels.get("a"), "1") << "the store learned it";
}

// The API server can still have it before it, while the GET overtakes it.
TEST_F(ExpectationsTest, AChangeWhoseAnswerWasLostKeepsItsSlotWhileItCanStillBegin) {
  script["PATCH"] = [] { return Answer::broken(); };
  execute({begin_change("n1"), begin_change("n2")});
  script["GET /api/v1/nodes/n2"] = [] { return Answer::json(200, node_json("n2", 3)); };
  settle();
  NodesBeingWritten nodes = expectations.nodes();
  ASSERT_TRUE(nodes.contains("n1")) << "it is still the version that was planned from";
  EXPECT_NE(nodes.at("n1"), nullptr);
  EXPECT_FALSE(nodes.contains("n2")) << "its precondition cannot hold any more";
  sim.clock.run_for(5s);
  settle();
  EXPECT_TRUE(expectations.nodes().contains("n1"));
  sim.clock.run_for(10s);
  settle();
  EXPECT_TRUE(expectations.nodes().empty());
}

// Somebody else wrote to the node as well, and the watch brought both writes at once: a later version shows it too.
TEST_F(ExpectationsTest, TheViewIsNotCurrentUntilTheStoreShowsTheWriteOrALaterOne) {
  for (const int shown : {2, 11}) {
    label_n1();
    EXPECT_FALSE(expectations.current());
    show_n1(shown);
    EXPECT_TRUE(expectations.current()) << shown;
    world.nodes.erase({"", "n1"});
    show_n1(1);
  }
}

// It may take as long as its grace period until the pod is gone.
TEST_F(ExpectationsTest, ADeletionIsSeenAsSoonAsThePodTerminatesOrIsGone) {
  Pod pod = *project_pod(kPod);
  world.operand_pods.apply(pod);
  execute({drop_pod("n1", "p1", "u1")});
  EXPECT_FALSE(expectations.current());
  world.operand_pods.erase({"gpu-operator", "p1"});
  EXPECT_TRUE(expectations.current());
  pod.meta.uid = "u2";
  world.operand_pods.apply(pod);
  execute({drop_pod("n1", "p1", "u2")});
  EXPECT_FALSE(expectations.current());
  pod.meta.deletion_timestamp = sim.clock.now();
  world.operand_pods.apply(pod);
  EXPECT_TRUE(expectations.current());
}

TEST_F(ExpectationsTest, ALiveReadThatTheWatchHasOvertakenIsNotPutBack) {
  script["GET /api/v1/nodes/n1"] = [&] {
    show_n1(12, R"(,"labels":{"a":"newer"})");
    return Answer::json(200, node_json("n1", 9, R"(,"labels":{"a":"older"})"));
  };
  read(kNode);
  EXPECT_EQ(world.nodes.find("n1")->meta.labels.get("a"), "newer");
}

// The answer of the GET and the event of the watch come by two connections.
TEST_F(ExpectationsTest, WhatTheWatchHasDeletedIsNotPutBackByALiveReadThatWasOnItsWay) {
  world.operand_pods.apply(*project_pod(kPod));
  script[kGetPod] = [&] {
    world.operand_pods.erase({"gpu-operator", "p1"});
    return Answer::json(200, kPod);
  };
  script["GET /api/v1/nodes/n1"] = [&] {
    world.nodes.erase({"", "n1"});
    return Answer::json(200, node_json("n1", 5));
  };
  read({"v1", "Pod", "gpu-operator", "p1", "u1"});
  read(kNode);
  EXPECT_EQ(world.operand_pods.size(), 0U) << "no watch would ever take it out again";
  EXPECT_EQ(world.nodes.find("n1"), nullptr);
}

// No watch covers the pods that use GPUs. One in the store of the plugin's pods would count as one of those: as no
// reason not to restart the plugin beneath it.
TEST_F(ExpectationsTest, AWorkloadWhoseEvictionGotNoAnswerDoesNotBecomeAPodOfThePlugin) {
  script["POST"] = [] { return Answer::broken(); };
  script["GET /api/v1/namespaces/team/pods/train"] = [] {
    return Answer::json(200, R"({"metadata":{"name":"train","namespace":"team","uid":"u9","resourceVersion":"4"}})");
  };
  execute({evict("team", "train", "u9")});
  settle();
  EXPECT_EQ(world.operand_pods.size(), 0U);
  read({"v1", "Pod", "team", "train", "u9"});
  EXPECT_EQ(world.operand_pods.size(), 0U);
}

// A relist under way has sent the nodes as they were before the write. Its view is complete after the live read, which
// overcomes a watch that is stalled.
TEST_F(ExpectationsTest, ACompleteViewThatIsOlderThanALiveReadFreesNoNode) {
  world.nodes.init();
  for (const char* name : {"n1", "n2", "n3"}) world.nodes.init_apply(*project_node(node_json(name, 1)));
  execute({begin_change("n1")});
  EXPECT_EQ(expectations.next_refresh(), sim.clock.monotonic() + 5s);
  sim.clock.run_for(5s);
  const std::string change = R"(,"annotations":{"gpusharing.dev/change":"{}"})";
  serve_node(2, change);
  settle();
  EXPECT_TRUE(expectations.current());
  EXPECT_EQ(expectations.lag(), 0s);
  EXPECT_EQ(expectations.next_refresh(), MonoTime::never());

  world.nodes.init_done();
  EXPECT_FALSE(expectations.current());
  const NodesBeingWritten nodes = expectations.nodes();
  ASSERT_TRUE(nodes.contains("n1"));
  EXPECT_NE(nodes.at("n1"), nullptr) << "it holds its slot";
  EXPECT_EQ(expectations.next_refresh(), sim.clock.monotonic() + 5s) << "read again if the watch brings nothing";
  show_n1(2, change);
  EXPECT_TRUE(expectations.current());
  EXPECT_TRUE(expectations.nodes().empty());
}

TEST_F(ExpectationsTest, APodThatALiveReadFoundGoneIsNotThereAgainInAnOlderView) {
  world.operand_pods.apply(*project_pod(kPod));
  world.operand_pods.init();
  world.operand_pods.init_apply(*project_pod(kPod));
  execute({drop_pod("n1", "p1", "u1")});
  sim.clock.run_for(5s);
  script[kGetPod] = [] { return Answer::status_of(404, "NotFound", "pods p1 not found"); };
  settle();
  EXPECT_TRUE(expectations.current());
  world.operand_pods.init_done();
  EXPECT_EQ(world.operand_pods.find(k8s::ObjectKey{"gpu-operator", "p1"}), nullptr);
  EXPECT_TRUE(expectations.current());
}

// What was read is of no use once no view can be older.
TEST_F(ExpectationsTest, WhatWasReadIsForgotten) {
  label_n1();
  sim.clock.run_for(5s);
  serve_node(2);
  settle();
  sim.clock.run_for(11min);
  EXPECT_TRUE(expectations.current());
  world.nodes.init();
  world.nodes.init_apply(*project_node(node_json("n1", 1)));
  world.nodes.init_done();
  EXPECT_TRUE(expectations.current()) << "a restored etcd is believed";
}

// The first GET is old when it arrives: the second write is still to be shown.
TEST_F(ExpectationsTest, AWriteThatFollowsDuringALiveReadIsNotSettledByIt) {
  label_n1();
  sim.clock.run_for(5s);
  const std::vector<ObjectRef> overdue = expectations.take_overdue();
  ASSERT_EQ(overdue.size(), 1U);
  EXPECT_TRUE(expectations.take_overdue().empty()) << "it is being read";
  script["GET /api/v1/nodes/n1"] = [this] {
    expectations.written(kNode, "9");
    return Answer::json(200, node_json("n1", 2));
  };
  sim.run(expectations.settle(overdue.front()));
  EXPECT_FALSE(expectations.current());
}

TEST_F(ExpectationsTest, AWriteOfANodeHoldsUpThatNodeAndAWriteOfTheRecordTheFleet) {
  execute({begin_change("n1"), patch("n2", {{"a", "1"}})});
  EXPECT_TRUE(expectations.fleet_is_current());
  const NodesBeingWritten nodes = expectations.nodes();
  ASSERT_EQ(nodes.size(), 2U);
  ASSERT_NE(nodes.at("n1"), nullptr);
  EXPECT_EQ(nodes.at("n1")->name, "n1");
  EXPECT_EQ(nodes.at("n2"), nullptr) << "it writes no change";
  expectations.written({"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""}, "9");
  EXPECT_FALSE(expectations.fleet_is_current());
}

// The rollout r1 as the server has it, or as it had it.
std::string rollout_json(const std::string& uid, int version, const std::string& phase) {
  return R"({"metadata":{"name":"r1","uid":")" + uid + R"(","resourceVersion":")" + std::to_string(version) +
         R"("},"spec":{"policy":"a"},"status":{"phase":")" + phase + "\"}}";
}

// Its watch can be seconds behind, and the other rollouts go on.
TEST_F(ExpectationsTest, AStatusIsKnownFromItsAnswer) {
  world.rollouts.apply(*project_sharing_rollout(rollout_json("u1", 4, "")));
  script["PATCH"] = [] { return Answer::json(200, rollout_json("u1", 9, "Progressing")); };
  execute({status_of("Progressing", 1)});
  ASSERT_EQ(transport.requests.size(), 1U);
  EXPECT_EQ(transport.requests.front().accept.find("PartialObjectMetadata"), std::string::npos);
  EXPECT_TRUE(expectations.fleet_is_current());
  EXPECT_EQ(world.rollouts.find("r1")->phase, "Progressing");

  world.rollouts.apply(*project_sharing_rollout(rollout_json("u1", 7, "")));  // A late event.
  EXPECT_EQ(world.rollouts.find("r1")->phase, "Progressing");
  EXPECT_TRUE(expectations.fleet_is_current());
  const SharingRollout shown = *world.rollouts.find("r1");
  world.rollouts.erase({"", "r1"});  // Somebody deletes it, and its watch says so: that is no older view.
  EXPECT_TRUE(expectations.fleet_is_current());
  world.rollouts.apply(shown);
  world.rollouts.init();  // A complete view that was begun before the write.
  world.rollouts.init_apply(*project_sharing_rollout(rollout_json("u1", 7, "")));
  world.rollouts.init_done();
  EXPECT_FALSE(expectations.fleet_is_current());
}

TEST_F(ExpectationsTest, AStatusOfAnObjectThatTheStoreDoesNotHaveIsWaitedFor) {
  script["PATCH"] = [] { return Answer::json(200, rollout_json("u2", 9, "Progressing")); };
  execute({status_of("Progressing", 1)});
  EXPECT_EQ(world.rollouts.find("r1"), nullptr) << "it might be deleted, and its watch has said so";
  EXPECT_FALSE(expectations.fleet_is_current());

  world.rollouts.apply(*project_sharing_rollout(rollout_json("u1", 4, "")));  // The store has an earlier one.
  sim.clock.run_for(1s);
  execute({status_of("Progressing", 2)});
  EXPECT_EQ(world.rollouts.find("r1")->meta.uid.str(), "u1");
  EXPECT_FALSE(expectations.fleet_is_current());
}

TEST_F(ExpectationsTest, ANodeThatChangedSinceThePlanOrIsGoneIsNotDisruptedAndOneWithAHeartbeatIs) {
  serve_node(5, R"(,"annotations":{"gpusharing.dev/hold":"true"})");
  const Execution done = execute({patch("n1", {{"a", "1"}}), drop_pod("n1", "p1", "u1")});
  EXPECT_THAT(writes(), IsEmpty());
  EXPECT_TRUE(done.replan);
  EXPECT_EQ(world.nodes.find("n1")->meta.annotations.get("gpusharing.dev/hold"), "true");
  script["GET /api/v1/nodes/n2"] = [] { return Answer::status_of(404, "NotFound", "nodes n2 not found"); };
  script["GET /api/v1/nodes/n3"] = [] { return Answer::json(200, node_json("n3", 5)); };
  execute({drop_pod("n2", "p2", "u2"), drop_pod("n3", "p3", "u3")});
  EXPECT_THAT(writes(), ElementsAre("DELETE /api/v1/namespaces/gpu-operator/pods/p3"));
  EXPECT_EQ(world.nodes.find("n2"), nullptr);
}

TEST_F(ExpectationsTest, ALiveReadThatFindsNothingErasesOnlyWhatTheStoreHeldWhenItWasSent) {
  struct Case {
    const char* name;
    bool was_there;
    std::function<void()> meanwhile;  // What the watch brings while the GET is under way.
    bool stays;
  };
  const Case cases[] = {
      {"nothing arrives: it is gone", true, [] {}, false},
      {"another object of the name was created", true, [this] { show_n1(8); }, true},
      {"it goes and comes back, of a lower version than before", true,
       [this] {
         world.nodes.erase({"", "n1"});
         show_n1(2);
       },
       true},
      {"the watch was first", true, [this] { world.nodes.erase({"", "n1"}); }, false},
      {"it was not there when the GET was sent, and arrived meanwhile", false, [this] { show_n1(9); }, true},
  };
  for (const Case& c : cases) {
    world.nodes.erase({"", "n1"});  // The watch reports the deletion.
    if (c.was_there) show_n1(5);
    script["GET /api/v1/nodes/n1"] = [&] {
      c.meanwhile();
      return Answer::status_of(404, "NotFound", "nodes n1 not found");
    };
    read(kNode);
    EXPECT_EQ(world.nodes.find("n1") != nullptr, c.stays) << c.name;
  }
}

}  // namespace
}  // namespace gso::expectations_test
