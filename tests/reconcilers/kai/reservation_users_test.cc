// pod.reservation-gc: what a reservation is, and who needs it.
#include <gtest/gtest.h>

#include "reconcilers/model/kai_objects.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::reservation_users_test {
namespace {

using namespace std::chrono_literals;

// The pod "r" as another object.
void replace(KaiCluster& c, const std::function<void(KaiPod&)>& change) {
  KaiPod pod = r(c);
  c.pods.clear();
  change(pod);
  c.pods[pod.meta.key()] = pod;
}

TEST(ReservationGc, KnowsAReservationByItsNamespaceAppLabelAndGroup) {
  const Rules rules;
  rules.goes("an orphan", [](auto&) {});
  rules.stays("another namespace", "KAILeftover",
              [](auto& c) { replace(c, [](KaiPod& pod) { pod.meta.ns = Interned("team"); }); });
  rules.stays("another app label", [](auto& c) { r(c).meta.labels.set("app", "mine"); });
  rules.stays("no group label", "KAILostGroupLabel", [](auto& c) { r(c).meta.labels.erase(kai::kGroupLabel); });
  rules.stays("an empty group label", "KAILostGroupLabel", [](auto& c) { r(c).meta.labels.set(kai::kGroupLabel, ""); });
  rules.expect("the name does not matter", {"whatever"}, "",
               [](auto& c) { replace(c, [](KaiPod& pod) { pod.meta.name = "whatever"; }); });
  rules.goes("the configured namespace and label count", [](auto& c) {
    c.config().reservation_namespace = "infra";
    c.config().reservation_app_label = "holders";
    replace(c, [](KaiPod& pod) {
      pod.meta.ns = Interned("infra");
      pod.meta.labels.set("app", "holders");
    });
  });
  // To KAI the old one is a live consumer.
  rules.stays("one left in an earlier namespace keeps its group", "KAILeftover", [](auto& c) {
    c.config().reservation_namespace = "infra";
    KaiPod pod = r(c);
    pod.meta.ns = Interned("infra");
    pod.meta.name = "moved";
    c.pods[pod.meta.key()] = pod;
  });
  rules.stays("another group's multi-device label makes it none of that group", [](auto& c) {
    r(c).meta.labels.set("runai-gpu-group/h", "h");
    c.consumer("p", "g");
  });
  rules.goes("nor does that group's consumer keep it", [](auto& c) {
    r(c).meta.labels.set("runai-gpu-group/h", "h");
    c.consumer("p", "h");
  });
  rules.stays("a multi-device label alone is no group label", "KAILostGroupLabel", [](auto& c) {
    r(c).meta.labels.erase(kai::kGroupLabel);
    r(c).meta.labels.set("runai-gpu-group/g", "g");
  });
  rules.expect("the configured label alone is of a reservation", {"s"}, "", [](auto& c) {
    c.config().reservation_app_label = "holders";
    c.reservation("s", "h").meta.labels.set("app", "holders");
  });
}

TEST(ReservationGc, KeepsWhatALiveConsumerNeeds) {
  const Rules rules;
  for (const char* phase : {"Running", "Pending", "Unknown", ""})
    rules.stays(phase, [phase](auto& c) { c.consumer("p", "g").phase = Interned(phase); });
  for (const char* phase : {"Succeeded", "Failed"})
    rules.goes(phase, [phase](auto& c) { c.consumer("p", "g").phase = Interned(phase); });
  rules.stays("a terminating one", [](auto& c) { c.consumer("p", "g").meta.deletion_timestamp = c.now - 15min; });
  rules.goes("of another group", [](auto& c) { c.consumer("p", "other"); });
  rules.stays("in any namespace", [](auto& c) {
    KaiPod pod = c.consumer("p", "g");
    c.pods.erase(pod.meta.key());
    pod.meta.ns = Interned("elsewhere");
    c.pods[pod.meta.key()] = pod;
  });
  rules.stays("of any scheduler", [](auto& c) { c.consumer("p", "g").scheduler_name = Interned("mine"); });
  rules.stays("of several devices", "KAIConsumersAlive", [](auto& c) { c.multi_consumer("p", {"g", "h"}); });
  rules.goes("of several devices, ended", [](auto& c) { c.multi_consumer("p", {"g"}).phase = Interned("Succeeded"); });
  rules.stays("of several devices, not listed yet", "KAILooking", [](auto& c) { c.lookups_answered = false; });
  rules.stays("of another group too, by the key of a label",
              [](auto& c) { c.consumer("p", "h").meta.labels.set("runai-gpu-group/g", "edited"); });
  rules.stays("of another group too, by the value of a label",
              [](auto& c) { c.consumer("p", "h").meta.labels.set("runai-gpu-group/edited", "g"); });
  rules.goes("without the plain label the value says nothing",
             [](auto& c) { c.plain_pod("p").meta.labels.set("runai-gpu-group/edited", "g"); });
  rules.stays("a stranger in the reservation namespace",
              [](auto& c) { c.reservation("s", "g").meta.labels.set("app", "mine"); });
  for (const char* phase : {"Pending", "Succeeded"}) {
    rules.stays("an unbound one with a BindRequest", "KAIConsumersAlive", [phase](auto& c) {
      c.consumer("p", "g", "").phase = Interned("Pending");
      c.request("p", "g", phase);
    });
  }
  rules.stays("an unbound one without a BindRequest", "KAISuspectConsumer",
              [](auto& c) { c.consumer("p", "g", "").phase = Interned("Pending"); });
  rules.stays("on another node", "KAIReservationElsewhere", [](auto& c) { c.consumer("p", "g", "n2"); });
}

TEST(ReservationGc, KeepsWhatABindInProgressNeeds) {
  const Rules rules;
  for (const char* phase : {"Pending", "", "Odd"})
    rules.stays(phase, "KAIBindInProgress", [phase](auto& c) { c.request("p", "g", phase); });
  rules.stays("for several groups", "KAIBindInProgress",
              [](auto& c) { c.request("p", "other", "Pending").groups.push_back(Interned("g")); });
  rules.goes("for another group", [](auto& c) { c.request("p", "other", "Pending"); });
  rules.goes("failed, without a limit", [](auto& c) { c.request("p", "g", "Failed"); });
  const auto failed = [](KaiCluster& c, int attempts) {
    BindRequest& request = c.request("p", "g", "Failed");
    request.backoff_limit = 3;
    request.failed_attempts = attempts;
  };
  rules.stays("failed, with attempts left", [&](auto& c) { failed(c, 2); });
  rules.goes("failed at its limit", [&](auto& c) { failed(c, 3); });
  rules.stays("being deleted", [](auto& c) { c.request("p", "g", "Failed").meta.deletion_timestamp = c.now; });
  rules.goes("succeeded, and its pod is gone", [](auto& c) { c.request("p", "g", "Succeeded"); });
  rules.stays("succeeded, and its pod lives", [](auto& c) {
    c.request("p", "g", "Succeeded");
    c.plain_pod("p");
  });
  rules.goes("succeeded, and its pod has ended", [](auto& c) {
    c.request("p", "g", "Succeeded");
    c.plain_pod("p").phase = Interned("Failed");
  });
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

}  // namespace
}  // namespace gso::test::reservation_users_test
