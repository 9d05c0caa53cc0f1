// pod.reservation-gc: how long something must have held, the state of KAI itself, and how fast deletions go.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/kai/judgement.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/kai/reservation_rows.h"

namespace gso::test::reservation_time_test {
namespace {

using namespace std::chrono_literals;

class TimeAndKai : public ::testing::TestWithParam<Row> {};
TEST_P(TimeAndKai, DecidesWhatIsDeleted) {
  expect_row(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, TimeAndKai,
    ::testing::Values(
        Row{"a_young_one_stays", [](KaiCluster& c) { r(c).meta.creation_timestamp = c.now - 299s; }, {}, "KAIOrphan"},
        Row{"a_long_allocation_timeout_lengthens_the_grace",
            [](KaiCluster& c) {
              c.config().allocation_timeout = 900;
              r(c).meta.creation_timestamp = c.now - 1000s;
            },
            {}},
        Row{"a_long_volume_binding_lengthens_the_grace",
            [](KaiCluster& c) {
              c.config().volume_binding_timeout = 900;
              r(c).meta.creation_timestamp = c.now - 900s;
            },
            {}},
        Row{"an_unavailable_binder_holds",
            [](KaiCluster& c) { c.binder().available_condition = false; },
            {},
            "KAIOrphan"},
        Row{"a_binder_scaled_to_zero_holds", [](KaiCluster& c) { c.binder().replicas = c.binder().available = 0; }, {}},
        Row{"a_missing_binder_holds", [](KaiCluster& c) { c.binder_.reset(); }, {}},
        Row{"a_binder_that_is_being_deleted_holds",
            [](KaiCluster& c) { c.binder().meta.deletion_timestamp = c.now - 1s; },
            {}},
        Row{"a_binder_with_one_of_two_replicas_holds",
            [](KaiCluster& c) { c.binder().replicas = c.binder().updated = 2; },
            {}},
        Row{"a_binder_in_a_rollout_holds", [](KaiCluster& c) { c.binder().updated = 0; }, {}},
        Row{"a_binder_whose_change_was_not_seen_holds", [](KaiCluster& c) { ++c.binder().meta.generation; }, {}},
        Row{"a_binder_available_for_a_minute_holds",
            [](KaiCluster& c) { c.binder().available_since = c.now - 1min; },
            {}},
        Row{"sharing_switched_off_does_not_stop_it", [](KaiCluster& c) { c.config().gpu_sharing = false; }, {"r"}},
        Row{"a_kai_that_is_gone_does_not_stop_it", [](KaiCluster& c) { c.without_kai(); }, {"r"}},
        Row{"a_missing_config_does_not_stop_it", [](KaiCluster& c) { c.config_.reset(); }, {"r"}},
        Row{"one_api_without_the_other_holds", [](KaiCluster& c) { c.world.kai.bind_requests_served = false; }, {}},
        Row{"the_other_api_without_the_one_holds", [](KaiCluster& c) { c.world.kai.configs_served = false; }, {}},
        Row{"an_incomplete_view_holds", [](KaiCluster& c) { c.world.kai.incomplete = "pods were refused"; }, {}},
        Row{"mode_observe_only_says_it",
            [](KaiCluster& c) { c.settings.kai.gc_mode = KaiGcMode::observe; },
            {},
            "KAIWouldDelete"},
        Row{"mode_off_says_nothing", [](KaiCluster& c) { c.settings.kai.gc_mode = KaiGcMode::off; }, {}},
        Row{"a_schema_that_we_do_not_know_is_only_observed",
            [](KaiCluster& c) {
              c.world.kai.schemas_known = true;
              KaiSchema schema;
              schema.meta.name = kai::kConfigCrd;
              c.world.kai.schemas.apply(schema);
            },
            {},
            "KAIWouldDelete"},
        Row{"a_schema_that_manifests_carry_counts_too",
            [](KaiCluster& c) {
              KaiSchema schema;
              schema.meta.name = kai::kBindRequestCrd;
              c.world.kai.schemas.apply(schema);
            },
            {},
            "KAIWouldDelete"},
        Row{"a_held_node_stays",
            [](KaiCluster& c) { c.nodes.at("n1").meta.annotations.set(kHoldAnnotation, "true"); },
            {},
            "KAIHeld"},
        Row{"a_pod_marked_do_not_disrupt_stays",
            [](KaiCluster& c) { r(c).meta.annotations.set(kDoNotDisruptAnnotation, "true"); },
            {},
            "KAIHeld"},
        Row{"a_deletion_under_way_is_not_repeated",
            [](KaiCluster& c) { r(c).meta.deletion_timestamp = c.now - 20min; },
            {},
            "KAIDeletionUnderWay"},
        Row{"a_failed_reservation_without_consumers_goes",
            [](KaiCluster& c) { r(c).phase = Interned("Failed"); },
            {"r"}}),
    row_name);

TEST(ReservationGc, IsDueOnceItWasSeenOrphanedForTheGraceAndNotBefore) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"});
}

TEST(ReservationGc, StartsAfreshAfterWhatWasThereInBetween) {
  struct Case {
    const char* name;
    void (*in_between)(KaiCluster& cluster);  // Between two passes.
  };
  const Case cases[] = {
      {"a consumer came and went",
       [](KaiCluster& cluster) {
         const ObjectKey consumer = cluster.consumer("p", "g").meta.key();
         cluster.apply();
         cluster.pods.erase(consumer);
       }},
      {"a BindRequest came and went",
       [](KaiCluster& cluster) {
         const ObjectKey request = cluster.request("p", "g", "Pending").meta.key();
         cluster.apply();
         cluster.requests.erase(request);
       }},
      {"the view was incomplete",
       [](KaiCluster& cluster) {
         cluster.world.kai.incomplete = "the watch of pods is down";
         EXPECT_EQ(deleted(cluster.run(30s)), Names{});
         cluster.world.kai.incomplete.clear();
       }},
      {"it is another pod of the same name", [](KaiCluster& cluster) { r(cluster).meta.uid = "uid-r-2"; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    KaiCluster cluster;
    cluster.reservation("r", "g");
    EXPECT_EQ(deleted(cluster.run(240s)), Names{});
    c.in_between(cluster);
    EXPECT_EQ(deleted(cluster.run(240s)), Names{});
    EXPECT_EQ(deleted(cluster.run(90s)), Names{"r"});
  }
}

TEST(ReservationGc, WaitsForTheBinderToBeQuietAgainAfterItsRestart) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  ++cluster.binder().meta.generation;
  ++cluster.binder().observed_generation;
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(60s)), Names{"r"});
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

// The Lease may be read a while after its holder has changed, with a time of the new holder's clock.
TEST(ReservationGc, StartsAfreshWhenTheBindersLeaderIsAnother) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.binder().replicas = cluster.binder().updated = cluster.binder().available = 2;
  cluster.binder_lease = {{}, true, "a", cluster.now - 1h};
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  cluster.binder_lease.holder = "b";
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(120s)), Names{"r"});
}

TEST(ReservationGc, WaitsForABinderThatWasCreatedAnew) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  cluster.binder().meta.uid = "uid-binder-2";
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(60s)), Names{"r"});
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

TEST(ReservationGc, WaitsAfterKaiConfigHasGoneOrChanged) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  cluster.config_.reset();
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(60s)), Names{"r"});
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
