// pod.reservation-gc: several reservations of one group; what a deletion is, and what is said.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/kai/judgement.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/labels.h"
#include "tests/reconcilers/kai/reservation_rows.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;

class Duplicates : public ::testing::TestWithParam<Row> {};
TEST_P(Duplicates, DecidesWhatIsDeleted) {
  expect_row(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rules, Duplicates,
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
                                           Row{"a_gpu_that_one_of_two_consumers_uses_stays",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.devices(c.multi_consumer("q", {"g", "h"}), "GPU-a,GPU-b");
                                               },
                                               {}},
                                           Row{"one_that_does_not_tell_its_gpu_stays",
                                               [](KaiCluster& c) {
                                                 r(c).meta.annotations.erase(kai::kDeviceAnnotation);
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                               },
                                               {}},
                                           Row{"one_that_tells_two_gpus_stays",
                                               [](KaiCluster& c) {
                                                 r(c).meta.annotations.set(kai::kDeviceAnnotation, "GPU-a,GPU-c");
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                               },
                                               {}},
                                           Row{"the_reservation_in_use_must_not_be_going",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b").meta.deletion_timestamp = c.now;
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                               },
                                               {}},
                                           Row{"one_must_stand_on_the_consumers_own_node",
                                               [](KaiCluster& c) {
                                                 r(c).node_name = Interned("n2");
                                                 c.reservation("s", "g", "n3", "GPU-b");
                                                 c.consumer("p", "g", "n1");
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
                         row_name);

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
  EXPECT_EQ(plan.requeue_after, Duration(5min));  // Pods that wait are listed then.
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
