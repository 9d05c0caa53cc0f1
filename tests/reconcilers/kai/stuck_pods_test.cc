// Fraction pods that wait, each with its cause; and reservations that a taint takes away.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/project.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::stuck_pods_test {
namespace {

using namespace std::chrono_literals;

Taint no_execute(const char* key) {
  Taint taint;
  taint.key = Interned(key);
  taint.effect = Interned("NoExecute");
  return taint;
}

Toleration exists(const char* key) {
  Toleration out;
  out.key = Interned(key);
  out.op = Interned("Exists");
  return out;
}

void set_gpus(Node& node, std::int64_t gpus, const char* memory) {
  node.allocatable[Interned("nvidia.com/gpu")] = gpus;
  if (memory != nullptr) node.meta.labels.set("nvidia.com/gpu.memory", memory);
}

struct StuckRow {
  const char* name;
  std::function<void(KaiCluster&, WaitingPod&)> change;
  const char* cause;  // Part of the message; empty: no finding.
};

void PrintTo(const StuckRow& row, std::ostream* out) {
  *out << row.name;
}

class StuckPods : public ::testing::TestWithParam<StuckRow> {};

// A pod that has asked for half a GPU an hour ago, in a cluster that has room for it.
TEST_P(StuckPods, AreNamedWithTheirCause) {
  KaiCluster cluster;
  set_gpus(cluster.nodes.at("n1"), 2, "40960");
  WaitingPod waiting;
  waiting.pod.meta.name = "p";
  waiting.pod.meta.ns = Interned("team");
  waiting.pod.meta.creation_timestamp = cluster.now - 1h;
  waiting.pod.meta.labels.set("kai.scheduler/queue", "q");
  waiting.pod.meta.annotations.set("gpu-fraction", "0.5");
  waiting.pod.scheduler_name = Interned("kai-scheduler");
  cluster.waiting = {waiting};
  GetParam().change(cluster, cluster.waiting.front());
  const Plan plan = cluster.pass();
  const std::string said = message(plan, "p", kKaiPodStuck);
  EXPECT_EQ(said.empty(), *GetParam().cause == '\0') << said;
  EXPECT_NE(said.find(GetParam().cause), std::string::npos) << said;
  const bool told = std::ranges::any_of(plan.actions, [](const PlannedAction& planned) {
    const auto* event = std::get_if<RecordEvent>(&planned.action);
    return event != nullptr && event->why.code == kKaiPodStuck && event->regarding.name == "p";
  });
  EXPECT_EQ(told, !said.empty());
}

void ask_memory(WaitingPod& waiting, const char* mib) {
  waiting.pod.meta.annotations.erase("gpu-fraction");
  waiting.pod.meta.annotations.set("gpu-memory", mib);
}

INSTANTIATE_TEST_SUITE_P(
    Causes, StuckPods,
    ::testing::Values(
        StuckRow{"nothing_to_see", [](KaiCluster&, WaitingPod&) {}, "has not created a BindRequest"},
        StuckRow{"young", [](KaiCluster& c, WaitingPod& w) { w.pod.meta.creation_timestamp = c.now - 2min; }, ""},
        StuckRow{"another_scheduler", [](KaiCluster&, WaitingPod& w) { w.pod.scheduler_name = Interned("mine"); }, ""},
        StuckRow{"no_fraction", [](KaiCluster&, WaitingPod& w) { w.pod.meta.annotations.erase("gpu-fraction"); }, ""},
        StuckRow{"the_configured_scheduler",
                 [](KaiCluster& c, WaitingPod& w) {
                   c.config().scheduler_name = "mine";
                   w.pod.scheduler_name = Interned("mine");
                 },
                 "NotChosen"},
        StuckRow{"sharing_off", [](KaiCluster& c, WaitingPod&) { c.config().gpu_sharing = false; },
                 "GPU sharing is off (decided by spec.admission.gpuSharing)"},
        StuckRow{"no_queue", [](KaiCluster&, WaitingPod& w) { w.pod.meta.labels.erase("kai.scheduler/queue"); },
                 "no label kai.scheduler/queue"},
        StuckRow{"another_queue_label",
                 [](KaiCluster& c, WaitingPod&) { c.config().queue_label_key = "example.com/queue"; },
                 "no label example.com/queue"},
        StuckRow{"memory_that_fits", [](KaiCluster&, WaitingPod& w) { ask_memory(w, "40900"); }, "NotChosen"},
        StuckRow{"too_much_memory", [](KaiCluster&, WaitingPod& w) { ask_memory(w, "40960"); },
                 "the largest GPU has 40900 MiB"},
        StuckRow{"no_memory_label",
                 [](KaiCluster& c, WaitingPod& w) {
                   c.nodes.at("n1").meta.labels.erase("nvidia.com/gpu.memory");
                   ask_memory(w, "2000");
                 },
                 "node n1 does not have the label nvidia.com/gpu.memory"},
        StuckRow{"a_memory_label_on_another_node_only",
                 [](KaiCluster& c, WaitingPod& w) {
                   set_gpus(c.nodes.at("n2"), 2, nullptr);
                   ask_memory(w, "80000");
                 },
                 "node n2 does not have the label"},
        StuckRow{"too_many_devices",
                 [](KaiCluster&, WaitingPod& w) { w.pod.meta.annotations.set("gpu-fraction-num-devices", "9"); },
                 "no node has more than 2"},
        StuckRow{"as_many_devices_as_there_are",
                 [](KaiCluster&, WaitingPod& w) { w.pod.meta.annotations.set("gpu-fraction-num-devices", "2"); },
                 "NotChosen"},
        StuckRow{"a_missing_runtime_class",
                 [](KaiCluster& c, WaitingPod&) {
                   RuntimeClass other;
                   other.meta.name = "other";
                   c.world.kai.runtime_classes.apply(other);
                   c.world.kai.runtime_classes.mark_synced();
                 },
                 "RuntimeClass nvidia does not exist"},
        StuckRow{"no_runtime_class_at_all",
                 [](KaiCluster& c, WaitingPod&) { c.world.kai.runtime_classes.mark_synced(); },
                 "RuntimeClass nvidia does not exist"},
        StuckRow{"so_many_gpus_of_that_size_on_no_node",
                 [](KaiCluster& c, WaitingPod& w) {
                   set_gpus(c.nodes.at("n1"), 8, "16384");
                   set_gpus(c.nodes.at("n2"), 1, "81920");
                   ask_memory(w, "50000");
                   w.pod.meta.annotations.set("gpu-fraction-num-devices", "4");
                 },
                 "50000 MiB on each of 4 GPUs, but the largest GPU of a node with 4 of them has 16300 MiB"},
        StuckRow{"so_many_gpus_on_a_node_without_the_label",
                 [](KaiCluster& c, WaitingPod& w) {
                   c.nodes.at("n1").allocatable[Interned("nvidia.com/gpu")] = 8;
                   c.nodes.at("n1").meta.labels.erase("nvidia.com/gpu.memory");
                   set_gpus(c.nodes.at("n2"), 1, "81920");
                   ask_memory(w, "50000");
                   w.pod.meta.annotations.set("gpu-fraction-num-devices", "4");
                 },
                 "node n1 does not have the label"},
        StuckRow{"so_many_gpus_of_that_size_on_one_of_the_nodes",
                 [](KaiCluster& c, WaitingPod& w) {
                   set_gpus(c.nodes.at("n2"), 4, "81920");
                   ask_memory(w, "50000");
                   w.pod.meta.annotations.set("gpu-fraction-num-devices", "4");
                 },
                 "NotChosen"},
        StuckRow{"what_kai_counts_without_a_label_is_enough",
                 [](KaiCluster& c, WaitingPod& w) {
                   c.nodes.at("n1").meta.labels.erase("nvidia.com/gpu.memory");
                   ask_memory(w, "100");
                 },
                 "NotChosen"},
        StuckRow{"a_scaling_pod_of_a_namespace_of_its_own",
                 [](KaiCluster& c, WaitingPod&) {
                   c.config().scale_namespace = "scale";
                   WaitingPod scaling;
                   scaling.pod.meta.name = "s";
                   scaling.pod.meta.ns = Interned("scale");
                   c.waiting.push_back(scaling);
                 },
                 "the scaling pod scale/s is not scheduled"},
        StuckRow{"a_scaling_pod",
                 [](KaiCluster& c, WaitingPod&) {
                   WaitingPod scaling;
                   scaling.pod.meta.name = "s";
                   scaling.pod.meta.ns = Interned("kai-scale-adjust");
                   c.waiting.push_back(scaling);
                 },
                 "the scaling pod kai-scale-adjust/s is not scheduled"},
        StuckRow{"a_bind_that_fails",
                 [](KaiCluster& c, WaitingPod&) { c.request("p", "g", "Pending").failed_attempts = 4; },
                 "its BindRequest for node n1 is Pending after 4 failed attempts"},
        StuckRow{"a_reservation_that_is_evicted_at_once",
                 [](KaiCluster& c, WaitingPod& w) {
                   c.nodes.at("n1").taints = {no_execute("maintenance")};
                   w.tolerations = {exists("maintenance")};
                   c.request("p", "g", "Pending");
                 },
                 "node n1 has the taint maintenance:NoExecute"},
        StuckRow{"a_taint_that_the_pod_does_not_tolerate_either",
                 [](KaiCluster& c, WaitingPod&) {
                   c.nodes.at("n1").taints = {no_execute("maintenance")};
                   c.request("p", "g", "Pending");
                 },
                 "BindFails"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(WaitingPods, AreListedNowAndThenWhereKaiIsServed) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.consumer("p", "g");
  cluster.lookups_answered = false;
  EXPECT_TRUE(cluster.pass().kai_wanted.waiting_pods);
  cluster.world.kai.lookups.waiting = LookupResults::Waiting{one_look(cluster.now), {}};
  const Plan after = cluster.pass();
  EXPECT_TRUE(after.kai_wanted.empty());
  EXPECT_EQ(after.requeue_after, Duration(5min));
  cluster.now += 5min;
  EXPECT_TRUE(cluster.pass().kai_wanted.waiting_pods);
  cluster.settings.kai.gc_mode = KaiGcMode::off;
  EXPECT_FALSE(cluster.pass().kai_wanted.waiting_pods);
}

TEST(WaitingPods, AreNotJudgedByAnOldList) {
  KaiCluster cluster;
  WaitingPod scaling;
  cluster.lookups_answered = false;
  WaitingPod waiting;
  waiting.pod.meta.name = "p";
  waiting.pod.meta.annotations.set("gpu-fraction", "0.5");
  waiting.pod.scheduler_name = Interned("kai-scheduler");
  cluster.world.kai.lookups.waiting = LookupResults::Waiting{one_look(cluster.now), {waiting}};
  EXPECT_FALSE(message(cluster.pass(), "p", kKaiPodStuck).empty());
  cluster.now += 10min;
  EXPECT_TRUE(message(cluster.pass(), "p", kKaiPodStuck).empty());
}

TEST(KaiGpuMemory, IsWhatKaisSchedulerMakesOfTheLabel) {
  EXPECT_EQ(kai_gpu_memory("40960"), 40900);
  EXPECT_EQ(kai_gpu_memory("99"), 0);
  EXPECT_EQ(kai_gpu_memory("42949672960"), 40900);  // Bytes, as an old GPU Feature Discovery writes.
  EXPECT_EQ(kai_gpu_memory("40Gi"), std::nullopt);
  EXPECT_EQ(kai_gpu_memory(std::nullopt), std::nullopt);
}

TEST(ReservationTolerations, AreNamedWhereATaintTakesTheReservationAndLeavesItsConsumer) {
  struct {
    const char* name;
    std::function<void(KaiCluster&)> change;
    bool told;
  } rows[] = {
      {"the consumer alone tolerates it", [](KaiCluster&) {}, true},
      {"both do",
       [](KaiCluster& c) { c.pods.at({"kai-resource-reservation", "r"}).tolerations = {exists("maintenance")}; },
       false},
      {"neither does", [](KaiCluster& c) { c.pods.at({"team", "p"}).tolerations.clear(); }, false},
      {"the taint only keeps new pods away",
       [](KaiCluster& c) { c.nodes.at("n1").taints.front().effect = Interned("NoSchedule"); }, false},
      {"another node has it", [](KaiCluster& c) { std::swap(c.nodes.at("n1").taints, c.nodes.at("n2").taints); },
       false},
      {"the consumer has ended", [](KaiCluster& c) { c.pods.at({"team", "p"}).phase = Interned("Failed"); }, false},
  };
  for (const auto& row : rows) {
    KaiCluster cluster;
    cluster.nodes.at("n1").taints = {no_execute("maintenance")};
    cluster.reservation("r", "g");
    cluster.consumer("p", "g").tolerations = {exists("maintenance")};
    row.change(cluster);
    EXPECT_EQ(reasons(cluster.pass(), "r").contains(std::string(kKaiNoToleration)), row.told) << row.name;
  }
}

TEST(KaiProjection, LeavesOutTolerationsThatEndByThemselves) {
  const auto pod = project_kai_pod(R"({"metadata":{"name":"p"},"spec":{"tolerations":[
    {"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
    {"key":"b","operator":"Exists","effect":"NoExecute"},{"key":"c","tolerationSeconds":null}]}})");
  ASSERT_TRUE(pod) << pod.error().message;
  ASSERT_EQ(pod->tolerations.size(), 2u);
  EXPECT_EQ(pod->tolerations[0].key, "b");
  EXPECT_EQ(pod->tolerations[1].key, "c");
}

TEST(KaiProjection, ReadsALease) {
  const auto lease =
      project_lease(R"({"metadata":{"name":"2ad35f9c.kai.scheduler"},"spec":{"holderIdentity":"binder-a_1",
    "acquireTime":"2026-06-01T11:58:00.123456Z","renewTime":"2026-06-01T11:59:59.000000Z","leaseTransitions":3}})");
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->holder, "binder-a_1");
  ASSERT_TRUE(lease->acquired.has_value());
  EXPECT_EQ(k8s::format_time(*lease->acquired), "2026-06-01T11:58:00Z");
}

}  // namespace
}  // namespace gso::test::stuck_pods_test
