// pod.reservation-gc: what a reservation is, who needs it, and what of KAI's state holds everything.
#include <gtest/gtest.h>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/kai/judgement.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::reservation_rules_test {
namespace {

using namespace std::chrono_literals;

// The pod "r" as another object.
void replace(KaiCluster& c, const std::function<void(KaiPod&)>& change) {
  KaiPod pod = r(c);
  c.pods.clear();
  change(pod);
  c.pods[pod.meta.key()] = pod;
}

TEST(ReservationRules, KnowsAReservationByItsNamespaceAppLabelAndGroup) {
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

TEST(ReservationRules, KeepsWhatALiveConsumerNeeds) {
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

TEST(ReservationRules, KeepsWhatABindInProgressNeeds) {
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

TEST(ReservationRules, DeletesNoneThatIsYoungOrHeld) {
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

TEST(ReservationRules, DeletesNoneWhileTheBinderIsNotSound) {
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

// Its startup synchronises every group: nothing is concluded from what is there in between.
TEST(ReservationRules, WaitsForABinderOfSeveralReplicasToHaveKeptItsLeader) {
  const auto led = [](KaiCluster& c, std::int64_t replicas, const char* leader, Duration since) {
    c.replicas(replicas);
    c.binder_lease = {{}, true, leader, c.now - std::chrono::duration_cast<std::chrono::milliseconds>(since)};
  };
  const Rules rules;
  rules.goes("one replica has none", [&](auto& c) { led(c, 1, "b", 1min); });
  rules.goes("no Lease", [&](auto& c) { c.replicas(2); });
  rules.goes("an old leader", [&](auto& c) { led(c, 2, "b", 1h); });
  rules.stays("a new leader", [&](auto& c) { led(c, 2, "b", 299s); });
  rules.stays("no leader", [&](auto& c) { led(c, 2, "", 1h); });
}

TEST(ReservationRules, FollowsTheStateOfKaiAndTheMode) {
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

TEST(ReservationRules, TakesOneOrphanOfANodeAtATime) {
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

TEST(ReservationRules, DeletesADuplicateOnlyWhereItIsProvenThatNobodyUsesItsGpu) {
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

TEST(ReservationRules, DeletesADuplicateOnANodeWithoutConsumers) {
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

// The binder deletes consumers only where no reservation of their group is left; "end these pods" is said when their
// GPU is lost, and no louder than that is known.
TEST(ReservationRules, RaisesTheAlarmForALostReservationOnlyWhereAConsumerMayUseItsGpu) {
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

TEST(DeviceEvidence, IsUuidsOnly) {
  using Uuids = std::optional<std::vector<std::string>>;
  EXPECT_EQ(device_uuids("GPU-a"), (Uuids{{"GPU-a"}}));
  EXPECT_EQ(device_uuids("GPU-a, GPU-b"), (Uuids{{"GPU-a", "GPU-b"}}));
  EXPECT_EQ(device_uuids("k8s.device-plugin.nvidia.com/gpu=GPU-a"), (Uuids{{"GPU-a"}}));
  for (const char* text : {"", "0", "all", "none", "GPU-a,1", "MIG-a"}) EXPECT_EQ(device_uuids(text), Uuids{}) << text;
}

TEST(KaiHold, LastsUntilEveryStoreHasSynced) {
  enum Which { nodes, pods, requests, configs, none };
  for (const Which missing : {nodes, pods, requests, configs, none}) {
    World world;
    if (missing != nodes) world.nodes.init_done();
    if (missing != pods) world.kai.pods.init_done();
    if (missing != requests) world.kai.bind_requests.init_done();
    if (missing != configs) world.kai.configs.init_done();
    EXPECT_EQ(kai_hold(world).empty(), missing == none) << missing;
  }
}

TEST(KaiSchemas, AreRecognisedByTheFieldsThatTheCollectionRestsOn) {
  const std::set<std::string> config{"spec.binder.resourceReservation.namespace",
                                     "spec.binder.resourceReservation.appLabel"};
  const struct {
    const char* name;
    std::optional<std::set<std::string>> config;
    std::optional<std::set<std::string>> request;
    bool recognised;
  } rows[] = {
      {"both, with the older field", config, {{"spec.selectedGPUGroups"}}, true},
      {"both, with the newer field", config, {{"spec.selectedFractionalGpuGroups"}}, true},
      {"a config without appLabel",
       {{"spec.binder.resourceReservation.namespace"}},
       {{"spec.selectedGPUGroups"}},
       false},
      {"a config without namespace",
       {{"spec.binder.resourceReservation.appLabel"}},
       {{"spec.selectedGPUGroups"}},
       false},
      {"a request that names no group", config, std::set<std::string>{}, false},
      {"no schema of the config", std::nullopt, {{"spec.selectedGPUGroups"}}, false},
      {"no schema of the request", config, std::nullopt, false},
  };
  for (const auto& row : rows) {
    KaiWorld kai;
    kai.configs_served = kai.bind_requests_served = kai.schemas_known = true;
    const auto add = [&](std::string_view name, const auto& fields) {
      if (!fields) return;
      KaiSchema schema;
      schema.meta.name = name;
      schema.fields = *fields;
      kai.schemas.apply(schema);
    };
    add(kai::kConfigCrd, row.config);
    add(kai::kBindRequestCrd, row.request);
    EXPECT_EQ(view_kai(kai, {}).unrecognised.empty(), row.recognised) << row.name;
  }
}

}  // namespace
}  // namespace gso::test::reservation_rules_test
