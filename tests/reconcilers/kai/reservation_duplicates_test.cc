// pod.reservation-gc: several reservations of one group; what a deletion is, and what is said.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/kai/judgement.h"
#include "reconcilers/model/kai_objects.h"
#include "tests/reconcilers/kai/reservation_rows.h"

namespace gso::test::reservation_duplicates_test {
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
                                           Row{"the_configmap_of_another_pod_is_no_evidence",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 // A copied manifest: the annotation names p's ConfigMap.
                                                 c.consumer("q", "g").meta.annotations.set(kai::kSharedConfigMap,
                                                                                           "p-gpus");
                                               },
                                               {}},
                                           Row{"a_configmap_that_the_pod_does_not_own_is_no_evidence",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.device_maps.at({"team", "p-gpus-0"}).owners.clear();
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
                                           Row{"one_that_names_two_gpus_stays",
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
                                           Row{"a_bind_in_progress_keeps_both",
                                               [](KaiCluster& c) {
                                                 c.reservation("s", "g", "n1", "GPU-b");
                                                 c.devices(c.consumer("p", "g"), "GPU-b");
                                                 c.request("new", "g", "Pending");
                                               },
                                               {}},
                                           Row{"the_consumers_own_request_is_no_bind_in_progress",
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

// The runtime forgets answers that nobody asks for: a proof must be renewed while it is held, or the grace never ends.
TEST(ReservationGc, TheProofOfADuplicateIsAskedForAnewEachSweepAndDoesNotCountWhenItIsOld) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
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

// The binder deletes consumers only where no reservation of their group is left; "end these pods" is said when their
// GPU is lost, and no louder than that is known.
TEST(ReservationGc, RaisesTheAlarmForALostReservationOnlyWhereAConsumerMayUseItsGpu) {
  using Change = void (*)(KaiCluster&);
  const Change nothing = [](KaiCluster&) {};
  const struct {
    const char* name;
    bool other;        // A reservation "s" of GPU-b stands beside it.
    const char* uses;  // What the consumer's ConfigMap says; empty: there is none.
    Change change;
    std::optional<Severity> severity;  // None: no alarm.
  } rows[] = {
      {"alone", false, "", nothing, Severity::error},
      {"the other one is used", true, "GPU-b", nothing, std::nullopt},
      {"the other one is used, and this one never named its GPU", true, "GPU-b",
       [](KaiCluster& c) { r(c).meta.annotations.erase(kai::kDeviceAnnotation); }, std::nullopt},
      {"this one is used", true, "GPU-a", nothing, Severity::error},
      {"which one is used is not known", true, "", nothing, Severity::warning},
      {"the other one has failed too", true, "GPU-b",
       [](KaiCluster& c) { c.pods.at({"kai-resource-reservation", "s"}).phase = Interned("Failed"); }, Severity::error},
  };
  for (const char* reason : {"KAIReservationFailed", "KAIReservationTerminating"}) {
    for (const auto& row : rows) {
      KaiCluster cluster;
      cluster.reservation("r", "g");
      if (row.other) cluster.reservation("s", "g", "n1", "GPU-b");
      KaiPod& consumer = cluster.consumer("p", "g");
      if (*row.uses != '\0') cluster.devices(consumer, row.uses);
      row.change(cluster);
      if (reason == std::string_view("KAIReservationFailed"))
        r(cluster).phase = Interned("Failed");
      else
        r(cluster).meta.deletion_timestamp = cluster.now;
      std::optional<Severity> told;
      std::string text;
      for (const Finding& finding : cluster.credited().findings) {
        if (finding.object.name != "r" || finding.why.code != reason) continue;
        told = finding.severity;
        text = finding.why.message;
      }
      EXPECT_EQ(told, row.severity) << reason << ", " << row.name << ": " << text;
      EXPECT_EQ(text.find("binder") != std::string::npos && text.find("binder keeps") == std::string::npos,
                row.severity.has_value() && (!row.other || row.name == rows[5].name))
          << row.name << ": " << text;
    }
  }
}

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
    EXPECT_NE(planned.why.message.find("GPU-a of node n1"), std::string::npos) << planned.why.message;
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
  EXPECT_NE(message(plan, "binding", "KAIBindInProgress").find("BindRequest team/q"), std::string::npos);
}

TEST(ReservationGc, IsSilentWhereEverythingIsInOrder) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.consumer("p", "g");
  cluster.request("p", "g", "Succeeded");
  const Plan plan = cluster.run(600s);
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_TRUE(plan.findings.empty());
  EXPECT_TRUE(plan.timers.empty());
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
}  // namespace gso::test::reservation_duplicates_test
