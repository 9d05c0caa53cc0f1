// Notes about nodes that are in use: they last for a while, and are renewed when they have expired.
#include <gtest/gtest.h>

#include <string>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::busy_nodes_test {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<FleetModel> fleet_of(int nodes, const std::string& rollout) {
  auto fleet = std::make_unique<FleetModel>(spec_of(nodes, "mps-4"));
  free_cluster_budget(*fleet);
  EXPECT_TRUE(fleet->settle());
  fleet->policy(rollout_of(rollout));
  EXPECT_TRUE(fleet->settle());
  return fleet;
}

// The node has had its turn for mps-8.
void defer(FleetModel& fleet, const std::string& node) {
  const std::string target = ProfileCache().compile(profile_text("mps-8"))->revision;
  fleet.annotate(node, kDeferredAnnotation, print_deferral({target, fleet.now, Deferral::By::idle_timeout, ""}));
}

std::vector<TimerKey> running(const FleetModel& fleet, Timer timer) {
  std::vector<TimerKey> out;
  for (const auto& [key, since] : fleet.timers)
    if (key.timer == timer) out.push_back(key);
  return out;
}

// Two passes while the listings are fresh, after every such timer expired before the first pass. Returns the timers.
void expect_no_pass_at_once(FleetModel& fleet, Timer timer, Duration lifetime, std::vector<TimerKey>& notes) {
  notes = running(fleet, timer);
  ASSERT_FALSE(notes.empty());
  fleet.now += std::chrono::duration_cast<WallTime::duration>(lifetime);
  for (auto& [name, listing] : fleet.consumers) listing.listed_at = one_look(fleet.now);
  for (int pass = 1; pass <= 2; ++pass) {
    const Plan plan = fleet.plan();
    ASSERT_TRUE(plan.requeue_after.has_value()) << pass;
    EXPECT_GE(*plan.requeue_after, 1s) << pass;
  }
}

TEST(BusyNodes, ANoteThatHasRunOutStartsAnewAndAsksForNoPassAtOnce) {
  const auto fleet = fleet_of(6, "maxUnavailable: 4, maxUnavailablePerGroup: 4, canary: {nodesPerGroup: 0}");
  for (const auto& name : {"n01", "n02", "n03", "n04", "n05", "n06"})
    fleet->use(name, std::string("job-") + name, "nvidia.com/gpu", 1);
  fleet->edit("any", "mps-8");
  tick(*fleet, 30);
  std::vector<TimerKey> notes;
  expect_no_pass_at_once(*fleet, Timer::busy, 2min, notes);
  for (const TimerKey& key : notes) {
    ASSERT_TRUE(fleet->timers.contains(key)) << to_string(key);
    EXPECT_EQ(fleet->timers.at(key), fleet->now) << to_string(key);
  }
}

// 150 nodes have had their turn, and each look at one keeps the only slot. All notes about them never last at once.
TEST(BusyNodes, StartAlthoughMoreNodesAreDeferredThanCanBeLookedAt) {
  const auto fleet = fleet_of(151, "maxUnavailable: 1, canary: {nodesPerGroup: 0}");
  for (const NodeSpec& node : alike_nodes(151)) {
    fleet->use(node.name, "job-" + node.name, "nvidia.com/gpu", 1);
    if (node.name != "n00151") defer(*fleet, node.name);
  }
  fleet->edit("any", "mps-8");
  for (int second = 0; second < 240 && !fleet->node("n00151").unschedulable; ++second) fleet->tick();
  EXPECT_TRUE(fleet->node("n00151").unschedulable);
}

// Such a node needs no slot, so that it starts before others.
TEST(BusyNodes, ADeferredNodeThatServesNothingIsNotCordonedAgainForThePodsThatAreLeft) {
  const auto fleet = fleet_of(3, "maxUnavailable: 2, canary: {nodesPerGroup: 0}");
  fleet->use("n01", "job", "nvidia.com/gpu", 1);
  defer(*fleet, "n01");
  fleet->break_device("n01", 2);
  fleet->edit("any", "mps-8");
  for (int second = 0; second < 300; ++second) {
    fleet->tick();
    ASSERT_FALSE(fleet->node("n01").unschedulable) << second;
  }
  EXPECT_EQ(fleet->annotation_of("n01", kChangeAnnotation), "");
  fleet->consumers["n01"].pods.clear();
  tick(*fleet, 180);
  EXPECT_NE(fleet->annotation_of("n01", kChangeAnnotation), "") << "it is idle";
}

// Anybody who may create pods can make the pods of one node more than can be kept, or unreadable; and a list can fail.
TEST(BusyNodes, WhoseWorkloadsAreUnknownKeepNoOtherNodeWaitingAndAreNamed) {
  const struct {
    const char* rollout;
    bool fails;  // The list; else it says that it is not all.
  } rows[] = {{"maxUnavailable: 1", true},
              {"maxUnavailable: 1", false},
              {"workloads: Evict, maxUnavailable: 1", true},
              {"workloads: Evict, maxUnavailable: 1", false},
              {"maxUnavailable: 2, canary: {nodesPerGroup: 0}", true}};
  constexpr const char* kRefused = "the list of its pods was refused";
  for (const auto& row : rows) {
    SCOPED_TRACE(fmt::format("{}, {}", row.rollout, row.fails ? "a list that fails" : "a list that is not all"));
    const auto fleet = fleet_of(4, row.rollout);
    (row.fails ? fleet->unlistable["n01"] : fleet->consumers["n01"].unknown) = kRefused;
    fleet->edit("any", "mps-8");
    std::string said;
    for (int second = 0; second < 900; ++second) {
      fleet->tick();
      for (const SharingRollout* rollout : in_order(fleet->world.rollouts))
        if (rollout->status_json.contains(kRefused)) said = rollout->status_json;
    }
    for (const char* name : {"n02", "n03", "n04"})
      EXPECT_NE(fleet->annotation_of(name, kRevisionAnnotation), "") << name << " waits for n01";
    EXPECT_EQ(fleet->annotation_of("n01", kRevisionAnnotation), "") << "its pods could be interrupted";
    EXPECT_TRUE(said.contains("\"WorkloadsUnknown\"")) << said;
    fleet->unlistable.clear();
    fleet->consumers["n01"].unknown.clear();
    EXPECT_TRUE(fleet->settle());
    EXPECT_NE(fleet->annotation_of("n01", kRevisionAnnotation), "");
  }
}

// Such a node starts only when it is idle, which nobody would know if it was not listed again.
TEST(BusyNodes, ADeferredNodeWhoseListHasFailedIsListedAgain) {
  const auto fleet = fleet_of(3, "maxUnavailable: 1, canary: {nodesPerGroup: 0}");
  defer(*fleet, "n01");
  fleet->unlistable["n01"] = "the list of its pods was refused";
  fleet->edit("any", "mps-8");
  tick(*fleet, 600);
  EXPECT_FALSE(fleet->node("n01").unschedulable);
  fleet->unlistable.clear();
  EXPECT_TRUE(fleet->settle());
  EXPECT_TRUE(fleet->node("n01").meta.annotations.get(kRevisionAnnotation).has_value());
}

// A pod requests six of eight replicas, and the edit leaves four.
TEST(BusyNodes, AnOldListOfPodsIsAskedForAgainAndNoPodIsChosenByIt) {
  const std::string budgets = "workloads: Evict, maxUnavailable: 2, canary: {nodesPerGroup: 0}";
  const auto fleet = fleet_of(2, "paused: true, " + budgets);
  fleet->use("n01", "wide", "nvidia.com/gpu", 6);
  fleet->edit("any", "mps-2");
  tick(*fleet, 5);
  const auto plan_with_list_of = [&](Duration age) {
    for (auto& [name, listing] : fleet->consumers)
      listing.listed_at = one_look(fleet->now - std::chrono::duration_cast<WallTime::duration>(age));
    return fleet->plan();
  };
  const Plan fresh = plan_with_list_of(50s);
  const auto said = said_with(fresh, kReplicasBelowUse);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].contains("n01: ") && said[0].contains("jobs/wide")) << said[0];
  EXPECT_FALSE(fresh.consumers_wanted.contains("n01"));
  const Plan old = plan_with_list_of(70s);
  EXPECT_EQ(said_with(old, kReplicasBelowUse), said) << "until the new list is there: a finding must not come and go";
  EXPECT_TRUE(old.consumers_wanted.contains("n01"));

  fleet->policy(rollout_of(budgets));
  const Plan unpaused = plan_with_list_of(70s);
  EXPECT_EQ(count_of<EvictPod>(unpaused) + disruptive_in(unpaused), 0);

  fleet->consumers["n01"].pods.clear();
  EXPECT_TRUE(said_with(plan_with_list_of(0s), kReplicasBelowUse).empty()) << "the new list";
}

TEST(GangPeers, ANodeThatHasWaitedForSlotsForItsJobAsksForNoPassAtOnce) {
  const auto fleet =
      fleet_of(4, "workloads: Evict, maxUnavailable: 2, maxUnavailablePerGroup: 2, canary: {nodesPerGroup: 0}");
  for (const auto& name : {"n01", "n02"}) fleet->use_by_job(name, std::string("train-") + name, "train", {});
  fleet->use("n03", "alone", "nvidia.com/gpu", 1);
  fleet->protect("alone", "Cannot evict pod as it would violate the pod's disruption budget.");
  fleet->edit("any", "mps-8");
  for (int i = 0; i < 200 && running(*fleet, Timer::gang_waits).empty(); ++i) fleet->tick();
  std::vector<TimerKey> notes;
  expect_no_pass_at_once(*fleet, Timer::gang_waits, 1min, notes);
}

}  // namespace
}  // namespace gso::test::busy_nodes_test
