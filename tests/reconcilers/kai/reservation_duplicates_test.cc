// pod.reservation-gc: several reservations of one group; what a deletion is, and what is said.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/kai/judgement.h"
#include "reconcilers/model/kai_objects.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::reservation_duplicates_test {
namespace {

using namespace std::chrono_literals;

TEST(ReservationGc, TakesOneOrphanOfANodeAtATime) {
  const Rules rules;
  rules.goes("two of one group on one node", [](auto& c) { c.reservation("s", "g"); });
  rules.expect("on two nodes", {"r", "s"}, "", [](auto& c) { c.reservation("s", "h", "n2"); });
}

KaiPod& s(KaiCluster& c) {
  return c.pods.at({"kai-resource-reservation", "s"});
}

KaiPod& p(KaiCluster& c) {
  return c.pods.at({"team", "p"});
}

TEST(ReservationGc, DeletesADuplicateOnlyWhereItIsProvenThatNobodyUsesItsGpu) {
  const Rules another{[](auto& c) {
    c.reservation("s", "g", "n1", "GPU-b");
    c.devices(c.consumer("p", "g"), "GPU-b");
  }};
  another.goes("the only consumer uses the other one", [](auto&) {});
  another.goes("evidence in CDI form", [](auto& c) { c.devices(p(c), "k8s.device-plugin.nvidia.com/gpu=GPU-b"); });
  another.goes("failed", [](auto& c) { r(c).phase = Interned("Failed"); });
  another.goes("the consumer's own request is no bind in progress", [](auto& c) { c.request("p", "g", "Succeeded"); });
  another.stays("young", [](auto& c) { r(c).meta.creation_timestamp = c.now - 1min; });
  another.stays("no evidence", "KAIDuplicateUnproven",
                [](auto& c) { p(c).meta.annotations.erase(kai::kSharedConfigMap); });
  another.stays("an index is no evidence", [](auto& c) { c.devices(p(c), "1"); });
  // A copied manifest: the annotation names p's ConfigMap.
  another.stays("the ConfigMap of another pod is no evidence",
                [](auto& c) { c.consumer("q", "g").meta.annotations.set(kai::kSharedConfigMap, "p-gpus"); });
  another.stays("a ConfigMap that the pod does not own is no evidence",
                [](auto& c) { c.device_maps.at({"team", "p-gpus-0"}).owners.clear(); });
  another.stays("a consumer without evidence", [](auto& c) { c.consumer("q", "g"); });
  another.stays("a multi-device consumer may use it",
                [](auto& c) { c.devices(c.multi_consumer("q", {"g", "h"}), "GPU-a,GPU-c"); });
  another.stays("one of two consumers uses it",
                [](auto& c) { c.devices(c.multi_consumer("q", {"g", "h"}), "GPU-a,GPU-b"); });
  another.stays("it does not name its GPU", [](auto& c) { r(c).meta.annotations.erase(kai::kDeviceAnnotation); });
  another.stays("it names two GPUs", [](auto& c) { r(c).meta.annotations.set(kai::kDeviceAnnotation, "GPU-a,GPU-c"); });
  another.stays("the one in use is going", [](auto& c) { s(c).meta.deletion_timestamp = c.now; });
  another.stays("the one in use does not stand", [](auto& c) { s(c).phase = Interned("Pending"); });
  another.stays("no reservation of the group holds the GPU", [](auto& c) { c.devices(p(c), "GPU-c"); });
  another.stays("a bind is in progress", [](auto& c) { c.request("new", "g", "Pending"); });
  another.stays("another group claims the GPU too", [](auto& c) {
    c.reservation("t", "h", "n1", "GPU-a");
    c.consumer("q", "h");
  });
}

TEST(ReservationGc, DeletesADuplicateOnANodeWithoutConsumers) {
  const Rules elsewhere{[](auto& c) {
    c.reservation("s", "g", "n2", "GPU-b");
    c.consumer("p", "g", "n2");
  }};
  elsewhere.goes("all consumers are beside the other one", [](auto&) {});
  elsewhere.stays("one is unbound", [](auto& c) { c.consumer("q", "g", "").phase = Interned("Pending"); });
  elsewhere.stays("none is beside the other one", [](auto& c) {
    r(c).node_name = Interned("n2");
    s(c).node_name = Interned("n3");
    p(c).node_name = Interned("n1");
  });
}

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
  const Change nothing = [](auto&) {};
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
       [](auto& c) { r(c).meta.annotations.erase(kai::kDeviceAnnotation); }, std::nullopt},
      {"this one is used", true, "GPU-a", nothing, Severity::error},
      {"which one is used is not known", true, "", nothing, Severity::warning},
      {"the other one has failed too", true, "GPU-b", [](auto& c) { s(c).phase = Interned("Failed"); },
       Severity::error},
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
      const Plan plan = cluster.credited();
      if (row.severity) {
        EXPECT_EQ(deleted(plan), Names{}) << reason << ", " << row.name;
      }
      for (const Finding& finding : plan.findings) {
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
