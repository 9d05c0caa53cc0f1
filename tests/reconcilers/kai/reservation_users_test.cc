// pod.reservation-gc: what a reservation is, and who needs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/kai/judgement.h"
#include "reconcilers/model/kai_objects.h"
#include "tests/reconcilers/kai/reservation_rows.h"

namespace gso::test::reservation_users_test {
namespace {

using namespace std::chrono_literals;

class Identity : public ::testing::TestWithParam<Row> {};
TEST_P(Identity, DecidesWhatIsDeleted) {
  expect_row(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Identity,
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
                      Row{"an_empty_group_label_stays",
                          [](KaiCluster& c) { r(c).meta.labels.set(kai::kGroupLabel, ""); },
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
                      Row{"another_groups_multi_device_label_makes_it_none_of_that_group",
                          [](KaiCluster& c) {
                            r(c).meta.labels.set("runai-gpu-group/h", "h");
                            c.consumer("p", "g");
                          },
                          {}},
                      Row{"nor_does_that_groups_consumer_keep_it",
                          [](KaiCluster& c) {
                            r(c).meta.labels.set("runai-gpu-group/h", "h");
                            c.consumer("p", "h");
                          },
                          {"r"}},
                      Row{"a_multi_device_label_alone_is_no_group_label",
                          [](KaiCluster& c) {
                            r(c).meta.labels.erase(kai::kGroupLabel);
                            r(c).meta.labels.set("runai-gpu-group/g", "g");
                          },
                          {},
                          "KAILostGroupLabel"},
                      Row{"the_configured_label_alone_is_of_a_reservation",
                          [](KaiCluster& c) {
                            c.config().reservation_app_label = "holders";
                            c.reservation("s", "h").meta.labels.set("app", "holders");
                          },
                          {"s"}}),
    row_name);

class Consumers : public ::testing::TestWithParam<Row> {};
TEST_P(Consumers, DecidesWhatIsDeleted) {
  expect_row(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Consumers,
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
        Row{"a_consumer_of_another_group_too_keeps_it_by_the_key_of_a_label",
            [](KaiCluster& c) { c.consumer("p", "h").meta.labels.set("runai-gpu-group/g", "edited"); },
            {}},
        Row{"a_consumer_of_another_group_too_keeps_it_by_the_value_of_a_label",
            [](KaiCluster& c) { c.consumer("p", "h").meta.labels.set("runai-gpu-group/edited", "g"); },
            {}},
        Row{"without_the_plain_label_the_value_says_nothing",
            [](KaiCluster& c) { c.plain_pod("p").meta.labels.set("runai-gpu-group/edited", "g"); },
            {"r"}},
        Row{"an_unbound_consumer_with_a_bind_in_progress_is_as_it_should_be",
            [](KaiCluster& c) {
              c.consumer("p", "g", "").phase = Interned("Pending");
              c.request("p", "g", "Pending");
            },
            {},
            "KAIConsumersAlive"},
        Row{"an_unbound_consumer_whose_bind_has_just_succeeded_is_as_it_should_be",
            [](KaiCluster& c) {
              c.consumer("p", "g", "").phase = Interned("Pending");
              c.request("p", "g", "Succeeded");
            },
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
    row_name);

class Intent : public ::testing::TestWithParam<Row> {};
TEST_P(Intent, DecidesWhatIsDeleted) {
  expect_row(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Intent,
    ::testing::Values(
        Row{"a_pending_request_keeps_it",
            [](KaiCluster& c) { c.request("p", "g", "Pending"); },
            {},
            "KAIBindInProgress"},
        Row{"a_request_without_a_phase_keeps_it",
            [](KaiCluster& c) { c.request("p", "g", ""); },
            {},
            "KAIBindInProgress"},
        Row{"a_phase_that_we_do_not_know_keeps_it", [](KaiCluster& c) { c.request("p", "g", "Odd"); }, {}},
        Row{"a_request_for_several_groups_keeps_each",
            [](KaiCluster& c) { c.request("p", "other", "Pending").groups.push_back(Interned("g")); },
            {},
            "KAIBindInProgress"},
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
    row_name);

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

}  // namespace
}  // namespace gso::test::reservation_users_test
