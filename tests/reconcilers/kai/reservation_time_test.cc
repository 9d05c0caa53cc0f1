// pod.reservation-gc: how long something must have held, how fast deletions go, what they are and what is said.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "reconcilers/model/kai_objects.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::reservation_time_test {
namespace {

using namespace std::chrono_literals;

TEST_F(ReservationGc, IsDueOnceItWasSeenOrphanedForTheGraceAndNotBefore) {
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"});
}

TEST(ReservationRules, StartsAfreshAfterWhatWasThereInBetween) {
  const auto expect = [](const char* rule, Duration then, const Change& in_between) {
    SCOPED_TRACE(rule);
    KaiCluster cluster;
    cluster.reservation("r", "g");
    cluster.replicas(2);
    cluster.binder_lease = {{}, true, "a", cluster.now - 1h};
    EXPECT_EQ(deleted(cluster.run(240s)), Names{});
    in_between(cluster);
    EXPECT_EQ(deleted(cluster.run(270s)), Names{});
    EXPECT_EQ(deleted(cluster.run(then)), Names{"r"});
  };
  expect("a consumer came and went", 60s, [](auto& c) {
    const ObjectKey consumer = c.consumer("p", "g").meta.key();
    c.apply();
    c.pods.erase(consumer);
  });
  expect("a BindRequest came and went", 60s, [](auto& c) {
    const ObjectKey request = c.request("p", "g", "Pending").meta.key();
    c.apply();
    c.requests.erase(request);
  });
  expect("the view was incomplete", 60s, [](auto& c) {
    c.world.kai.incomplete = "the watch of pods is down";
    EXPECT_EQ(deleted(c.run(30s)), Names{});
    c.world.kai.incomplete.clear();
  });
  expect("it is another pod of the same name", 60s, [](auto& c) { r(c).meta.uid = "uid-r-2"; });
  expect("the binder was restarted", 60s,
         [](auto& c) { c.binder().observed_generation = ++c.binder().meta.generation; });
  expect("the binder was created anew", 60s, [](auto& c) { c.binder().meta.uid = "uid-binder-2"; });
  expect("the binder was unavailable, by a condition without a time", 30s, [](auto& c) {
    c.binder().available_since.reset();
    c.binder().available_condition = false;
    EXPECT_EQ(deleted(c.run(60s)), Names{});
    c.binder().available_condition = true;
  });
  expect("one of the binder's two pods was away", 30s, [](auto& c) {
    c.binder().available = 1;
    EXPECT_EQ(deleted(c.run(60s)), Names{});
    c.binder().available = 2;
  });
  expect("kai-config is gone", 60s, [](auto& c) { c.config_.reset(); });
  // The Lease may be read a while after its holder has changed, with a time of the new holder's clock.
  expect("the binder has another leader", 120s, [](auto& c) { c.binder_lease.holder = "b"; });
}

TEST_F(ReservationGc, WaitsOneGraceAfterACrashOfTheBinderNotTwo) {
  cluster.binder().available_since = cluster.now;
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"});
}

TEST_F(ReservationGc, WaitsUntilTheLeaseWasReadAndReadsItAgain) {
  cluster.replicas(2);
  cluster.lookups_answered = false;
  LookupResults& lookups = cluster.world.kai.lookups;
  lookups.groups["g"] = {one_look(cluster.now), {}};
  const Plan unread = cluster.credited();
  EXPECT_EQ(deleted(unread), Names{});
  EXPECT_TRUE(unread.kai_wanted.binder_lease);
  lookups.binder_lease.emplace().at = one_look(cluster.now - 60s);
  const Plan due = cluster.credited();
  EXPECT_EQ(deleted(due), Names{"r"});
  EXPECT_TRUE(due.kai_wanted.binder_lease);
  lookups.binder_lease->at = one_look(cluster.now - 120s);
  EXPECT_EQ(deleted(cluster.credited()), Names{});
}

TEST_F(ReservationGc, TakesOnePerNodeInAMinute) {
  cluster.reservation("s", "h");
  EXPECT_EQ(deleted(cluster.run(300s)), Names{"r"});
  cluster.pods.erase({"kai-resource-reservation", "r"});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{});
  EXPECT_EQ(deleted(cluster.run(60s)), Names{"s"});
}

// Whatever keeps the server, or the last look, from one deletion must not keep the others of its node.
TEST_F(ReservationGc, TriesOneThatIsRefusedAgainAndAgainAfterTheOthersOfItsNode) {
  cluster.reservation("s", "h", "n1", "GPU-b");
  LookupResults::Refusal& first = cluster.world.kai.lookups.refusals["uid-r"];
  first = {one_look(cluster.now - 1min), 2};
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"}) << "that may pass";
  first.count = 3;
  EXPECT_EQ(deleted(cluster.credited()), Names{"s"});
  cluster.world.kai.lookups.refusals["uid-s"] = {one_look(cluster.now), 3};
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"}) << "both are refused: in turn";
}

TEST(ReservationRules, TakesNoMoreInOnePassThanItMay) {
  KaiCluster cluster;
  cluster.settings.kai.deletions_per_pass = 2;
  for (const char* node : {"a", "b", "c"}) {
    cluster.nodes[node] = cluster.nodes.at("n1");
    cluster.nodes[node].meta.name = node;
    cluster.reservation(fmt::format("r-{}", node), fmt::format("g-{}", node), node);
  }
  const Plan plan = cluster.credited();
  EXPECT_EQ(deleted(plan).size(), 2u);
  EXPECT_TRUE(plan.requeue_after.has_value());
}

TEST_F(ReservationGc, ListsMultiDeviceConsumersAnewInEverySweep) {
  cluster.run(270s);
  cluster.multi_consumer("p", {"g"});  // In no watch.
  EXPECT_EQ(deleted(cluster.run(90s)), Names{});
}

TEST_F(ReservationGc, ConcludesNothingFromOldLists) {
  cluster.run(120s);
  cluster.lookups_answered = false;  // Listing fails from now on.
  EXPECT_EQ(deleted(cluster.run(600s)), Names{});
  EXPECT_TRUE(reasons(cluster.pass(), "r").contains("KAILooking"));
}

// The runtime forgets answers that nobody asks for: a proof must be renewed while it is held, or the grace never ends.
TEST_F(ReservationGc, TheProofOfADuplicateIsAskedForAnewEachSweepAndDoesNotCountWhenItIsOld) {
  cluster.reservation("s", "g", "n1", "GPU-b");
  cluster.devices(cluster.consumer("p", "g"), "GPU-b");
  const Duration sweep = cluster.settings.kai.sweep;
  for (int pass = 0; pass < 8; ++pass) {
    EXPECT_EQ(deleted(cluster.run(30s)), Names{});
    const auto& answers = cluster.world.kai.lookups.config_maps;
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_LE(one_look(cluster.now) - answers.begin()->second.at, sweep) << "pass " << pass;
  }
  cluster.lookups_answered = false;  // Reading fails from now on.
  EXPECT_EQ(deleted(cluster.run(5 * sweep)), Names{});
  cluster.lookups_answered = true;
  EXPECT_EQ(deleted(cluster.run(400s)), Names{"r"});
}

TEST(ReservationRules, ADeletionHasUidAndVersionAndEndsAtOnceWhatHasNoKubelet) {
  const struct {
    const char* node;
    bool terminating;
    const char* event_about;
  } rows[] = {{"n1", false, "Node"}, {"gone", false, "Pod"}, {"gone", true, "Pod"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.node);
    KaiCluster cluster;
    KaiPod& pod = cluster.reservation("r", "g", row.node);
    if (row.terminating) pod.meta.deletion_timestamp = cluster.now - 20min;
    const Plan plan = cluster.credited();
    EXPECT_EQ(deleted(plan), Names{"r"});
    Names about;
    for (const PlannedAction& planned : plan.actions) {
      const auto* event = std::get_if<RecordEvent>(&planned.action);
      if (event != nullptr && event->why.code == "NoConsumers") about.insert(event->regarding.kind);
      const auto* action = std::get_if<DeletePod>(&planned.action);
      if (action == nullptr) continue;
      EXPECT_EQ(action->uid, "uid-r");
      EXPECT_EQ(action->resource_version, "7");
      const std::optional<std::int64_t> at_once = 0;
      EXPECT_EQ(action->grace_period_seconds, cluster.nodes.contains(row.node) ? std::nullopt : at_once);
      EXPECT_TRUE(planned.disruptive);
      EXPECT_NE(planned.why.message.find(std::string("GPU-a of node ") + row.node), std::string::npos);
    }
    EXPECT_EQ(about, Names{row.event_about});
  }
}

TEST(ReservationRules, ExplainsEveryReservation) {
  KaiCluster cluster;
  cluster.settings.kai.explain_all = true;
  cluster.reservation("orphan", "a");
  cluster.reservation("bound", "b");
  cluster.consumer("p", "b");
  cluster.reservation("binding", "c");
  cluster.request("q", "c", "Pending");
  const Plan plan = cluster.pass();
  for (const char* name : {"orphan", "bound", "binding"}) EXPECT_FALSE(reasons(plan, name).empty()) << name;
  EXPECT_NE(message(plan, "bound", "KAIConsumersAlive").find("team/p"), std::string::npos);
  EXPECT_NE(message(plan, "binding", "KAIBindInProgress").find("BindRequest team/q"), std::string::npos);
}

TEST_F(ReservationGc, IsSilentWhereEverythingIsInOrder) {
  cluster.consumer("p", "g");
  cluster.request("p", "g", "Succeeded");
  const Plan plan = cluster.run(600s);
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_TRUE(plan.findings.empty());
  EXPECT_TRUE(plan.timers.empty());
  EXPECT_TRUE(plan.kai_wanted.empty());
  EXPECT_EQ(plan.requeue_after, Duration(5min));  // Pods that wait are listed then.
}

// What is not known keeps it; look-ups are answered by hand.
class Doubts : public ReservationGc {
 protected:
  Doubts() { cluster.lookups_answered = false; }
  void listed(std::vector<KaiPod> pods = {}) { lookups().groups["g"] = {one_look(cluster.now), std::move(pods)}; }
  LookupResults& lookups() { return cluster.world.kai.lookups; }
  [[nodiscard]] MonoTime before(Duration age) const { return one_look(cluster.now) - age; }
};

TEST_F(Doubts, APodThatCameBackUnderItsNameCountsAsTheNewOne) {
  KaiPod again = cluster.consumer("p", "g");
  again.meta.uid = "uid-p-2";
  cluster.pods.at(again.meta.key()).phase = Interned("Succeeded");
  listed({again});
  EXPECT_EQ(deleted(cluster.credited()), Names{});
  listed({cluster.pods.at(again.meta.key())});
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"});
}

TEST_F(Doubts, ASucceededRequestKeepsItUntilItsPodWasLookedUp) {
  const ObjectKey pod{"team", cluster.request("p", "g", "Succeeded").pod_name};
  listed();
  const Plan unknown = cluster.credited();
  EXPECT_EQ(deleted(unknown), Names{});
  EXPECT_TRUE(unknown.kai_wanted.pods.contains(pod));
  for (const int sweeps : {0, 1, 4}) {  // An old answer is asked again, and one that is older proves nothing.
    lookups().pods[pod] = LookupResults::Pod{before(sweeps * cluster.settings.kai.sweep), false};
    const Plan due = cluster.credited();
    EXPECT_EQ(deleted(due), sweeps == 4 ? Names{} : Names{"r"}) << sweeps;
    EXPECT_EQ(due.kai_wanted.pods.contains(pod), sweeps > 0) << sweeps;
  }
}

// Such a list reads every pod of the cluster.
TEST_F(Doubts, AGroupThatABindRequestKeepsIsNotListed) {
  cluster.request("p", "g", "Succeeded");
  const Plan first = cluster.credited();
  EXPECT_TRUE(first.kai_wanted.groups.empty());
  EXPECT_TRUE(first.kai_wanted.pods.contains({"team", "p"}));
  lookups().pods[{"team", "p"}] = {before(cluster.settings.kai.sweep), true};
  const Plan due = cluster.credited();
  EXPECT_TRUE(due.kai_wanted.groups.empty());
  EXPECT_TRUE(due.kai_wanted.pods.contains({"team", "p"})) << "whether it has ended meanwhile";
  EXPECT_EQ(deleted(due), Names{});
}

TEST_F(Doubts, AGroupThatABindRequestKeepsIsListedWhereItsConsumersMayBeInDanger) {
  const std::vector<std::function<void(KaiPod&)>> rows{
      [](KaiPod& pod) { pod.phase = Interned("Failed"); },
      [](KaiPod& pod) { pod.meta.deletion_timestamp = pod.meta.creation_timestamp; },
      [](KaiPod& pod) { pod.meta.annotations.erase(kai::kDeviceAnnotation); },
      [](KaiPod& pod) { pod.node_name = Interned("n2"); },
  };
  cluster.request("p", "g", "Succeeded");
  const KaiPod sound = r(cluster);
  for (const auto& change : rows) {
    r(cluster) = sound;
    change(r(cluster));
    EXPECT_TRUE(cluster.credited().kai_wanted.groups.contains("g"));
  }
}

TEST_F(Doubts, AnAnswerThatNobodyLivesIsNotLeftStanding) {
  cluster.request("p", "g", "Succeeded");
  lookups().pods[{"team", "p"}] = {one_look(cluster.now), true};
  lookups().groups["g"] = {before(cluster.settings.kai.sweep), {}};
  EXPECT_TRUE(cluster.credited().kai_wanted.groups.contains("g"));
}

TEST_F(Doubts, AnAnswerThatAloneKeepsItIsAskedForAgain) {
  listed({cluster.multi_consumer("p", {"g"})});
  EXPECT_FALSE(cluster.credited().kai_wanted.groups.contains("g"));
  lookups().groups["g"].at = before(cluster.settings.kai.sweep);
  EXPECT_TRUE(cluster.credited().kai_wanted.groups.contains("g"));
}

TEST(ReservationRules, GivesAReservationTimeToNameItsGpu) {
  for (const bool young : {false, true}) {
    KaiCluster cluster;
    KaiPod& pod = cluster.reservation("r", "g", "n1", "");
    if (young) pod.meta.creation_timestamp = cluster.now - 1min;
    cluster.consumer("p", "g");
    const Plan plan = cluster.credited();
    EXPECT_EQ(reasons(plan, "r").contains("KAIReservationUnannotated"), !young);
    EXPECT_EQ(deleted(plan), Names{});
  }
}

}  // namespace
}  // namespace gso::test::reservation_time_test
