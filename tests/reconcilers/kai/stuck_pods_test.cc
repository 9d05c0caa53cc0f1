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

WaitingPod waiting_pod(const KaiCluster& cluster) {
  WaitingPod out;
  out.pod.meta.name = "p";
  out.pod.meta.ns = Interned("team");
  out.pod.meta.creation_timestamp = cluster.now - 1h;
  out.pod.meta.labels.set("kai.scheduler/queue", "q");
  out.pod.meta.annotations.set("gpu-fraction", "0.5");
  out.pod.scheduler_name = Interned("kai-scheduler");
  return out;
}

// What is said, by a finding and by an Event, of a pod that has asked for half a GPU an hour ago, in a cluster that has
// room for it; `cause`: a part of that, empty: nothing is said.
void expect(const char* rule, const char* cause, const std::function<void(KaiCluster&, WaitingPod&)>& change) {
  SCOPED_TRACE(rule);
  KaiCluster cluster;
  set_gpus(cluster.nodes.at("n1"), 2, "40960");
  cluster.waiting = {waiting_pod(cluster)};
  change(cluster, cluster.waiting.front());
  const Plan plan = cluster.pass();
  const std::string said = message(plan, "p", kKaiPodStuck);
  EXPECT_EQ(said.empty(), *cause == '\0') << said;
  EXPECT_NE(said.find(cause), std::string::npos) << said;
  const bool told = std::ranges::any_of(plan.actions, [](const PlannedAction& planned) {
    const auto* event = std::get_if<RecordEvent>(&planned.action);
    return event != nullptr && event->why.code == kKaiPodStuck && event->regarding.name == "p";
  });
  EXPECT_EQ(told, !said.empty());
}

void ask(WaitingPod& waiting, const char* mib, const char* devices = nullptr) {
  waiting.pod.meta.annotations.erase("gpu-fraction");
  waiting.pod.meta.annotations.set("gpu-memory", mib);
  if (devices != nullptr) waiting.pod.meta.annotations.set("gpu-fraction-num-devices", devices);
}

void lose_memory_label(KaiCluster& c) {
  c.nodes.at("n1").meta.labels.erase("nvidia.com/gpu.memory");
}

TEST(StuckPods, AreThoseOfKaiThatWaitForLong) {
  expect("all is well", "has not created a BindRequest", [](auto&, auto&) {});
  expect("young", "", [](auto& c, auto& w) { w.pod.meta.creation_timestamp = c.now - 2min; });
  expect("another scheduler", "", [](auto&, auto& w) { w.pod.scheduler_name = Interned("mine"); });
  expect("no fraction", "", [](auto&, auto& w) { w.pod.meta.annotations.erase("gpu-fraction"); });
  expect("the configured scheduler", "NotChosen", [](auto& c, auto& w) {
    c.config().scheduler_name = "mine";
    w.pod.scheduler_name = Interned("mine");
  });
}

TEST(StuckPods, AreNamedWithWhatIsMissing) {
  expect("sharing is off", "GPU sharing is off (decided by spec.admission.gpuSharing)",
         [](auto& c, auto&) { c.config().gpu_sharing = false; });
  expect("no queue", "no label kai.scheduler/queue",
         [](auto&, auto& w) { w.pod.meta.labels.erase("kai.scheduler/queue"); });
  expect("another queue label", "no label example.com/queue",
         [](auto& c, auto&) { c.config().queue_label_key = "example.com/queue"; });
  for (const char* name : {"other", ""}) {
    expect("a missing RuntimeClass", "RuntimeClass nvidia does not exist", [name](auto& c, auto&) {
      RuntimeClass other;
      other.meta.name = name;
      if (*name != '\0') c.world.kai.runtime_classes.apply(other);
      c.world.kai.runtime_classes.mark_synced();
    });
  }
  for (const char* ns : {"kai-scale-adjust", "scale"}) {
    const std::string said = std::string("the scaling pod ") + ns + "/s is not scheduled";
    expect(ns, said.c_str(), [ns](auto& c, auto&) {
      if (std::string_view(ns) == "scale") c.config().scale_namespace = "scale";
      WaitingPod scaling;
      scaling.pod.meta.name = "s";
      scaling.pod.meta.ns = Interned(ns);
      c.waiting.push_back(scaling);
    });
  }
}

TEST(StuckPods, AreNamedWithTheGpusThatTheyAskForInVain) {
  expect("memory that fits", "NotChosen", [](auto&, auto& w) { ask(w, "40900"); });
  expect("too much memory", "the largest GPU has 40900 MiB", [](auto&, auto& w) { ask(w, "40960"); });
  expect("no memory label", "node n1 does not have the label nvidia.com/gpu.memory", [](auto& c, auto& w) {
    lose_memory_label(c);
    ask(w, "2000");
  });
  expect("what KAI counts without a label is enough", "NotChosen", [](auto& c, auto& w) {
    lose_memory_label(c);
    ask(w, "100");
  });
  expect("a memory label on another node only", "node n2 does not have the label", [](auto& c, auto& w) {
    set_gpus(c.nodes.at("n2"), 2, nullptr);
    ask(w, "80000");
  });
  expect("too many devices", "no node has more than 2",
         [](auto&, auto& w) { w.pod.meta.annotations.set("gpu-fraction-num-devices", "9"); });
  expect("as many devices as there are", "NotChosen",
         [](auto&, auto& w) { w.pod.meta.annotations.set("gpu-fraction-num-devices", "2"); });
  expect("so many GPUs of that size on no node",
         "50000 MiB on each of 4 GPUs, but the largest GPU of a node with 4 of them has 16300 MiB",
         [](auto& c, auto& w) {
           set_gpus(c.nodes.at("n1"), 8, "16384");
           set_gpus(c.nodes.at("n2"), 1, "81920");
           ask(w, "50000", "4");
         });
  expect("so many GPUs on a node without the label", "node n1 does not have the label", [](auto& c, auto& w) {
    set_gpus(c.nodes.at("n1"), 8, nullptr);
    lose_memory_label(c);
    set_gpus(c.nodes.at("n2"), 1, "81920");
    ask(w, "50000", "4");
  });
  expect("so many GPUs of that size on one of the nodes", "NotChosen", [](auto& c, auto& w) {
    set_gpus(c.nodes.at("n2"), 4, "81920");
    ask(w, "50000", "4");
  });
}

TEST(StuckPods, AreNamedWithTheBindThatFails) {
  expect("again and again", "its BindRequest for node n1 is Pending after 4 failed attempts",
         [](auto& c, auto&) { c.request("p", "g", "Pending").failed_attempts = 4; });
  for (const bool tolerated : {true, false}) {
    expect("on a node with a taint", tolerated ? "node n1 has the taint maintenance:NoExecute" : "BindFails",
           [tolerated](auto& c, auto& w) {
             c.nodes.at("n1").taints = {no_execute("maintenance")};
             if (tolerated) w.tolerations = {exists("maintenance")};
             c.request("p", "g", "Pending");
           });
  }
}

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
  cluster.lookups_answered = false;
  cluster.world.kai.lookups.waiting = LookupResults::Waiting{one_look(cluster.now), {waiting_pod(cluster)}};
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
  const auto expect = [](const char* rule, bool told, const Change& change) {
    KaiCluster cluster;
    cluster.nodes.at("n1").taints = {no_execute("maintenance")};
    cluster.reservation("r", "g");
    cluster.consumer("p", "g").tolerations = {exists("maintenance")};
    change(cluster);
    EXPECT_EQ(reasons(cluster.pass(), "r").contains(std::string(kKaiNoToleration)), told) << rule;
  };
  expect("the consumer alone tolerates it", true, [](auto&) {});
  expect("both do", false, [](auto& c) { r(c).tolerations = {exists("maintenance")}; });
  expect("neither does", false, [](auto& c) { c.pods.at({"team", "p"}).tolerations.clear(); });
  expect("the taint only keeps new pods away", false,
         [](auto& c) { c.nodes.at("n1").taints.front().effect = Interned("NoSchedule"); });
  expect("another node has it", false, [](auto& c) { std::swap(c.nodes.at("n1").taints, c.nodes.at("n2").taints); });
  expect("the consumer has ended", false, [](auto& c) { c.pods.at({"team", "p"}).phase = Interned("Failed"); });
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
