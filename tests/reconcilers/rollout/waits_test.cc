// What nodes that need a change wait for, also while others are in progress: budget and holders, canary, soak, a place
// at the back of the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/budgets.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::waits_test {
namespace {

using Json = nlohmann::json;
using std::chrono::hours;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Waits : public testing::Test {
 protected:
  // `nodes` of them run `profile`, under a policy with that spec.rollout.
  FleetModel& start(const std::string& rollout, const std::string& profile = "ts-4", int nodes = 4) {
    fleet_.emplace(spec_of(nodes, profile, "a"));
    fleet_->settings.settle = Duration::zero();
    free_cluster_budget(*fleet_);
    EXPECT_TRUE(fleet_->settle());
    fleet_->policy(rollout_of(rollout));
    EXPECT_TRUE(fleet_->settle());
    fleet_->advance(std::chrono::seconds(5));
    return *fleet_;
  }
  void tick(int times) { test::tick(*fleet_, times); }
  void add_t4(const std::vector<std::string>& names) {
    NodeSpec node;
    node.product = "NVIDIA-T4";
    for (const std::string& name : names) {
      node.name = name;
      fleet_->add_node(node);
    }
    EXPECT_TRUE(fleet_->settle());
  }
  void occupy(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) fleet_->use(node, "job-" + node, "nvidia.com/gpu", 1);
  }
  [[nodiscard]] Json status() const { return Json::parse(fleet_->policy_status("default"), nullptr, false); }
  [[nodiscard]] std::int64_t nodes(const char* which) const { return number_at(object_at(status(), "nodes"), which); }
  // Progressing of the policy, as "True RollingOut: message".
  [[nodiscard]] std::string progressing() const { return words(status(), "Progressing"); }
  // Of the only SharingRollout under way.
  [[nodiscard]] std::string rollout(const char* type = "Progressing") const {
    for (const auto& [key, rollout] : fleet_->world.rollouts.all())
      if (rollout->phase != "Completed" && rollout->phase != "Superseded")
        return words(Json::parse(rollout->status_json, nullptr, false), type);
    return "no rollout";
  }
  [[nodiscard]] Json rollout_status() const {
    return Json::parse(fleet_->world.rollouts.all().front().second->status_json, nullptr, false);
  }
  [[nodiscard]] std::string rollout_object() const { return fleet_->world.rollouts.all().front().first.name; }
  [[nodiscard]] std::string shown(const std::string& node) {
    fleet_->index.refresh(fleet_->world, fleet_->settings);
    ReadingPass pass(fleet_->world, fleet_->index, fleet_->settings, fleet_->now);
    const ShownState state = shown_state(pass, fleet_->node(node));
    return state.state + ": " + state.message;
  }
  [[nodiscard]] NodeExplanation explained(const std::string& node) {
    fleet_->index.refresh(fleet_->world, fleet_->settings);
    const Snapshot snapshot{fleet_->world, fleet_->now, fleet_->timers, fleet_->consumers, fleet_->settings};
    return explain_node(snapshot, fleet_->index, {}, node).value_or(NodeExplanation());
  }
  // Status patches in that many seconds.
  std::ptrdiff_t status_patches(int ticks) {
    std::ptrdiff_t out = 0;
    for (int i = 0; i < ticks; ++i) out += count_of<PatchStatus>(fleet_->tick());
    return out;
  }
  static std::string words(const Json& status, const char* type) {
    for (const Json& condition : list_at(status, "conditions")) {
      if (text_at(condition, "type") == type) {
        return fmt::format("{} {}: {}", text_at(condition, "status"), text_at(condition, "reason"),
                           text_at(condition, "message"));
      }
    }
    return "no condition";
  }

  std::optional<FleetModel> fleet_;
};

constexpr const char* kOneByOne = "maxUnavailable: 1, canary: {nodesPerGroup: 0}";
constexpr const char* kTwo = "maxUnavailable: 2, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 0}";
constexpr const char* kOneOfTheCluster =
    "maxUnavailable: 100%, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 0}";

TEST_F(Waits, ANodeThatWaitsForAFullBudgetNamesItAndWhoHoldsItWhileTheyMove) {
  start(kTwo).edit("any", "ts-8");
  tick(3);
  const std::string full = "no slot is free: a01, a02 hold 2 of 2 slots of policy default (maxUnavailable)";
  EXPECT_EQ(progressing(), "True RollingOut: " + full);
  EXPECT_EQ(rollout(), "True RollingOut: " + full);
  EXPECT_EQ(shown("a03"), "Pending: " + full);
  EXPECT_EQ(shown("a04"), "Pending: " + full);
  // `rollout status` reads them there: which settings to raise, and for the template of a DaemonSet who holds the
  // slots.
  const Json reason{{"code", "RollingOut"}, {"budgets", {"maxUnavailable"}}, {"holders", {"a01", "a02"}}};
  EXPECT_EQ(status()["reason"], reason);
  EXPECT_EQ(rollout_status()["reason"], reason);
  EXPECT_EQ(rollout_status()["waits"][0]["product"], "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(rollout_status()["waits"][0]["reason"], "BudgetExhausted");
}

TEST_F(Waits, TheClustersBudgetIsNamedWhereItIsTheOneThatBinds) {
  FleetModel& fleet = start(kOneOfTheCluster);
  fleet.settings.cluster_max_unavailable = {1, false};
  fleet.edit("any", "ts-8");
  tick(3);
  const std::string full = "no slot is free: a01 holds 1 of 1 slot of the cluster (--cluster-max-unavailable)";
  EXPECT_EQ(progressing(), "True RollingOut: " + full);
  EXPECT_EQ(shown("a03"), "Pending: " + full);
}

TEST_F(Waits, WhichBudgetsAreFullAndTheFirstFiveWhoHoldThemAreFieldsOfTheStatus) {
  FleetModel& fleet = start("maxUnavailable: 100%, maxUnavailablePerGroup: 1, canary: {nodesPerGroup: 0}");
  fleet.settings.cluster_max_unavailable = {1, false};
  fleet.edit("any", "ts-8");
  tick(3);
  EXPECT_EQ(status()["reason"]["budgets"], Json({"cluster-max-unavailable", "maxUnavailablePerGroup"}));
  EXPECT_EQ(status()["reason"]["holders"], Json({"a01"}));

  FleetModel& large = start("maxUnavailable: 7, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 0}", "ts-4", 9);
  for (const char* node : {"a01", "a02", "a03", "a04", "a05", "a06", "a07"}) large.set_ready(node, false);
  large.edit("any", "ts-8");
  tick(3);
  EXPECT_THAT(progressing(), HasSubstr("a05 and 2 more hold 7 of 7 slots"));
  EXPECT_EQ(status()["reason"]["holders"], Json({"a01", "a02", "a03", "a04", "a05"})) << "the first five";
}

// `crds.install: false`: the CRDs can be of an earlier release, and the API server drops the fields that they do not
// have.
TEST_F(Waits, AStatusWhoseFieldsAreDroppedIsNotWrittenInEachPass) {
  FleetModel& fleet = start("maxUnavailable: 2, workloads: Evict, canary: {nodesPerGroup: 0}", "mps-4");
  for (const char* node : {"a01", "a02"}) fleet.hold_pods(node, true);
  occupy({"a01", "a02"});
  fleet.edit("any", "mps-8");
  // What the executor learns from the answers.
  const auto dropped = [&](const std::string& kind, const std::string& text) {
    Json status = Json::parse(text);
    const Json sent = status.flatten();
    for (const char* field : {"reason", "waits"}) status.erase(field);
    if (status.contains("nodes") && status["nodes"].is_array()) {
      for (Json& node : status["nodes"])
        for (const char* field :
             {"podsWithoutController", "evictionForbiddenBy", "podsStayOtherwise", "evictionRefused"})
          node.erase(field);
    }
    const Json kept = status.flatten();
    for (const auto& [path, value] : sent.items())
      if (!kept.contains(path)) fleet.world.dropped_status_fields[kind].insert(path);
    return status.dump();
  };
  const auto serve = [&] {
    std::vector<SharingRollout> rollouts;
    for (const auto& [key, rollout] : fleet.world.rollouts.all()) rollouts.push_back(*rollout);
    for (SharingRollout& rollout : rollouts) {
      if (!rollout.status_json.empty()) rollout.status_json = dropped("SharingRollout", rollout.status_json);
      fleet.world.rollouts.apply(rollout);
    }
    SharingPolicy policy = *fleet.world.policies.find("default");
    policy.status_json = dropped("SharingPolicy", policy.status_json);
    fleet.world.policies.apply(policy);
  };
  for (int i = 0; i < 20; ++i) {
    tick(1);
    serve();
  }
  EXPECT_THAT(progressing(), HasSubstr("no slot is free"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(status_patches(1), 0) << progressing();
    serve();
  }
}

TEST_F(Waits, ANodeThatIsNotReadyAndABusyOneAreNamedAsHoldersForTheIdleOnes) {
  FleetModel& fleet = start(kTwo, "mps-4");
  fleet.set_ready("a02", false);
  occupy({"a01", "a03", "a04"});
  fleet.edit("any", "mps-8");
  tick(30);
  EXPECT_EQ(
      shown("a04"),
      "Pending: no slot is free: a01, a02 hold 2 of 2 slots of policy default (maxUnavailable); out of service: a02 "
      "(NotReady)");
  EXPECT_EQ(shown("a02"), "Pending: Node is NotReady: skipped until Ready; uses 1 slot of maxUnavailable");
  EXPECT_EQ(status_patches(200), 0) << "the same holders, and nothing is written";
}

// A person's cordon, and two nodes in a change under a budget that was lowered since: each says why it holds a slot.
TEST_F(Waits, ACordonThatHoldsASlotIsNamedAsSuchWhereverOthersWaitForIt) {
  FleetModel& fleet = start("maxUnavailable: 3, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 0}");
  fleet.cordon("a02", true);
  fleet.annotate("a02", kHoldAnnotation, "true");  // Else its change begins: it needs no slot for that.
  for (const char* node : {"a01", "a03"}) fleet.hold_pods(node, true);
  fleet.edit("any", "ts-8");
  tick(3);
  fleet.policy(rollout_of("maxUnavailable: 1, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 0}"));
  tick(1);
  EXPECT_THAT(shown("a04"), HasSubstr(" of 1 slots of policy default (maxUnavailable)"));
  EXPECT_THAT(shown("a04"), HasSubstr("; out of service: a02 (cordoned, not by the operator)"));
  EXPECT_THAT(explained("a02").notes,
              testing::Contains("Cordoned by someone else, who must uncordon it; holds 1 slot of the "
                                "budget (maxUnavailable), which other nodes wait for"));
}

// Who uses the node's GPUs is not known before they have been listed, and the status goes on to name them.
TEST_F(Waits, AnOperatorThatHasJustBeenStartedWritesNoStatusWhileNothingHasChanged) {
  FleetModel& fleet = start("maxUnavailable: 1, idleTimeout: 4h", "mps-4", 2);
  occupy({"a01", "a02"});
  fleet.edit("any", "mps-8");
  tick(60);
  EXPECT_EQ(status_patches(200), 0);
  for (int start = 0; start < 2; ++start) {
    const auto listed = fleet.consumers;
    fleet.restart_operator();
    fleet.consumers.clear();
    const Plan first = fleet.plan();
    EXPECT_EQ(count_of<PatchStatus>(first), 0);
    fleet.consumers = listed;
    EXPECT_EQ(status_patches(200), 0);
  }
}

TEST_F(Waits, ANodeBehindACanaryNamesItAndLaterTheEndOfItsSoak) {
  start("maxUnavailable: 100%, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 1, soak: 1h}").edit("any", "ts-8");
  tick(2);
  EXPECT_EQ(progressing(), "True RollingOut: waits for the canary a01");
  EXPECT_EQ(shown("a02"), "Pending: waits for the canary a01");
  tick(20);
  EXPECT_THAT(progressing(), StartsWith("True RollingOut: the canary a01 is verified and soaks for 1h0m0s: the next "
                                        "nodes start at 2026-03-01T"));
  EXPECT_THAT(shown("a02"), StartsWith("Pending: the canary a01 is verified and soaks"));
  EXPECT_EQ(status_patches(60), 0);
}

TEST_F(Waits, GroupsThatWaitForDifferentThingsAreNamedEach) {
  FleetModel& fleet = start("maxUnavailable: 3, maxUnavailablePerGroup: 1, canary: {nodesPerGroup: 1, soak: 1h}");
  add_t4({"t01", "t02"});
  fleet.hold_pods("t01", true);
  fleet.edit("any", "ts-8");
  tick(20);
  const std::string both = progressing();
  EXPECT_THAT(both, HasSubstr("group NVIDIA-A100-SXM4-40GB: the canary a01 is verified and soaks for 1h0m0s"));
  EXPECT_THAT(both, EndsWith("; group NVIDIA-T4: waits for the canary t01"));
}

TEST_F(Waits, ANodeThatWaitsBesideNodesInProgressNamesTheStopOfItsPolicy) {
  FleetModel& fleet = start("maxUnavailable: 2, canary: {nodesPerGroup: 0}");
  fleet.hold_pods("a01", true);
  fleet.edit("any", "ts-8");
  tick(6);
  fleet.policy(rollout_of("maxUnavailable: 2, canary: {nodesPerGroup: 0}, paused: true"));
  tick(1);
  EXPECT_THAT(progressing(), AllOf(StartsWith("True RollingOut: "), HasSubstr("spec.rollout.paused of the policy is")));
  EXPECT_THAT(shown("a04"), HasSubstr("spec.rollout.paused of the policy is set"));
}

TEST_F(Waits, HalfOfTheSlotsWaitForWorkloadsAndABusyNodeNamesWhoDoes) {
  for (const bool another_group_waits : {false, true}) {
    FleetModel& fleet = start(kTwo, "mps-4", 2);
    if (another_group_waits) {
      add_t4({"t01"});
      fleet.annotate("t01", kHoldAnnotation, "true");
    }
    occupy({"a01", "a02"});
    fleet.edit("any", "mps-8");
    tick(20);
    EXPECT_EQ(shown("a02"),
              "Pending: pods use these nodes: they start when their own pods end, or those of a01; policy default lets "
              "1 node wait for its pods at a time (half of maxUnavailable)")
        << another_group_waits;
  }
}

TEST_F(Waits, ASoakAfterAnAbortAndAStartIsNamedThoughNoSharingRolloutIsThere) {
  const std::string spec = "maxUnavailable: 1, canary: {nodesPerGroup: 1, soak: 1h}";
  FleetModel& fleet = start(spec);
  fleet.edit("any", "ts-8");
  tick(20);
  fleet.rollout_switch(rollout_object(), "aborted", true);
  tick(2);
  EXPECT_THAT(rollout("Ready"),
              StartsWith("False Aborted: the rollout was aborted; the remaining nodes are not changed. Retry: "
                         "`gpu-sharing-operator rollout start default`"));
  // As `rollout start`: another retry, and the record goes.
  fleet.policy(rollout_of(spec, "gpusharing.dev/retry: \"1\""));
  tick(1);
  fleet.delete_rollouts();
  tick(3);
  ASSERT_TRUE(fleet.world.rollouts.all().empty());
  EXPECT_THAT(progressing(), StartsWith("True RollingOut: the canary a01 is verified and soaks for 1h0m0s"));
}

// --- Stops.

TEST_F(Waits, AClosedWindowSaysHowManyNodesWaitForItAndWithWhat) {
  const std::string window = R"(maxUnavailable: 1, maintenanceWindows: [{cron: "0 2 * * *", duration: 1h}])";
  FleetModel& fleet = start("maxUnavailable: 1", "ts-4", 3);
  fleet.policy(rollout_of(window));
  fleet.edit("any", "ts-8");
  tick(3);
  const std::string why =
      "the next maintenance window opens at 2026-03-02T02:00:00Z; 3 of 3 nodes wait to change key any to "
      "v1-3c47c0f56c82ca33";
  EXPECT_EQ(progressing(), "False OutsideWindow: " + why);
  EXPECT_EQ(status_patches(200), 0);
}

// The canary of one group has failed, and in another group, which has passed its own, a node failed later.
TEST_F(Waits, OnlyTheCanaryOfItsGroupIsSaidToHaveFailedInTheCanary) {
  FleetModel& fleet = start(
      "maxUnavailable: 100%, maxUnavailablePerGroup: 100%, maxFailures: 9, verifyTimeout: 20s, canary: {nodesPerGroup: "
      "1, soak: 1s}");
  add_t4({"t01", "t02"});
  for (const char* name : {"a02", "t01"}) fleet.crash_pods(name, true);
  fleet.edit("any", "ts-8");
  tick(60);
  EXPECT_EQ(progressing(), "False MaxFailures: 2 nodes (a02, t01) failed, t01 in the canary");
}

TEST_F(Waits, AStopByFailuresSaysThatARetryWaitsForAMaintenanceWindowToo) {
  const std::string spec = "maxUnavailable: 1, verifyTimeout: 20s, canary: {nodesPerGroup: 1, soak: 1s}";
  FleetModel& fleet = start(spec);
  fleet.crash_pods("a01", true);
  fleet.edit("any", "ts-8");
  tick(50);
  EXPECT_EQ(progressing(), "False MaxFailures: 1 node (a01) failed in the canary");
  fleet.policy(rollout_of(spec + R"(, maintenanceWindows: [{cron: "0 2 * * *", duration: 1h}])"));
  tick(2);
  EXPECT_EQ(progressing(),
            "False MaxFailures: 1 node (a01) failed in the canary; a retry also waits: the next maintenance window "
            "opens at 2026-03-02T02:00:00Z");
}

// --- Deferred nodes.

constexpr const char* kPatient = "maxUnavailable: 1, canary: {nodesPerGroup: 0}, idleTimeout: 1h";

// a01 of two waits for its pod until a person uncordons it; the other one is done.
class Deferred : public Waits {
 protected:
  Deferred() {
    FleetModel& fleet = start(kPatient, "mps-4", 2);
    fleet.use("a01", "job-1", "nvidia.com/gpu", 1);
    fleet.edit("any", "mps-8");
    tick(60);
    EXPECT_TRUE(fleet.node("a01").unschedulable);
  }
  // Ends the pod as well.
  void uncordon() {
    fleet_->cordon("a01", false);
    tick(2);
    fleet_->release("a01");
    tick(60);
  }
};

TEST_F(Deferred, ANodeThatAPersonUncordonedSaysSoAndWhenItIsTriedAgain) {
  const WallTime then = fleet_->now;
  uncordon();
  const WallTime until = deferral_of(fleet_->node("a01")).value_or(Deferral()).until;
  EXPECT_GE(until, then + hours(1));
  const std::string at = k8s::format_time(until);
  const std::string why =
      "someone uncordoned it during the drain, and the operator changes it as soon as it is idle, not before " + at +
      "; to change it earlier: `gpu-sharing-operator rollout start default`, which cordons it again";
  EXPECT_EQ(shown("a01"), "Pending: " + why);
  EXPECT_EQ(explained("a01").next.text(), "gpu-sharing-operator rollout start default");
  EXPECT_EQ(progressing(), "False Deferred: a01: " + why);
  EXPECT_EQ(rollout(), "False Deferred: a01: " + why);
  EXPECT_EQ(status_patches(200), 0);
}

TEST_F(Deferred, ANodeWhosePodsDidNotEndNamesThemAndTheTimeout) {
  fleet_->advance(hours(1));
  tick(30);
  ASSERT_TRUE(deferral_of(fleet_->node("a01")).has_value());
  EXPECT_THAT(shown("a01"),
              AllOf(StartsWith("Pending: the operator has cordoned it for its workloads once (idleTimeout 1h0m0s)"),
                    EndsWith("waits for jobs/job-1")));
  EXPECT_EQ(explained("a01").next.text(), "kubectl get pods --all-namespaces --field-selector spec.nodeName=a01")
      << "a retry would wait for the pod again";
}

TEST_F(Deferred, ANodeThatAPersonUncordonedWhileItsPodRunsLeadsToThePod) {
  fleet_->cordon("a01", false);
  tick(20);
  ASSERT_TRUE(deferral_of(fleet_->node("a01")).has_value());
  EXPECT_THAT(shown("a01"), AllOf(StartsWith("Pending: someone uncordoned it during the drain, and the operator"),
                                  EndsWith(", which cordons it again; waits for jobs/job-1")));
  EXPECT_EQ(explained("a01").next.text(), "kubectl get pods --all-namespaces --field-selector spec.nodeName=a01");
}

TEST_F(Deferred, AStartTriesADeferredNodeNow) {
  uncordon();
  EXPECT_FALSE(fleet_->node("a01").unschedulable);
  fleet_->policy(rollout_of(kPatient, "gpusharing.dev/retry: \"2026-03-01T12:00:00.000000Z\""));
  tick(60);
  EXPECT_EQ(fleet_->index.assessment("a01")->phase, Phase::up_to_date);
}

// --- Times.

class Times : public Waits {
 protected:
  // The seconds that are left by the policy's status; -1: nothing is foretold.
  [[nodiscard]] std::int64_t left() const {
    const auto end = k8s::parse_rfc3339(text_at(status(), "estimatedCompletion"));
    return end ? std::chrono::duration_cast<std::chrono::seconds>(*end - fleet_->now).count() : -1;
  }
  [[nodiscard]] std::string started_at() const { return text_at(rollout_status(), "startedAt"); }
  // Until so many nodes show the new text and another one is in progress.
  void until_done(std::int64_t done) {
    for (int i = 0; i < 4000; ++i) {
      (void)fleet_->tick();
      if (nodes("upToDate") >= done && nodes("updating") > 0) return;
    }
    FAIL() << done << " nodes were never done";
  }
};

TEST_F(Times, ARolloutStartsWithItsFirstNodeAndNotWithItsApproval) {
  FleetModel& fleet = start(kOneByOne, "ts-4", 20);
  fleet.policy(policy_of(fmt::format("mode: Approve, rollout: {{{}}}", kOneByOne)));
  tick(2);
  fleet.edit("any", "ts-8");
  tick(5);
  EXPECT_EQ(started_at(), "") << "it waits for its approval";
  fleet.advance(hours(100));
  fleet.rollout_switch(rollout_object(), "approved", true);
  const WallTime approved = fleet.now;
  until_done(4);
  EXPECT_GE(*k8s::parse_rfc3339(started_at()), std::chrono::floor<std::chrono::seconds>(approved));
  EXPECT_GT(left(), 0);
  EXPECT_LT(left(), 600) << "some ten seconds a node";
}

TEST_F(Times, ATimeInWhichItIsPausedDoesNotCountAndNothingIsForetoldThen) {
  FleetModel& fleet = start(kOneByOne, "ts-4", 20);
  fleet.edit("any", "ts-8");
  until_done(4);
  EXPECT_GT(left(), 0);
  fleet.rollout_switch(rollout_object(), "paused", true);
  tick(1);
  EXPECT_EQ(left(), -1) << "it is paused";
  tick(30);
  fleet.advance(hours(100));
  fleet.rollout_switch(rollout_object(), "paused", false);
  until_done(8);
  EXPECT_GT(left(), 0);
  EXPECT_LT(left(), 600);
}

TEST_F(Times, NodesThatWereDoneBeforeItDoNotCountInItsPace) {
  FleetModel& fleet = start(kOneByOne, "ts-4", 60);
  fleet.edit("any", "ts-8");
  until_done(30);
  fleet.rollout_switch(rollout_object(), "aborted", true);
  tick(60);
  EXPECT_EQ(left(), -1) << "it is aborted";
  fleet.policy(rollout_of(kOneByOne, "gpusharing.dev/retry: \"1\""));
  tick(1);
  fleet.delete_rollouts();
  until_done(nodes("upToDate") + 2);
  const WallTime now = fleet.now;
  const std::int64_t foretold = left();
  until_done(59);
  const auto needed = std::chrono::duration_cast<std::chrono::seconds>(fleet.now - now).count();
  EXPECT_GE(foretold, needed / 2) << "it needed " << needed << " s";
}

TEST_F(Times, NothingIsForetoldOnceTooManyNodesHaveFailed) {
  FleetModel& fleet = start(
      "maxUnavailable: 2, maxUnavailablePerGroup: 100%, maxFailures: 1, canary: {nodesPerGroup: 0}, verifyTimeout: 30s",
      "ts-4", 20);
  fleet.crash_pods("a08", true);
  fleet.edit("any", "ts-8");
  until_done(4);
  EXPECT_GT(left(), 0);
  int looks = 0;
  for (int i = 0; i < 100; ++i) {
    (void)fleet.tick();
    const bool stopped = rollout("Ready").find("MaxFailures") != std::string::npos;
    if (!stopped || nodes("updating") == 0) continue;
    ++looks;
    EXPECT_EQ(left(), -1);
  }
  EXPECT_GT(looks, 0);
}

}  // namespace
}  // namespace gso::test::waits_test
