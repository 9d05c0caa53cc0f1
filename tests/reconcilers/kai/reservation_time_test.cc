// pod.reservation-gc: how long something must have held, the state of KAI itself, and how fast deletions go.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::reservation_time_test {
namespace {

using namespace std::chrono_literals;

TEST(ReservationGc, DeletesNoneThatIsYoungOrHeld) {
  const Rules rules;
  rules.stays("young", "KAIOrphan", [](auto& c) { r(c).meta.creation_timestamp = c.now - 299s; });
  rules.stays("a long allocation timeout lengthens the grace", [](auto& c) {
    c.config().allocation_timeout = 900;
    r(c).meta.creation_timestamp = c.now - 1000s;
  });
  rules.stays("a long volume binding lengthens the grace", [](auto& c) {
    c.config().volume_binding_timeout = 900;
    r(c).meta.creation_timestamp = c.now - 900s;
  });
  rules.stays("on a held node", "KAIHeld",
              [](auto& c) { c.nodes.at("n1").meta.annotations.set(kHoldAnnotation, "true"); });
  rules.stays("marked do-not-disrupt", "KAIHeld",
              [](auto& c) { r(c).meta.annotations.set(kDoNotDisruptAnnotation, "true"); });
  rules.stays("being deleted", "KAIDeletionUnderWay", [](auto& c) { r(c).meta.deletion_timestamp = c.now - 20min; });
  rules.goes("failed, without consumers", [](auto& c) { r(c).phase = Interned("Failed"); });
}

TEST(ReservationGc, DeletesNoneWhileTheBinderIsNotSound) {
  const Rules rules;
  rules.stays("unavailable", "KAIOrphan", [](auto& c) { c.binder().available_condition = false; });
  rules.stays("scaled to zero", [](auto& c) { c.binder().replicas = c.binder().available = 0; });
  rules.stays("missing", [](auto& c) { c.binder_.reset(); });
  rules.stays("being deleted", [](auto& c) { c.binder().meta.deletion_timestamp = c.now - 1s; });
  rules.stays("with one of two replicas", [](auto& c) { c.binder().replicas = c.binder().updated = 2; });
  rules.stays("in a rollout", [](auto& c) { c.binder().updated = 0; });
  rules.stays("with a change that was not seen", [](auto& c) { ++c.binder().meta.generation; });
  rules.stays("available for a minute", [](auto& c) { c.binder().available_since = c.now - 1min; });
}

TEST(ReservationGc, FollowsTheStateOfKaiAndTheMode) {
  const Rules rules;
  rules.goes("sharing is switched off", [](auto& c) { c.config().gpu_sharing = false; });
  rules.goes("KAI is gone", [](auto& c) { c.without_kai(); });
  rules.goes("the config is missing", [](auto& c) { c.config_.reset(); });
  rules.stays("one API without the other", [](auto& c) { c.world.kai.bind_requests_served = false; });
  rules.stays("the other API without the one", [](auto& c) { c.world.kai.configs_served = false; });
  rules.stays("the view is incomplete", [](auto& c) { c.world.kai.incomplete = "pods were refused"; });
  rules.stays("Observe", "KAIWouldDelete", [](auto& c) { c.settings.kai.gc_mode = KaiGcMode::observe; });
  rules.stays("Off", [](auto& c) { c.settings.kai.gc_mode = KaiGcMode::off; });
  for (const std::string_view crd : {kai::kConfigCrd, kai::kBindRequestCrd}) {
    rules.stays("a schema that is not known", "KAIWouldDelete", [crd](auto& c) {
      c.world.kai.schemas_known = crd == kai::kConfigCrd;  // Else manifests carry it.
      KaiSchema schema;
      schema.meta.name = crd;
      c.world.kai.schemas.apply(schema);
    });
  }
}

TEST(ReservationGc, IsDueOnceItWasSeenOrphanedForTheGraceAndNotBefore) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"});
}

TEST(ReservationGc, StartsAfreshAfterWhatWasThereInBetween) {
  const struct {
    const char* name;
    Change in_between;  // Two passes.
    Duration then = 60s;
  } rows[] = {
      {"a consumer came and went",
       [](auto& c) {
         const ObjectKey consumer = c.consumer("p", "g").meta.key();
         c.apply();
         c.pods.erase(consumer);
       }},
      {"a BindRequest came and went",
       [](auto& c) {
         const ObjectKey request = c.request("p", "g", "Pending").meta.key();
         c.apply();
         c.requests.erase(request);
       }},
      {"the view was incomplete",
       [](auto& c) {
         c.world.kai.incomplete = "the watch of pods is down";
         EXPECT_EQ(deleted(c.run(30s)), Names{});
         c.world.kai.incomplete.clear();
       }},
      {"it is another pod of the same name", [](auto& c) { r(c).meta.uid = "uid-r-2"; }},
      {"the binder was restarted",
       [](auto& c) {
         ++c.binder().meta.generation;
         ++c.binder().observed_generation;
       }},
      {"the binder was created anew", [](auto& c) { c.binder().meta.uid = "uid-binder-2"; }},
      {"kai-config is gone", [](auto& c) { c.config_.reset(); }},
      // The Lease may be read a while after its holder has changed, with a time of the new holder's clock.
      {"the binder has another leader", [](auto& c) { c.binder_lease.holder = "b"; }, 120s},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    KaiCluster cluster;
    cluster.reservation("r", "g");
    cluster.binder().replicas = cluster.binder().updated = cluster.binder().available = 2;
    cluster.binder_lease = {{}, true, "a", cluster.now - 1h};
    EXPECT_EQ(deleted(cluster.run(240s)), Names{});
    row.in_between(cluster);
    EXPECT_EQ(deleted(cluster.run(270s)), Names{});
    EXPECT_EQ(deleted(cluster.run(row.then)), Names{"r"});
  }
}

TEST(ReservationGc, WaitsOneGraceAfterACrashOfTheBinderNotTwo) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.binder().available_since = cluster.now;
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"});
}

TEST(ReservationGc, CountsNoTimeInWhichTheBinderWasNotSound) {
  using Change = void (*)(Deployment&);
  const struct {
    const char* name;
    Change change;
    Change back;
  } rows[] = {
      {"unavailable, with a condition that has no time",
       [](Deployment& binder) {
         binder.available_since.reset();
         binder.available_condition = false;
       },
       [](Deployment& binder) { binder.available_condition = true; }},
      {"one of its two pods away", [](Deployment& binder) { binder.available = 1; },
       [](Deployment& binder) { binder.available = 2; }},
  };
  for (const auto& row : rows) {
    KaiCluster cluster;
    cluster.reservation("r", "g");
    cluster.binder().replicas = cluster.binder().updated = cluster.binder().available = 2;
    EXPECT_EQ(deleted(cluster.run(270s)), Names{}) << row.name;
    row.change(cluster.binder());
    EXPECT_EQ(deleted(cluster.run(60s)), Names{}) << row.name;
    row.back(cluster.binder());
    EXPECT_EQ(deleted(cluster.run(270s)), Names{}) << row.name;
    EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"}) << row.name;
  }
}

// Its startup synchronises every group: nothing is concluded from what is there in between.
TEST(ReservationGc, WaitsForABinderOfSeveralReplicasToHaveKeptItsLeader) {
  struct {
    const char* name;
    std::int64_t replicas;
    LookupResults::Lease lease;
    bool deletes;
  } const rows[] = {
      {"one replica has none", 1, {{}, true, "b", KaiCluster().now - 1min}, true},
      {"no Lease", 2, {}, true},
      {"an old leader", 2, {{}, true, "b", KaiCluster().now - 1h}, true},
      {"a new leader", 2, {{}, true, "b", KaiCluster().now - 299s}, false},
      {"no leader", 2, {{}, true, "", KaiCluster().now - 1h}, false},
  };
  for (const auto& row : rows) {
    KaiCluster cluster;
    cluster.reservation("r", "g");
    cluster.binder().replicas = cluster.binder().updated = cluster.binder().available = row.replicas;
    cluster.binder_lease = row.lease;
    EXPECT_EQ(deleted(cluster.credited()), row.deletes ? Names{"r"} : Names{}) << row.name;
  }
}

TEST(ReservationGc, WaitsUntilTheLeaseWasReadAndReadsItAgain) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.binder().replicas = cluster.binder().updated = cluster.binder().available = 2;
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

TEST(ReservationGc, TakesOnePerNodeInAMinute) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.reservation("s", "h");
  EXPECT_EQ(deleted(cluster.run(300s)), Names{"r"});
  cluster.pods.erase({"kai-resource-reservation", "r"});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{});
  EXPECT_EQ(deleted(cluster.run(60s)), Names{"s"});
}

// Whatever keeps the server, or the last look, from one deletion must not keep the others of its node.
TEST(ReservationGc, TriesOneThatIsRefusedAgainAndAgainAfterTheOthersOfItsNode) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.reservation("s", "h", "n1", "GPU-b");
  LookupResults::Refusal& first = cluster.world.kai.lookups.refusals["uid-r"];
  first = {one_look(cluster.now - 1min), 2};
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"}) << "that may pass";
  first.count = 3;
  EXPECT_EQ(deleted(cluster.credited()), Names{"s"});
  cluster.world.kai.lookups.refusals["uid-s"] = {one_look(cluster.now), 3};
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"}) << "both are refused: in turn";
}

TEST(ReservationGc, TakesNoMoreInOnePassThanItMay) {
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

}  // namespace
}  // namespace gso::test::reservation_time_test
