// pod.reservation-gc, rule by rule. Each row of the tables differs from a reservation that is deleted by one thing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "reconcilers/kai/judgement.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/labels.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;
using Names = std::set<std::string>;

struct Row {
  const char* name;
  std::function<void(KaiCluster&)> change;
  Names deleted;
  const char* reason = "";  // Of a finding about "r"; empty: not looked at.
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class Rules : public ::testing::TestWithParam<Row> {};

TEST_P(Rules, DecideWhatIsDeleted) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  GetParam().change(cluster);
  const Plan plan = cluster.credited();
  EXPECT_EQ(deleted(plan), GetParam().deleted);
  if (*GetParam().reason != '\0') {
    EXPECT_TRUE(reasons(plan, "r").contains(GetParam().reason)) << ::testing::PrintToString(reasons(plan, "r"));
  }
}

std::string test_name(const ::testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

KaiPod& r(KaiCluster& cluster) {
  return cluster.pods.at({"kai-resource-reservation", "r"});
}

INSTANTIATE_TEST_SUITE_P(
    Identity, Rules,
    ::testing::Values(Row{"an_orphan_goes", [](KaiCluster&) {}, {"r"}},
                      Row{"another_namespace_stays",
                          [](KaiCluster& c) {
                            KaiPod pod = r(c);
                            c.pods.clear();
                            pod.meta.ns = Interned("team");
                            c.pods[pod.meta.key()] = pod;
                          },
                          {},
                          "KAILeftover"},
                      Row{"another_app_label_stays", [](KaiCluster& c) { r(c).meta.labels.set("app", "mine"); }, {}},
                      Row{"no_group_label_stays",
                          [](KaiCluster& c) { r(c).meta.labels.erase(kai::kGroupLabel); },
                          {},
                          "KAILostGroupLabel"},
                      Row{"the_name_does_not_matter",
                          [](KaiCluster& c) {
                            KaiPod pod = r(c);
                            c.pods.clear();
                            pod.meta.name = "whatever";
                            c.pods[pod.meta.key()] = pod;
                          },
                          {"whatever"}},
                      Row{"the_configured_namespace_and_label_count",
                          [](KaiCluster& c) {
                            c.config().reservation_namespace = "infra";
                            c.config().reservation_app_label = "holders";
                            KaiPod pod = r(c);
                            c.pods.clear();
                            pod.meta.ns = Interned("infra");
                            pod.meta.labels.set("app", "holders");
                            c.pods[pod.meta.key()] = pod;
                          },
                          {"r"}},
                      Row{"one_left_in_an_earlier_namespace_keeps_its_group",
                          [](KaiCluster& c) {
                            c.config().reservation_namespace = "infra";
                            KaiPod pod = r(c);
                            pod.meta.ns = Interned("infra");
                            pod.meta.name = "moved";
                            c.pods[pod.meta.key()] = pod;
                          },
                          {},  // To KAI the old one is a live consumer.
                          "KAILeftover"},
                      Row{"the_configured_label_alone_is_ours",
                          [](KaiCluster& c) {
                            c.config().reservation_app_label = "holders";
                            c.reservation("s", "h").meta.labels.set("app", "holders");
                          },
                          {"s"}}),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Consumers, Rules,
    ::testing::Values(
        Row{"a_running_consumer_keeps_it", [](KaiCluster& c) { c.consumer("p", "g"); }, {}},
        Row{"a_pending_consumer_keeps_it", [](KaiCluster& c) { c.consumer("p", "g").phase = Interned("Pending"); }, {}},
        Row{"an_unknown_consumer_keeps_it",
            [](KaiCluster& c) { c.consumer("p", "g").phase = Interned("Unknown"); },
            {}},
        Row{"a_consumer_without_a_phase_keeps_it", [](KaiCluster& c) { c.consumer("p", "g").phase = Interned(); }, {}},
        Row{"a_terminating_consumer_keeps_it",
            [](KaiCluster& c) { c.consumer("p", "g").meta.deletion_timestamp = c.now - 15min; },
            {}},
        Row{"a_succeeded_consumer_does_not",
            [](KaiCluster& c) { c.consumer("p", "g").phase = Interned("Succeeded"); },
            {"r"}},
        Row{"a_failed_consumer_does_not",
            [](KaiCluster& c) { c.consumer("p", "g").phase = Interned("Failed"); },
            {"r"}},
        Row{"another_group_does_not", [](KaiCluster& c) { c.consumer("p", "other"); }, {"r"}},
        Row{"any_namespace_counts",
            [](KaiCluster& c) {
              KaiPod pod = c.consumer("p", "g");
              c.pods.erase(pod.meta.key());
              pod.meta.ns = Interned("elsewhere");
              c.pods[pod.meta.key()] = pod;
            },
            {}},
        Row{"any_scheduler_counts", [](KaiCluster& c) { c.consumer("p", "g").scheduler_name = Interned("mine"); }, {}},
        Row{"a_multi_device_consumer_keeps_it",
            [](KaiCluster& c) { c.multi_consumer("p", {"g", "h"}); },
            {},
            "KAIConsumersAlive"},
        Row{"a_finished_multi_device_consumer_does_not",
            [](KaiCluster& c) { c.multi_consumer("p", {"g"}).phase = Interned("Succeeded"); },
            {"r"}},
        Row{"a_multi_device_consumer_that_is_not_listed_yet_keeps_it",
            [](KaiCluster& c) { c.lookups_answered = false; },
            {},
            "KAILooking"},
        Row{"a_stranger_in_the_reservation_namespace_keeps_it",
            [](KaiCluster& c) { c.reservation("s", "g").meta.labels.set("app", "mine"); },
            {}},
        Row{"an_unbound_consumer_without_intent_is_suspicious",
            [](KaiCluster& c) { c.consumer("p", "g", "").phase = Interned("Pending"); },
            {},
            "KAISuspectConsumer"},
        Row{"a_failed_reservation_with_a_live_consumer_alarms",
            [](KaiCluster& c) {
              r(c).phase = Interned("Failed");
              c.consumer("p", "g");
            },
            {},
            "KAIReservationFailed"},
        Row{"a_terminating_reservation_with_a_live_consumer_alarms",
            [](KaiCluster& c) {
              r(c).meta.deletion_timestamp = c.now;
              c.consumer("p", "g");
            },
            {},
            "KAIReservationTerminating"},
        Row{"a_reservation_without_annotation_alarms",
            [](KaiCluster& c) {
              r(c).meta.annotations.erase(kai::kDeviceAnnotation);
              c.consumer("p", "g");
            },
            {},
            "KAIReservationUnannotated"},
        Row{"consumers_on_another_node_alarm",
            [](KaiCluster& c) { c.consumer("p", "g", "n2"); },
            {},
            "KAIReservationElsewhere"}),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Intent, Rules,
    ::testing::Values(
        Row{"a_pending_request_keeps_it", [](KaiCluster& c) { c.request("p", "g", "Pending"); }, {}, "KAIBindInFlight"},
        Row{"a_request_without_a_phase_keeps_it",
            [](KaiCluster& c) { c.request("p", "g", ""); },
            {},
            "KAIBindInFlight"},
        Row{"a_phase_that_we_do_not_know_keeps_it", [](KaiCluster& c) { c.request("p", "g", "Odd"); }, {}},
        Row{"a_request_for_another_group_does_not", [](KaiCluster& c) { c.request("p", "other", "Pending"); }, {"r"}},
        Row{"a_failed_request_without_limit_does_not", [](KaiCluster& c) { c.request("p", "g", "Failed"); }, {"r"}},
        Row{"a_failed_request_with_attempts_left_keeps_it",
            [](KaiCluster& c) {
              BindRequest& request = c.request("p", "g", "Failed");
              request.backoff_limit = 3;
              request.failed_attempts = 2;
            },
            {}},
        Row{"a_failed_request_at_its_limit_does_not",
            [](KaiCluster& c) {
              BindRequest& request = c.request("p", "g", "Failed");
              request.backoff_limit = 3;
              request.failed_attempts = 3;
            },
            {"r"}},
        Row{"a_request_being_deleted_keeps_it",
            [](KaiCluster& c) { c.request("p", "g", "Failed").meta.deletion_timestamp = c.now; },
            {}},
        Row{"a_succeeded_request_whose_pod_is_gone_does_not",
            [](KaiCluster& c) { c.request("p", "g", "Succeeded"); },
            {"r"}},
        Row{"a_succeeded_request_whose_pod_lives_keeps_it",
            [](KaiCluster& c) {
              c.request("p", "g", "Succeeded");
              c.plain_pod("p");
            },
            {}},
        Row{"a_succeeded_request_whose_pod_has_ended_does_not",
            [](KaiCluster& c) {
              c.request("p", "g", "Succeeded");
              c.plain_pod("p").phase = Interned("Failed");
            },
            {"r"}}),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    TimeAndKai, Rules,
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
    test_name);

INSTANTIATE_TEST_SUITE_P(Duplicates, Rules,
                         ::testing::Values(Row{"two_orphans_of_one_group_on_one_node_go_one_at_a_time",
                                               [](KaiCluster& c) { c.reservation("s", "g"); },
                                               {"r"}},
                                           Row{"orphans_on_two_nodes_go_together",
                                               [](KaiCluster& c) { c.reservation("s", "h", "n2"); },
                                               {"r", "s"}},
                                           Row{"without_device_evidence_both_stay",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.consumer("p", "g");
                                               },
                                               {},
                                               "KAIDuplicateUnproven"},
                                           Row{"the_one_whose_gpu_nobody_uses_goes",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                               },
                                               {"r"}},
                                           Row{"evidence_in_cdi_form_counts",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"),
                                                           "k8s.device-plugin.nvidia.com/gpu=GPU-b");
                                               },
                                               {"r"}},
                                           Row{"an_index_is_no_evidence",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "1");
                                               },
                                               {}},
                                           Row{"one_consumer_without_evidence_keeps_both",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.consumer("q", "g");
                                               },
                                               {}},
                                           Row{"a_multi_device_consumer_may_use_it",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.devices(c.multi_consumer("q", {"g", "h"}), "GPU-a,GPU-c");
                                               },
                                               {}},
                                           Row{"the_reservation_in_use_must_stand",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b").phase = Interned("Pending");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                               },
                                               {}},
                                           Row{"a_gpu_that_no_reservation_of_the_group_holds_keeps_both",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-c");
                                               },
                                               {}},
                                           Row{"a_bind_in_flight_keeps_both",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.request("new", "g", "Pending");
                                               },
                                               {}},
                                           Row{"the_consumers_own_request_is_no_bind_in_flight",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.request("p", "g", "Succeeded");
                                               },
                                               {"r"}},
                                           Row{"a_gpu_that_another_group_claims_too_stays",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.reservation("t", "h", "n1", "GPU-a");
                                                 c.consumer("q", "h");
                                               },
                                               {}},
                                           Row{"the_one_on_a_node_without_consumers_goes",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n2", "GPU-b");
                                                 c.consumer("p", "g", "n2");
                                               },
                                               {"r"}},
                                           Row{"an_unbound_consumer_may_come_to_either",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n2", "GPU-b");
                                                 c.consumer("p", "g", "n2");
                                                 c.consumer("q", "g", "").phase = Interned("Pending");
                                               },
                                               {}},
                                           Row{"a_failed_duplicate_goes",
                          [](KaiCluster& c) {
                            c.reservation("s", "g", "n1", "GPU-b");
                            c.devices(c.consumer("p", "g"), "GPU-b");
                            r(c).phase = Interned("Failed");
                          },
                          {"r"}},
                      Row{"a_young_duplicate_stays",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 r(c).meta.creation_timestamp = c.now - 1min;
                                               },
                                               {}}),
                         test_name);

TEST(ReservationGc, DeletesWithUidAndVersionAndNoShorterGraceWhileTheNodeIsThere) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  const Plan plan = cluster.credited();
  ASSERT_EQ(deleted(plan), Names{"r"});
  for (const PlannedAction& planned : plan.actions) {
    const auto* action = std::get_if<DeletePod>(&planned.action);
    if (action == nullptr) continue;
    EXPECT_EQ(action->uid, "uid-r");
    EXPECT_EQ(action->resource_version, "7");
    EXPECT_FALSE(action->grace_period_seconds.has_value());
    EXPECT_TRUE(planned.disruptive);
    EXPECT_NE(planned.message.find("GPU-a of node n1"), std::string::npos) << planned.message;
  }
}

TEST(ReservationGc, EndsPodsOfVanishedNodesAtOnceEvenTerminatingOnes) {
  for (const bool terminating : {false, true}) {
    KaiCluster cluster;
    KaiPod& pod = cluster.reservation("r", "g", "gone");
    if (terminating) pod.meta.deletion_timestamp = cluster.now - 20min;
    const Plan plan = cluster.credited();
    ASSERT_EQ(deleted(plan), Names{"r"});
    for (const PlannedAction& planned : plan.actions) {
      const auto* action = std::get_if<DeletePod>(&planned.action);
      EXPECT_TRUE(action == nullptr || action->grace_period_seconds == 0);
    }
  }
}

TEST(ReservationGc, IsDueOnceItWasSeenOrphanedForTheGraceAndNotBefore) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(270s)), Names{});
  EXPECT_EQ(deleted(cluster.run(30s)), Names{"r"});
}

TEST(ReservationGc, StartsAfreshWhenAConsumerWasThereInBetween) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  const ObjectKey consumer = cluster.consumer("p", "g").meta.key();
  cluster.apply();  // Came and went between two passes.
  cluster.pods.erase(consumer);
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  EXPECT_EQ(deleted(cluster.run(90s)), Names{"r"});
}

TEST(ReservationGc, StartsAfreshWhenABindRequestWasThereInBetween) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  const ObjectKey request = cluster.request("p", "g", "Pending").meta.key();
  cluster.apply();
  cluster.requests.erase(request);
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  EXPECT_EQ(deleted(cluster.run(90s)), Names{"r"});
}

TEST(ReservationGc, StartsAfreshAfterAnIncompleteView) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  cluster.world.kai.incomplete = "the watch of pods is down";
  EXPECT_EQ(deleted(cluster.run(30s)), Names{});
  cluster.world.kai.incomplete.clear();
  EXPECT_EQ(deleted(cluster.run(240s)), Names{});
  EXPECT_EQ(deleted(cluster.run(90s)), Names{"r"});
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

TEST(ReservationGc, ListsMultiDeviceConsumersAnewInEverySweep) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.run(270s);
  cluster.multi_consumer("p", {"g"});  // In no watch.
  EXPECT_EQ(deleted(cluster.run(90s)), Names{});
}

TEST(ReservationGc, ConcludesNothingFromOldLists) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.run(120s);
  cluster.lookups_answered = false;  // Listing fails from now on.
  EXPECT_EQ(deleted(cluster.run(600s)), Names{});
  EXPECT_TRUE(reasons(cluster.pass(), "r").contains("KAILooking"));
}

TEST(ReservationGc, ExplainsEveryReservation) {
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
  EXPECT_NE(message(plan, "binding", "KAIBindInFlight").find("BindRequest team/q"), std::string::npos);
}

TEST(ReservationGc, IsSilentWhereEverythingIsInOrder) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.consumer("p", "g");
  cluster.request("p", "g", "Succeeded");
  const Plan plan = cluster.run(600s);
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_TRUE(plan.findings.empty());
  EXPECT_TRUE(plan.conditions.empty());
  EXPECT_TRUE(plan.kai_wanted.empty());
  EXPECT_FALSE(plan.requeue_after.has_value());
}

TEST(DeviceEvidence, IsUuidsOnly) {
  using Uuids = std::optional<std::vector<std::string>>;
  EXPECT_EQ(device_uuids("GPU-a"), (Uuids{{"GPU-a"}}));
  EXPECT_EQ(device_uuids("GPU-a, GPU-b"), (Uuids{{"GPU-a", "GPU-b"}}));
  EXPECT_EQ(device_uuids("k8s.device-plugin.nvidia.com/gpu=GPU-a"), (Uuids{{"GPU-a"}}));
  for (const char* text : {"", "0", "all", "none", "GPU-a,1", "MIG-a"}) EXPECT_EQ(device_uuids(text), Uuids{}) << text;
}

}  // namespace
}  // namespace gso::test
