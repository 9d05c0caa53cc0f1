// The table of node_step.h, each row and each outcome of a row, without a fleet and a clock: the input is facts and
// ages, the output a phase and actions.
#include "reconcilers/node/node_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "reconcilers/model/labels.h"

namespace gso {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::string_view kFour =
    "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";
constexpr std::string_view kMpsFour =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";

// One node n1 whose target is `kFour` and that has another revision, with its three old pods.
class NodeStep : public testing::Test {
 protected:
  NodeStep() {
    node.meta.name = "n1";
    node.meta.resource_version = "7";
    node.ready = true;
    installation.ns = "gpu-operator";
    installation.config_map = "mps-config";
    for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
      Operand operand;
      operand.component = component;
      operand.uid = std::string(to_string(component));
      installation.operands.push_back(operand);
    }
    policy.meta.name = "default";
    policy.rollout.verify_timeout = minutes(10);
    policy.rollout.idle_timeout = hours(1);
    facts.change = nullptr;
    facts.phase = Phase::draining;
    facts.policy = Interned("default");
    facts.key = Interned("any");
    facts.labeller = Labeller::gfd;
    facts.ready = true;
    aim_at(kFour);
    change.policy = "default";
    change.config_map = "gpu-operator/mps-config";
    change.key = "any";
    change.from = "v1-from";
    change.to = std::string(facts.target.view());
    change.kind = Transition::reshare;
    change.cause = ChangeCause::edited;
    change.begun = change.listed = now - minutes(1);
    change.served = true;
    change.pods = {{Component::plugin, {"old-plugin"}}, {Component::gfd, {"old-gfd"}}};
    add_pod("old-plugin", Component::plugin, now - hours(2));
    add_pod("old-gfd", Component::gfd, now - hours(2));
    ConfigMap config_map;
    config_map.meta.ns = Interned("gpu-operator");
    config_map.meta.name = "mps-config";
    config_map.data_changed = now - minutes(5);
    world.configmaps.apply(config_map);
  }

  void aim_at(std::string_view text) {
    facts.profile = profiles.compile(text);
    ASSERT_TRUE(facts.profile->valid) << facts.profile->error;
    facts.target = Interned(facts.profile->revision);
    facts.profile_ref = Interned("mps-config/any");
    auto expectation = std::make_shared<NodeExpectation>();
    expectation->capacity = {{"nvidia.com/gpu", 4}};
    facts.expectation = expectation;
  }

  Pod& add_pod(std::string uid, Component component, WallTime created) {
    Pod& pod = pods.emplace_back();
    pod.meta.ns = Interned("gpu-operator");
    pod.meta.name = uid;
    pod.meta.uid = uid;
    pod.meta.creation_timestamp = created;
    pod.phase = Interned("Running");
    pod.ready = true;
    components[uid] = component;
    return pod;
  }
  Pod& pod(const std::string& uid) {
    return *std::ranges::find_if(pods, [&](const Pod& p) { return p.meta.uid == uid; });
  }
  void remove(const std::string& uid) {
    std::erase_if(pods, [&](const Pod& p) { return p.meta.uid == uid; });
  }
  // The listed pods are gone, and new ones serve.
  void replace_all() {
    for (const auto& [component, uids] : change.pods) {
      for (const std::string& uid : uids) remove(uid);
      add_pod("new-" + std::string(to_string(component)), component, now - seconds(30));
    }
  }
  void shows_target() {
    facts.pods_ready = facts.fresh_pods = true;
    facts.verified.ok = facts.verified.serving = true;
  }
  void shows_something_else() {
    facts.pods_ready = true;
    facts.verified = {};
    facts.verified.mismatch = "nvidia.com/gpu: capacity 2, expected 4";
  }
  void list_consumers(std::vector<std::string> names) {
    NodeConsumers& listed = consumers["n1"];
    listed.listed_at = now;
    for (std::string& name : names) {
      Pod consumer;
      consumer.meta.ns = Interned("team");
      consumer.meta.name = std::move(name);
      consumer.phase = Interned("Running");
      consumer.gpu_requests[Interned("nvidia.com/gpu")] = 1;
      listed.pods.push_back(std::move(consumer));
    }
  }
  void ran_for(Timer timer, Duration age) { ran.emplace_back(timer, age); }

  Step take() {
    facts.change = std::make_shared<const NodeChange>(change);
    node.meta.annotations.set(kChangeAnnotation, print_change(change));
    NodePods sorted;
    for (const Pod& p : pods) {
      auto& list = components.at(p.meta.uid) == Component::plugin ? sorted.plugin
                   : components.at(p.meta.uid) == Component::gfd  ? sorted.gfd
                                                                  : sorted.mps;
      list.insert(list.begin(), &p);
    }
    for (const auto& [timer, age] : ran) {
      for (const TimerKey& key : {draining_timer("n1", change), verifying_timer("n1", change),
                                  shown_timer("n1", change), reloading_timer("n1", change)}) {
        if (key.timer == timer) timers[key] = now - std::chrono::duration_cast<std::chrono::milliseconds>(age);
      }
    }
    facts.phase = phase_in_change(facts, sorted);
    timers[TimerKey{Timer::retargeting, "n1", std::string(facts.target.view())}] = now - seconds(2);
    const Snapshot snapshot{world, now, timers, consumers, settings, nullptr, first_look};
    const NodeView view{snapshot, node, facts, installation, sorted};
    StepInput input{view, policy, profiles, stop, blocked_by_pods, {}};
    if (kai) input.kai_hinders = [this] { return kai; };
    return step(input);
  }
  // The actions in short: "out(Verified)", "delete old-plugin", "into(Superseded)", "label", "fail", "event Reason".
  static std::vector<std::string> actions(const Step& taken) {
    std::vector<std::string> out;
    for (const PlannedAction& planned : taken.plan.actions) {
      if (const auto* gone = std::get_if<DeletePod>(&planned.action)) out.push_back("delete " + gone->uid);
      if (const auto* event = std::get_if<RecordEvent>(&planned.action)) out.push_back("event " + event->reason);
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      if (patch == nullptr) continue;
      const bool into = patch->set_annotations.contains(std::string(kChangeAnnotation));
      out.push_back(fmt::format("{}({}){}", into ? "into" : "out", planned.reason,
                                patch->unschedulable ? *patch->unschedulable ? " cordon" : " uncordon" : ""));
    }
    return out;
  }
  using Actions = std::vector<std::string>;
  static std::vector<std::string> reasons(const Step& taken) {
    std::vector<std::string> out;
    for (const Finding& finding : taken.plan.findings) out.push_back(finding.reason);
    return out;
  }

  WallTime now = *k8s::parse_rfc3339("2026-03-02T10:00:00Z");
  World world;
  Node node;
  PluginInstallation installation;
  SharingPolicy policy;
  PlannerSettings settings;
  ProfileCache profiles;
  NodeAssessment facts;
  NodeChange change;
  std::list<Pod> pods;
  std::map<std::string, Component> components;
  Timers timers;
  std::map<std::string, NodeConsumers> consumers;
  std::vector<std::pair<Timer, Duration>> ran;
  bool first_look = false;
  std::optional<Stop> stop;
  std::optional<BlockedBy> blocked_by_pods;
  std::optional<KaiHindrance> kai;
};

TEST_F(NodeStep, C1_ANodeThatSomebodyHoldsIsLeftAloneAndNoDeadlineRuns) {
  facts.holder = kHeld;
  stop = Stop{"Paused", ""};
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::held);
  EXPECT_EQ(actions(taken), Actions{});
  for (const TimerKey& key : taken.plan.timers) EXPECT_EQ(key.timer, Timer::unchanged);
}

TEST_F(NodeStep, C1_ADriverUpgradeHoldsItToo) {
  facts.holder = kDriverUpgrade;
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::held);
  EXPECT_EQ(actions(taken), Actions{});
}

TEST_F(NodeStep, C2_AFailedNodeStaysFailedWhileItShowsSomethingElse) {
  replace_all();
  shows_something_else();
  facts.phase = Phase::failed;
  change.failed = NodeChange::Failure{"did not verify", ""};
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::failed);
  EXPECT_EQ(actions(taken), Actions{});
}

TEST_F(NodeStep, C2_AFailedNodeThatShowsItsProfileAllTheSameRecovers) {
  replace_all();
  shows_target();
  change.failed = NodeChange::Failure{"did not verify", ""};
  EXPECT_EQ(actions(take()), Actions{"out(Recovered)"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutWhenItsTargetChanges) {
  change.to = "v1-other";
  change.cordoned = node.unschedulable = true;
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::draining);
  EXPECT_EQ(actions(taken), Actions{"out(Superseded) uncordon"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutWhenAnObstacleComesUp) {
  facts.reason = kMigEnabled;
  facts.message = "MIG";
  EXPECT_EQ(actions(take()), Actions{"out(MIGEnabled)"});
}

TEST_F(NodeStep, C3_AnUntouchedNodeIsBackedOutByAStop) {
  stop = Stop{"Aborted", "spec.aborted of the rollout is set"};
  EXPECT_EQ(actions(take()), Actions{"out(Aborted)"});
}

TEST_F(NodeStep, C3_UnderTheOperatorsOwnObserveNothingIsWrittenAndAFindingNamesTheCordon) {
  settings.rollouts = PolicyMode::observe;
  stop = Stop{"Observe", "the operator runs with max-mode Observe"};
  change.cordoned = node.unschedulable = true;
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  ASSERT_EQ(reasons(taken), Actions{"Observe"});
  EXPECT_NE(taken.plan.findings.front().message.find("stays cordoned"), std::string::npos);
}

TEST_F(NodeStep, C3_AForeignLabelBacksOutANodeWhosePodsAreAllReplaced) {
  replace_all();
  facts.label = Interned("other");
  facts.reason = kLabelOwnedByOther;
  EXPECT_EQ(actions(take()), Actions{"out(LabelOwnedByOther)"});
}

TEST_F(NodeStep, C4_ATouchedNodeIsNotFinishedIntoAnObstacle) {
  remove("old-gfd");
  facts.reason = kMigEnabled;
  facts.message = "MIG";
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::restarting);
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"MIGEnabled"});
}

TEST_F(NodeStep, C4_ATouchedNodeIsNotFinishedIntoAnInvalidProfile) {
  remove("old-gfd");
  facts.profile = nullptr;
  facts.message = "line 3";
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"ConfigInvalid"});
}

TEST_F(NodeStep, C4_ATouchedNodeThatKaiUsesIsNotFinished) {
  remove("old-gfd");
  kai = KaiHindrance{true, "KAI shares the node's GPUs"};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"KAIReservations"});
}

TEST_F(NodeStep, C4_AStopDoesNotHoldATouchedNode) {
  remove("old-gfd");
  stop = Stop{"Paused", ""};
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"});
}

TEST_F(NodeStep, C5_ATouchedNodeGoesOnToANewTargetWithANewList) {
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  change.to = "v1-other";
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"into(Superseded)"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  const auto written = parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->to, facts.target.view());
  EXPECT_TRUE(written->touched);
  EXPECT_EQ(written->pods.at(Component::gfd), std::set<std::string>{"new-gfd"});
}

TEST_F(NodeStep, C6_ALiveChangeDeletesTheFirstPodsAtOnce) {
  EXPECT_EQ(actions(take()), (Actions{"delete old-plugin", "delete old-gfd"}));
}

class DisruptiveStep : public NodeStep {
 protected:
  DisruptiveStep() {
    aim_at(kMpsFour);
    change.to = std::string(facts.target.view());
    change.kind = Transition::change_mps;
    change.cordoned = node.unschedulable = true;
    change.pods[Component::mps] = {"old-mps"};
    add_pod("old-mps", Component::mps, now - hours(2));
    ran_for(Timer::draining, minutes(1));
  }
};

TEST_F(DisruptiveStep, C6_ADrainAsksForTheNodesConsumersFirst) {
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::draining);
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
}

TEST_F(DisruptiveStep, C6_AListingFromBeforeTheCordonProvesNothing) {
  list_consumers({});
  consumers["n1"].listed_at = now - seconds(5);
  ran = {{Timer::draining, seconds(3)}};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.plan.consumers_wanted, std::set<std::string>{"n1"});
}

TEST_F(DisruptiveStep, C6_ADrainWaitsForWorkloadsAndNamesThem) {
  list_consumers({"train-0"});
  blocked_by_pods = BlockedBy{kWaitingForWorkloads, "waits for team/train-0"};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(reasons(taken), Actions{"WaitingForWorkloads"});
  EXPECT_FALSE(taken.evicts);
}

TEST_F(DisruptiveStep, C6_UnderEvictItAsksForEvictions) {
  list_consumers({"train-0"});
  policy.rollout.workloads = WorkloadMode::evict;
  EXPECT_TRUE(take().evicts);
}

TEST_F(DisruptiveStep, C6_AnIdleNodeLosesDaemonAndGfdBeforeThePlugin) {
  list_consumers({});
  EXPECT_EQ(actions(take()), (Actions{"delete old-mps", "delete old-gfd"}));
}

TEST_F(DisruptiveStep, C6_ANodeThatStaysBusyIsUncordonedAndDeferred) {
  list_consumers({"train-0"});
  blocked_by_pods = BlockedBy{kWaitingForWorkloads, "waits for team/train-0"};
  ran_for(Timer::draining, hours(1));
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"out(WaitingForWorkloads) uncordon"});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_NE(patch.set_annotations.at(std::string(kDeferredAnnotation)).find("idleTimeout"), std::string::npos);
}

// The operator is restarted: the first look asks for the node's consumers, the second one decides.
TEST_F(DisruptiveStep, C6_AfterARestartTheIdleTimeoutGoesOnFromWhenThePodsWereListed) {
  blocked_by_pods = BlockedBy{kWaitingForWorkloads, "waits for team/train-0"};
  for (const auto& [listed_ago, expected] : std::vector<std::pair<Duration, Actions>>{
           {minutes(58), {}}, {hours(1), {"out(WaitingForWorkloads) uncordon"}}}) {
    change.listed = now - std::chrono::duration_cast<seconds>(listed_ago);
    ran.clear();
    timers.clear();
    first_look = true;
    const Step first = take();
    EXPECT_EQ(actions(first), Actions{});
    EXPECT_EQ(first.plan.consumers_wanted, std::set<std::string>{"n1"});
    for (const auto& [timer, since] : first.plan.timer_starts) timers[timer] = since;
    first_look = false;
    list_consumers({"train-0"});
    EXPECT_EQ(actions(take()), expected) << k8s::format_go_duration(listed_ago);
    consumers.clear();
  }
}

TEST_F(DisruptiveStep, C6_ANodeThatAPersonUncordonsIsGivenBackAndDeferred) {
  node.unschedulable = false;
  list_consumers({"train-0"});
  const Step taken = take();
  EXPECT_EQ(actions(taken), (Actions{"out(WaitingForWorkloads)", "event Uncordoned"}));
}

TEST_F(DisruptiveStep, C6_ATouchedNodeIsNeverGivenBack) {
  remove("old-gfd");
  list_consumers({"train-0"});
  ran_for(Timer::draining, hours(2));
  EXPECT_EQ(actions(take()), Actions{});
}

TEST_F(DisruptiveStep, C8_FirstPodsThatStillTerminateAreWaitedForUntilTheTimeIsOver) {
  for (const char* uid : {"old-mps", "old-gfd"}) pod(uid).meta.deletion_timestamp = now - seconds(5);
  EXPECT_EQ(actions(take()), Actions{});
  ran_for(Timer::verifying, minutes(10));
  EXPECT_EQ(actions(take()), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
}

TEST_F(DisruptiveStep, C9_ThePluginGoesLastOnceTheNewDaemonIsReady) {
  remove("old-mps");
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  EXPECT_EQ(actions(take()), Actions{}) << "the daemon is missing";
  add_pod("new-mps", Component::mps, now - seconds(5));
  EXPECT_EQ(actions(take()), Actions{"delete old-plugin"});
}

TEST_F(DisruptiveStep, C9_ADaemonThatNeverComesFailsTheNode) {
  remove("old-mps");
  remove("old-gfd");
  add_pod("new-gfd", Component::gfd, now - seconds(5));
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  EXPECT_EQ(actions(taken), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
}

TEST_F(NodeStep, C7_NewPodsThatAreOlderThanTheTextAreListed) {
  replace_all();
  shows_something_else();
  change.to = "v1-other";
  world.configmaps.apply([this] {
    ConfigMap edited = *world.configmaps.find(ObjectKey{"gpu-operator", "mps-config"});
    edited.data_changed = now - seconds(10);
    return edited;
  }());
  const Step taken = take();
  ASSERT_EQ(actions(taken), Actions{"into(Superseded)"});
}

TEST_F(NodeStep, C10_ANodeThatShowsItIsVerifiedAfterTheStatusLag) {
  replace_all();
  shows_target();
  settings.status_lag = seconds(12);
  EXPECT_EQ(actions(take()), Actions{}) << "at the first glance";
  ran_for(Timer::shown, seconds(12));
  const Step taken = take();
  EXPECT_EQ(taken.phase, Phase::verifying);
  EXPECT_EQ(actions(taken), Actions{"out(Verified)"});
  EXPECT_TRUE(taken.done);
}

// GFD counts the two GPUs of one model; the machine has had three. Its pods have read the text before the last edit and
// show it on all three: that is no surplus, and no reason to restart.
TEST_F(NodeStep, C10_ASupersededNodeOfTwoModelsIsHeldAgainstTheGpusInTheRecord) {
  replace_all();
  aim_at("version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 8}\n");
  facts.labeller = Labeller::us;
  facts.recorded_gpus = 3;
  facts.pods_ready = true;
  facts.verified.mismatch = "nvidia.com/gpu: capacity 12, expected 24";
  node.meta.labels.set("nvidia.com/gpu.count", "2");
  node.capacity[Interned("nvidia.com/gpu")] = node.allocatable[Interned("nvidia.com/gpu")] = 12;
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{"out(Verified)"});
  EXPECT_EQ(reasons(taken), Actions{});
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_EQ(patch.set_annotations.at(std::string(kRevisionAnnotation)), change.to) << "what its pods have read";
}

TEST_F(NodeStep, C11_ANodeThatDoesNotShowItFailsWhenItsTimeIsOver) {
  replace_all();
  shows_something_else();
  EXPECT_EQ(actions(take()), Actions{});
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  ASSERT_EQ(actions(taken), (Actions{"into(VerificationFailed)", "event VerificationFailed"}));
  const auto& patch = std::get<PatchNode>(taken.plan.actions.front().action);
  EXPECT_TRUE(parse_change(patch.set_annotations.at(std::string(kChangeAnnotation)))->failed);
}

TEST_F(NodeStep, C11_ANodeWithFewerDevicesIsDegradedAndNotFailed) {
  replace_all();
  shows_something_else();
  facts.verified.shortfall = true;
  ran_for(Timer::verifying, minutes(10));
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{"out(VerifiedDegraded)"});
  EXPECT_EQ(reasons(taken), Actions{"UnhealthyDevices"});
}

TEST_F(NodeStep, C12_ALabelThatDidNotReloadWithinTwoMinutesListsThePods) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  change.touched = true;
  shows_something_else();
  EXPECT_EQ(actions(take()), Actions{});
  ran_for(Timer::reloading, minutes(2));
  EXPECT_EQ(actions(take()), Actions{"into(ReloadFailed)"});
}

TEST_F(NodeStep, C3_AStopBacksNoNodeOutWhoseLabelIsWritten) {
  change.cause = ChangeCause::policy;
  change.pods.clear();
  shows_something_else();
  stop = Stop{"Paused", ""};
  const Step taken = take();
  EXPECT_EQ(actions(taken), Actions{});
  EXPECT_EQ(taken.phase, Phase::verifying);
}

TEST_F(NodeStep, AStoredTimeCountsAtAFirstLookOnly) {
  replace_all();
  shows_something_else();
  for (Pod& p : pods) p.meta.creation_timestamp = now - minutes(11);
  change.listed = now - minutes(12);
  EXPECT_EQ(actions(take()), Actions{}) << "the clock counts from now on";
}

}  // namespace
}  // namespace gso
