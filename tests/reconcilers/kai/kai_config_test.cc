// kai.config, what manifests say of KAI, and the projections.
#include <gtest/gtest.h>

#include <functional>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/registry.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::kai_config_test {
namespace {

using namespace std::chrono_literals;

KaiSchema schema(std::set<std::string> fields) {
  KaiSchema out;
  out.meta.name = kai::kConfigCrd;
  out.fields = std::move(fields);
  return out;
}

TEST(KaiSharingMode, FollowsTheFieldsThatTheSchemaHas) {
  const struct {
    const char* name;
    std::optional<bool> sharing;
    std::optional<std::string> mode;
    bool knows_modes;
    bool on;
    const char* decided_by;
  } rows[] = {
      {"old, unset", {}, {}, false, false, "default"},
      {"old, on", true, {}, false, true, "spec.admission.gpuSharing"},
      {"new, unset", {}, {}, true, true, "default"},
      {"new, HamiCore", {}, "HamiCore", true, true, "spec.global.gpuSharingMode"},
      {"new, NvFractions", {}, "NvFractions", true, true, "spec.global.gpuSharingMode"},
      {"new, NvFractions, whose admission reads no gpuSharing", false, "NvFractions", true, true,
       "spec.global.gpuSharingMode"},
      {"new, Disabled", {}, "Disabled", true, false, "spec.global.gpuSharingMode"},
      {"new, explicit wins", false, "NonMemoryEnforced", true, false, "spec.admission.gpuSharing"},
      {"old schema ignores a mode that a manifest carries", {}, "HamiCore", false, false, "default"},
  };
  for (const auto& row : rows) {
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
  // Whether kai.config reports that now.
  bool says(const char* reason) { return reasons(look(), "kai-config").contains(reason); }
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

TEST_F(KaiConfigState, ReportsThatAnUpgradeWipedAManualPatch) {
  set_by("helm", false);
  look();
  set_by("kubectl-patch", true);
  EXPECT_FALSE(says("KAIPatchWiped"));
  cluster.config().meta.uid = "uid-config-2";
  set_by("helm", false);
  const Plan wiped = look();
  EXPECT_TRUE(reasons(wiped, "kai-config").contains("KAIPatchWiped"));
  EXPECT_NE(message(wiped, "kai-config", "KAIPatchWiped").find("was true (set by kubectl-patch) and is false"),
            std::string::npos);
  const int after = writes;
  EXPECT_TRUE(says("KAIPatchWiped"));  // Stands until it is settled, written once.
  EXPECT_EQ(writes, after);
  set_by("helm", true);  // Put into the chart's values.
  EXPECT_FALSE(says("KAIPatchWiped"));
}

TEST_F(KaiConfigState, KnowsWhoRendersAndWhoPatches) {
  const struct {
    const char* before;
    const char* after;
    bool wiped;
  } rows[] = {
      {"kubectl-patch", "helm", true},
      {"kubectl-patch", "kai-config-deployer", true},
      {"kubectl-edit", "terraform-provider-helm_v2.12.1_x5", true},
      {"kubectl-edit", "Helm", true},
      {"k9s", "argocd-application-controller", true},
      {"kai-config-deployer", "helm", false},
      {"helm", "helm", false},  // The chart's values have changed.
      {"helm", "kai-config-deployer", false},
      {"terraform-provider-helm_v2.12.1_x5", "helm", false},
      {"kubectl-patch", "kubectl-edit", false},
  };
  for (const auto& row : rows) {
    cluster.world.configmaps.erase({cluster.settings.operator_namespace, cluster.settings.state_config_map});
    set_by(row.before, true);
    look();
    set_by(row.after, false);
    EXPECT_EQ(says("KAIPatchWiped"), row.wiped) << row.before << ", " << row.after;
  }
}

TEST_F(KaiConfigState, RemembersEveryFieldThatTheGraceRestsOn) {
  const auto read = [](const char* manager, const char* timeouts) {
    return project_kai_config(
               std::string(R"({"metadata":{"name":"kai-config","uid":"u","managedFields":[{"manager":")") + manager +
               R"(","time":"2026-02-01T00:00:00Z","fieldsV1":{"f:spec":{"f:binder":{
      "f:volumeBindingTimeoutSeconds":{},"f:resourceReservation":{"f:allocationTimeout":{}}}}}}]},"spec":{"binder":)" +
               timeouts + "}}")
        .value();
  };
  cluster.config() =
      read("kubectl-patch", R"({"volumeBindingTimeoutSeconds":900,"resourceReservation":{"allocationTimeout":60}})");
  look();
  cluster.config() =
      read("helm", R"({"volumeBindingTimeoutSeconds":120,"resourceReservation":{"allocationTimeout":40}})");
  std::string told;
  for (const Finding& finding : look().findings) told += finding.why.code == "KAIPatchWiped" ? finding.why.message : "";
  EXPECT_NE(told.find("volumeBindingTimeoutSeconds was 900"), std::string::npos) << told;
  EXPECT_NE(told.find("allocationTimeout was 60"), std::string::npos) << told;
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
  EXPECT_TRUE(says("KAIPatchWiped"));
}

TEST_F(KaiConfigState, NamesARuntimeClassThatIsNotThere) {
  cluster.world.kai.runtime_classes.init_done();
  EXPECT_TRUE(says("KAIRuntimeClassMissing"));
  RuntimeClass nvidia;
  nvidia.meta.name = "nvidia";
  cluster.world.kai.runtime_classes.apply(nvidia);
  EXPECT_FALSE(says("KAIRuntimeClassMissing"));
  cluster.config().reservation_runtime_class = "mine";
  EXPECT_TRUE(says("KAIRuntimeClassMissing"));
  cluster.config().reservation_runtime_class = "";
  EXPECT_FALSE(says("KAIRuntimeClassMissing"));
}

TEST_F(KaiConfigState, LeavesTheReservationsRuntimeClassOutWhereKaiIsNewer) {
  cluster.world.kai.runtime_classes.init_done();
  cluster.world.kai.schemas.apply(schema({"spec.admission.gpuFractionRuntimeClassName"}));
  EXPECT_FALSE(says("KAIRuntimeClassMissing"));
}

TEST_F(KaiConfigState, NamesPullSecretsThatAreIgnored) {
  cluster.reservation("r", "g").waiting_reason = Interned("ImagePullBackOff");
  EXPECT_TRUE(says("KAIPullSecretsIgnored"));
  cluster.reservation("r", "g").waiting_reason = Interned("InvalidImageName");
  EXPECT_FALSE(says("KAIPullSecretsIgnored")) << "no Secret corrects a name";
  cluster.reservation("r", "g").waiting_reason = Interned("ErrImagePull");
  EXPECT_TRUE(says("KAIPullSecretsIgnored"));
  cluster.config().pull_secrets = 1;
  EXPECT_FALSE(says("KAIPullSecretsIgnored"));
  cluster.config().misspelt_pull_secret = true;
  EXPECT_TRUE(says("KAIPullSecretsIgnored"));
}

// --- What `plan` and `lint` read.

TEST(KaiManifests, SayWhatTheySayAndNoMore) {
  const std::string config = "{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}}\n";
  const std::string crd =
      "---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "
      "configs.kai.scheduler}, spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {}}}]}}\n";
  const std::string runtime_class = "---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: x}}\n";
  const auto load = [](const std::string& text) { return load_manifests({{"f", text}}, WallTime{}).value(); };
  EXPECT_EQ(view_kai(load(config).world.kai, {}).unrecognised, "");
  EXPECT_NE(view_kai(load(config + crd).world.kai, {}).unrecognised, "");
  EXPECT_FALSE(load(config).world.kai.runtime_classes.synced());
  EXPECT_TRUE(load(config + runtime_class).world.kai.runtime_classes.synced());
}

TEST(KaiManifests, HoldTheScalingPodsOfTheNamespaceThatKaiConfigNames) {
  const std::string text =
      "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: kai-scale-adjust}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: scale}}\n---\n"
      "{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}, spec: {nodeScaleAdjuster: {args: "
      "{nodeScaleNamespace: scale}}}}\n";
  const auto loaded = load_manifests({{"f", text}}, WallTime{});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto& pods = loaded->world.kai.lookups.waiting->pods;
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods.front().pod.meta.name, "b");
}

TEST(KaiManifests, KnowWhoseAConfigMapIs) {
  const std::string text =
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: t, ownerReferences: [{apiVersion: v1, kind: "
      "Pod, "
      "name: p, uid: u1}]}, data: {NVIDIA_VISIBLE_DEVICES: GPU-a}}\n";
  const auto loaded = load_manifests({{"f", text}}, WallTime{});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const LookupResults::Devices& found = loaded->world.kai.lookups.config_maps.at({"t", "m"});
  EXPECT_EQ(found.of("u1"), "GPU-a");
  EXPECT_EQ(found.of("u2"), std::nullopt);
  EXPECT_EQ(found.of(""), std::nullopt);
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

// A field of a version that is not served, or not the one that we read, is not in the objects that we see.
TEST(KaiProjection, FindsTheFieldsOfTheVersionThatIsRead) {
  const auto sharing = [](const char* version, const char* served) {
    return std::string(R"({"name":")") + version + R"(","served":)" + served +
           R"(,"schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"global":{"properties":{
      "gpuSharingMode":{"type":"string"}}}}}}}}})";
  };
  const std::string plain = R"({"name":"v1","served":true,"schema":{"openAPIV3Schema":{}}})";
  const struct {
    const char* name;
    std::string versions;
    bool has;
  } rows[] = {
      {"in v1", sharing("v1", "true"), true},
      {"in v1 that is not served", sharing("v1", "false"), false},
      {"in v1 that says nothing of that", sharing("v1", "null"), true},
      {"in v2 that is not served", plain + "," + sharing("v2", "false"), false},
      {"in v2 alone", plain + "," + sharing("v2", "true"), false},
      {"in v1 before another", sharing("v1", "true") + R"(,{"name":"v2","served":true,"schema":{}})", true},
  };
  for (const auto& row : rows) {
    const auto found = project_kai_schema(R"({"metadata":{"name":"configs.kai.scheduler"},"spec":{"versions":[)" +
                                          row.versions + "]}}");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->has("spec.global.gpuSharingMode"), row.has) << row.name;
  }
}

}  // namespace
}  // namespace gso::test::kai_config_test
