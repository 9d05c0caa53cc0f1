// kai.config, the truth check and exclusivity.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/labels.h"
#include "reconcilers/manifests.h"
#include "reconcilers/registry.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;
using Names = std::set<std::string>;

KaiSchema schema(std::set<std::string> fields) {
  KaiSchema out;
  out.meta.name = kai::kConfigCrd;
  out.fields = std::move(fields);
  return out;
}

struct ModeRow {
  const char* name;
  std::optional<bool> sharing;
  std::optional<std::string> mode;
  bool knows_modes;
  bool on;
  const char* decided_by;
};

TEST(KaiSharingMode, FollowsTheFieldsThatTheSchemaHas) {
  const ModeRow rows[] = {
      {"old, unset", {}, {}, false, false, "default"},
      {"old, on", true, {}, false, true, "spec.admission.gpuSharing"},
      {"new, unset", {}, {}, true, true, "default"},
      {"new, HamiCore", {}, "HamiCore", true, true, "spec.global.gpuSharingMode"},
      {"new, NvFractions", {}, "NvFractions", true, false, "spec.global.gpuSharingMode"},
      {"new, Disabled", {}, "Disabled", true, false, "spec.global.gpuSharingMode"},
      {"new, explicit wins", false, "NonMemoryEnforced", true, false, "spec.admission.gpuSharing"},
      {"old schema ignores a mode that a manifest carries", {}, "HamiCore", false, false, "default"},
  };
  for (const ModeRow& row : rows) {
    KaiCluster cluster;
    cluster.config().gpu_sharing = row.sharing;
    cluster.config().gpu_sharing_mode = row.mode;
    cluster.world.kai.schemas.apply(
        schema(row.knows_modes ? std::set<std::string>{"spec.global.gpuSharingMode"} : std::set<std::string>{}));
    cluster.apply();
    const KaiSharing sharing = view_kai(cluster.world.kai, KaiSettings{}).sharing;
    EXPECT_EQ(sharing.enabled, row.on) << row.name;
    EXPECT_EQ(sharing.decided_by, row.decided_by) << row.name;
  }
}

TEST(KaiView, FillsInWhatIsAbsent) {
  KaiWorld kai;
  kai.configs.init_done();
  const KaiView view = view_kai(kai, KaiSettings{});
  EXPECT_EQ(view.ns, "kai-scheduler");
  EXPECT_EQ(view.reservations, "kai-resource-reservation");
  EXPECT_EQ(view.app_label, "kai-resource-reservation");
  EXPECT_EQ(view.grace, Duration(300s));
  EXPECT_TRUE(view.runtime_classes.empty());
}

class KaiConfigState : public ::testing::Test {
 protected:
  // Runs kai.config and stores what it writes.
  Plan look() {
    Plan plan = cluster.pass("kai.config");
    for (const PlannedAction& planned : plan.actions) {
      if (const auto* write = std::get_if<WriteConfigMap>(&planned.action)) {
        ConfigMap state;
        state.meta.name = write->config_map.name;
        state.meta.ns = Interned(write->config_map.ns);
        for (const auto& [key, text] : write->set) state.data[key] = std::make_shared<const std::string>(text);
        cluster.world.configmaps.apply(state);
        ++writes;
      }
    }
    return plan;
  }
  void set_by(const char* manager, bool value) {
    cluster.config().gpu_sharing = value;
    cluster.config().managers["spec.admission.gpuSharing"] = manager;
  }
  KaiCluster cluster;
  int writes = 0;
};

TEST_F(KaiConfigState, IsWrittenOnceAndThenSilent) {
  cluster.world.kai.runtime_classes.init_done();
  look();
  EXPECT_EQ(writes, 1);
  look();
  look();
  EXPECT_EQ(writes, 1);
}

TEST_F(KaiConfigState, TellsThatAnUpgradeWipedAManualPatch) {
  set_by("helm", false);
  look();
  set_by("kubectl-patch", true);
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIPatchWiped"));
  cluster.config().meta.uid = "uid-config-2";
  set_by("helm", false);
  const Plan wiped = look();
  EXPECT_TRUE(reasons(wiped, "kai-config").contains("KAIPatchWiped"));
  EXPECT_NE(message(wiped, "kai-config", "KAIPatchWiped").find("was true (set by kubectl-patch) and is false"),
            std::string::npos);
  const int after = writes;
  EXPECT_TRUE(reasons(look(), "kai-config").contains("KAIPatchWiped"));  // Stands until it is settled, written once.
  EXPECT_EQ(writes, after);
  set_by("helm", true);  // Put into the chart's values.
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIPatchWiped"));
}

TEST_F(KaiConfigState, TakesAChangeOfTheChartsValuesForNoWipe) {
  set_by("helm", true);
  look();
  set_by("helm", false);
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIPatchWiped"));
}

TEST_F(KaiConfigState, ComparesWithWhatStoodBeforeKaiWasRemovedForAWhile) {
  set_by("kubectl-edit", true);
  look();
  const KaiConfig kept = cluster.config();
  cluster.config_.reset();
  look();
  cluster.config_ = kept;
  cluster.config().meta.uid = "uid-config-2";
  set_by("helm", false);
  EXPECT_TRUE(reasons(look(), "kai-config").contains("KAIPatchWiped"));
}

TEST_F(KaiConfigState, NamesARuntimeClassThatIsNotThere) {
  cluster.world.kai.runtime_classes.init_done();
  EXPECT_TRUE(reasons(look(), "kai-config").contains("KAIRuntimeClassMissing"));
  RuntimeClass nvidia;
  nvidia.meta.name = "nvidia";
  cluster.world.kai.runtime_classes.apply(nvidia);
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIRuntimeClassMissing"));
  cluster.config().reservation_runtime_class = "mine";
  EXPECT_TRUE(reasons(look(), "kai-config").contains("KAIRuntimeClassMissing"));
  cluster.config().reservation_runtime_class = "";
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIRuntimeClassMissing"));
}

TEST_F(KaiConfigState, LeavesTheReservationsRuntimeClassOutWhereKaiIsNewer) {
  cluster.world.kai.runtime_classes.init_done();
  cluster.world.kai.schemas.apply(schema({"spec.admission.gpuFractionRuntimeClassName"}));
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIRuntimeClassMissing"));
}

TEST_F(KaiConfigState, NamesPullSecretsThatAreIgnored) {
  cluster.reservation("r", "g").waiting_reason = Interned("ImagePullBackOff");
  EXPECT_TRUE(reasons(look(), "kai-config").contains("KAIPullSecretsIgnored"));
  cluster.config().pull_secrets = 1;
  EXPECT_FALSE(reasons(look(), "kai-config").contains("KAIPullSecretsIgnored"));
  cluster.config().misspelt_pull_secret = true;
  EXPECT_TRUE(reasons(look(), "kai-config").contains("KAIPullSecretsIgnored"));
}

TEST(TruthCheck, NamesReservationsThatKaiCountsAsFree) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_FALSE(reasons(cluster.run(120s), "n1").contains(std::string(kKaiMismatch)));  // A bind may take that long.
  const Plan plan = cluster.run(60s);
  EXPECT_TRUE(reasons(plan, "n1").contains(std::string(kKaiMismatch)));
  EXPECT_NE(message(plan, "n1", kKaiMismatch).find("kai-resource-reservation/r"), std::string::npos);
}

TEST(TruthCheck, CountsNoGpuForAReservationThatHasEnded) {
  KaiCluster cluster;
  cluster.reservation("r", "g").phase = Interned("Failed");
  cluster.reservation("s", "h").meta.deletion_timestamp = cluster.now;
  EXPECT_EQ(reasons(cluster.run(180s), "n1"), Names{});
}

TEST(TruthCheck, NamesConsumersWithoutAReservation) {
  KaiCluster cluster;
  cluster.consumer("p", "g");
  const Plan plan = cluster.run(180s);
  EXPECT_NE(message(plan, "n1", kKaiMismatch).find("team/p"), std::string::npos);
}

TEST(TruthCheck, NamesExtraReservations) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.reservation("s", "g", "n1", "GPU-b");
  cluster.consumer("p", "g");
  EXPECT_NE(message(cluster.run(180s), "n1", kKaiMismatch).find("more than one reservation"), std::string::npos);
}

TEST(TruthCheck, IsSatisfiedByMultiDeviceConsumersAndByBindsInFlight) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.multi_consumer("p", {"g"});
  cluster.reservation("s", "h", "n2", "GPU-b");
  cluster.request("q", "h", "Pending");
  const Plan plan = cluster.run(300s);
  EXPECT_EQ(reasons(plan, "n1"), Names{});
  EXPECT_EQ(reasons(plan, "n2"), Names{});
}

TEST(Exclusivity, TellsWhereKaiSharesGpusThatThePluginServesAsReplicas) {
  struct {
    const char* key;
    const char* value;
    bool told;
  } rows[] = {{"nvidia.com/gpu.replicas", "4", true},
              {"nvidia.com/gpu.replicas", "1", false},
              {"nvidia.com/gpu.sharing-strategy", "mps", true},
              {"nvidia.com/gpu.sharing-strategy", "none", false}};
  for (const auto& row : rows) {
    KaiCluster cluster;
    cluster.nodes.at("n1").meta.labels.set(row.key, row.value);
    cluster.reservation("r", "g");
    cluster.consumer("p", "g");
    EXPECT_EQ(reasons(cluster.pass(), "n1").contains(std::string(kKaiOnSharedNode)), row.told)
        << row.key << "=" << row.value;
    cluster.pods.clear();
    EXPECT_EQ(reasons(cluster.pass(), "n1"), Names{}) << row.key << "=" << row.value;
  }
}

TEST(KaiIndex, CountsWhatIsOnANode) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.consumer("p", "g");
  cluster.consumer("done", "g").phase = Interned("Succeeded");
  cluster.request("p", "g", "Succeeded");
  cluster.request("q", "h", "Pending");
  KaiIndex index;
  index.attach(cluster.world);
  cluster.apply();
  index.refresh(cluster.world, cluster.settings);
  EXPECT_EQ(index.use_of("n1"), "1 reservation, 1 fraction pod, 1 BindRequest in flight");
  EXPECT_EQ(index.use_of("n2"), "");
  EXPECT_EQ(index.take_changed_nodes(), std::vector<std::string>{"n1"});
  cluster.pods.clear();
  cluster.requests.clear();
  cluster.apply();
  index.refresh(cluster.world, cluster.settings);
  EXPECT_EQ(index.use_of("n1"), "");
  EXPECT_TRUE(index.groups().empty());
  EXPECT_TRUE(index.attention().empty());
}

// --- Pods that wait, from manifests.

struct StuckRow {
  const char* name;
  const char* config;       // spec.admission
  const char* node_labels;  // "" or a label.
  const char* pod_labels;
  const char* annotations;
  const char* more;   // Another object.
  const char* cause;  // Part of the message; empty: no finding.
};

TEST(StuckPods, AreNamedWithTheirCause) {
  const StuckRow rows[] = {
      {"sharing off", "{gpuSharing: false}", "", "kai.scheduler/queue: q", "gpu-fraction: '0.5'", "",
       "GPU sharing is off"},
      {"no queue", "{gpuSharing: true}", "", "a: b", "gpu-fraction: '0.5'", "", "no label kai.scheduler/queue"},
      {"no memory label", "{gpuSharing: true}", "", "kai.scheduler/queue: q", "gpu-memory: '2000'", "",
       "label nvidia.com/gpu.memory"},
      {"too much memory", "{gpuSharing: true}", "nvidia.com/gpu.memory: '1000'", "kai.scheduler/queue: q",
       "gpu-memory: '2000'", "", "the largest GPU has 1000 MiB"},
      {"too many devices", "{gpuSharing: true}", "", "kai.scheduler/queue: q",
       "{gpu-fraction: '0.5', gpu-fraction-num-devices: '9'}", "", "no node has more than 2"},
      {"scaling pod", "{gpuSharing: true}", "", "kai.scheduler/queue: q", "gpu-fraction: '0.5'",
       "---\n{apiVersion: v1, kind: Pod, metadata: {name: s, namespace: kai-scale-adjust}, status: {phase: Pending}}\n",
       "scaling pod kai-scale-adjust/s"},
      {"nothing to see", "{gpuSharing: true}", "", "kai.scheduler/queue: q", "gpu-fraction: '0.5'", "",
       "has made no BindRequest"},
      {"no fraction", "{gpuSharing: true}", "", "kai.scheduler/queue: q", "x: y", "", ""},
  };
  const WallTime now = k8s::parse_rfc3339("2026-06-01T12:00:00Z").value();
  for (const StuckRow& row : rows) {
    const auto braced = [](const char* text) {
      return *text == '{' ? std::string(text) : "{" + std::string(text) + "}";
    };
    const std::string text =
        std::string("{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}, spec: {admission: ") +
        row.config +
        "}}\n---\n{apiVersion: v1, kind: Node, metadata: {name: node-1, labels: " + braced(row.node_labels) +
        "}, status: {allocatable: {nvidia.com/gpu: '2'}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p, "
        "namespace: t, "
        "creationTimestamp: '2026-06-01T11:00:00Z', labels: " +
        braced(row.pod_labels) + ", annotations: " + braced(row.annotations) +
        "}, spec: {schedulerName: kai-scheduler, containers: [{name: c}]}, status: {phase: Pending}}\n" + row.more;
    auto loaded = load_manifests({{"f", text}}, now);
    ASSERT_TRUE(loaded) << row.name << ": " << loaded.error().message;
    FleetIndex index;
    index.note_everything_changed();
    const PlannerSettings settings;
    index.refresh(loaded->world, settings);
    const std::map<std::string, WallTime> observed;
    const Snapshot snapshot{loaded->world, now, observed, loaded->consumers, settings};
    Plan plan;
    for (const Reconciler& reconciler : reconcilers()) {
      if (reconciler.name == kReservationGc) plan = reconciler.plan(snapshot, index);
    }
    const std::string said = message(plan, "p", "KAIPodStuck");
    EXPECT_EQ(said.empty(), *row.cause == '\0') << row.name << ": " << said;
    EXPECT_NE(said.find(row.cause), std::string::npos) << row.name << ": " << said;
  }
}

TEST(StuckPods, AReservationWithoutItsConsumersTolerationIsNamed) {
  for (const bool tolerated : {false, true}) {
    KaiCluster cluster;
    Taint taint;
    taint.key = Interned("maintenance");
    taint.effect = Interned("NoExecute");
    cluster.nodes.at("n1").taints = {taint};
    Toleration toleration;
    toleration.key = Interned("maintenance");
    toleration.op = Interned("Exists");
    KaiPod& reservation = cluster.reservation("r", "g");
    if (tolerated) reservation.tolerations = {toleration};
    cluster.consumer("p", "g").tolerations = {toleration};
    EXPECT_EQ(reasons(cluster.pass(), "r").contains("KAIReservationWithoutToleration"), !tolerated);
  }
}

// --- Projections.

TEST(KaiProjection, ReadsTheConfigAndWhoWroteIt) {
  const auto config = project_kai_config(R"({"metadata":{"name":"kai-config","managedFields":[
    {"manager":"helm","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{"f:admission":{"f:gpuSharing":{}}}}},
    {"manager":"kubectl-patch","time":"2026-02-01T00:00:00Z","fieldsV1":{"f:spec":{"f:admission":{"f:gpuSharing":{}}}}}]},
    "spec":{"namespace":"kai","admission":{"gpuSharing":true,"gpuPodRuntimeClassName":null},"global":{"imagesPullSecret":"x"},
    "binder":{"volumeBindingTimeoutSeconds":30,"resourceReservation":{"namespace":"res","appLabel":"a","allocationTimeout":7}}}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ns, "kai");
  EXPECT_EQ(config->gpu_sharing, true);
  EXPECT_FALSE(config->pod_runtime_class.has_value());
  EXPECT_EQ(config->allocation_timeout, 7);
  EXPECT_EQ(config->volume_binding_timeout, 30);
  EXPECT_TRUE(config->misspelt_pull_secret);
  EXPECT_EQ(config->managers.at("spec.admission.gpuSharing"), "kubectl-patch");
}

TEST(KaiProjection, ReadsBothFieldsOfABindRequest) {
  const auto request =
      project_bind_request(R"({"metadata":{"name":"p","namespace":"t"},"spec":{"podName":"p","selectedNode":"n",
    "selectedGPUGroups":["a"],"selectedFractionalGpuGroups":[{"id":"b","computeSharingMode":"mps"}],"backoffLimit":null},
    "status":{"phase":"Failed","failedAttempts":2}})");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->groups.size(), 2u);
  EXPECT_EQ(request->groups[1].view(), "b");
  EXPECT_FALSE(request->backoff_limit.has_value());
  EXPECT_EQ(request->failed_attempts, 2);
  EXPECT_FALSE(project_bind_request(R"({"metadata":{"name":"p"},"spec":{"selectedGPUGroups":[7]}})"));
}

TEST(KaiProjection, FindsTheContainerThatGetsTheGpu) {
  const auto index = [](const char* named) {
    const std::string annotation =
        *named != '\0' ? std::string(R"("gpu-fraction-container-name":")") + named + "\"" : std::string();
    const auto pod = project_kai_pod(
        R"({"metadata":{"name":"p","labels":{"x":"y","runai-gpu-group":"g"},"annotations":{)" + annotation +
        R"(}},"spec":{"containers":[{"name":"a"},{"name":"b"}],"initContainers":[{"name":"i"},{"name":"j"}]}})");
    EXPECT_FALSE(pod->meta.labels.contains("x"));
    return std::string(pod->container_index.view());
  };
  EXPECT_EQ(index(""), "0");
  EXPECT_EQ(index("b"), "1");
  EXPECT_EQ(index("j"), "i1");
  EXPECT_EQ(index("nobody"), "");
}

TEST(KaiProjection, FindsTheFieldsOfASchema) {
  const auto found =
      project_kai_schema(R"({"metadata":{"name":"configs.kai.scheduler"},"spec":{"versions":[{"name":"v1","schema":
    {"openAPIV3Schema":{"properties":{"spec":{"properties":{"admission":{"properties":{"gpuSharing":{"type":"boolean"}}},
    "global":{"properties":{"schedulerName":{}}}}}}}}}]}})");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->has("spec.admission.gpuSharing"));
  EXPECT_FALSE(found->has("spec.global.gpuSharingMode"));
}

}  // namespace
}  // namespace gso::test
