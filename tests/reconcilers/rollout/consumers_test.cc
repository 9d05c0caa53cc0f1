// Which pods count as GPU consumers of a node: those that a change of its sharing might break. From a pod's JSON to the
// answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/project.h"

namespace gso::test::consumers_test {
namespace {

struct Case {
  std::string_view name;
  std::string_view meta;  // Further fields of metadata.
  std::string_view spec;
  bool consumer;
};

constexpr std::string_view kOfDaemonSet =
    R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"u","controller":true}])";
constexpr std::string_view kOfKai = R"("schedulerName":"kai-scheduler","containers":[{"name":"main"}])";
constexpr std::string_view kPlain = R"("containers":[{"name":"main"}])";

// A device plugin whose MPS directory is not at one of the usual paths.
DaemonSet plugin(std::string_view container) {
  const auto out = project_daemonset(fmt::format(
      R"({{"kind":"DaemonSet","metadata":{{"name":"plugin","namespace":"gpu","uid":"u1"}},"spec":{{"template":{{"spec":{{
      "volumes":[{{"name":"mps-root","hostPath":{{"path":"/var/lib/mps/"}}}},{{"name":"host","hostPath":{{"path":"/"}}}}],
      "containers":[{}]}}}}}}}})",
      container));
  EXPECT_TRUE(out.has_value()) << out.error().message;
  return *out;
}

World world_with(std::string_view container) {
  World world;
  world.daemonsets.apply(plugin(container));
  return world;
}

// KAI is installed, and a BindRequest of it names the pod n/bound.
void install_kai(World& world) {
  world.kai.configs_served = world.kai.bind_requests_served = true;
  BindRequest request;
  request.meta.ns = k8s::Interned("n");
  request.meta.name = request.pod_name = "bound";
  world.kai.bind_requests.apply(std::move(request));
}

// `meta` comes after the name p and the namespace n, and can name others.
bool consumes(std::string_view meta, std::string_view spec, const World& world, std::string_view phase = "Running") {
  const auto pod = project_pod(fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"p","namespace":"n"{}{}}},"spec":{{{}}},"status":{{"phase":"{}"}}}})",
      meta.empty() ? "" : ",", meta, spec, phase));
  EXPECT_TRUE(pod.has_value()) << pod.error().message;
  return is_gpu_consumer(*pod, world);
}

class Consumer : public testing::TestWithParam<Case> {};

TEST_P(Consumer, IsTold) {
  World world =
      world_with(R"({"name":"nvidia-device-plugin","volumeMounts":[{"name":"mps-root","mountPath":"/mps"}]})");
  install_kai(world);
  EXPECT_EQ(consumes(GetParam().meta, GetParam().spec, world), GetParam().consumer);
}

constexpr Case kCases[] = {
    // --- Requests.
    {"RequestsGPUs", "", R"("containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}])", true},
    {"RequestsSharedGPUs", "", R"("containers":[{"resources":{"limits":{"nvidia.com/gpu.shared":1}}}])", true},
    {"RequestsMIGDevices", "", R"("containers":[{"resources":{"limits":{"nvidia.com/mig-1g.5gb":"1"}}}])", true},
    {"RequestsInAnInitContainer", "",
     R"("containers":[{"name":"c"}],"initContainers":[{"resources":{"requests":{"nvidia.com/gpu":"1"}}}])", true},
    {"RequestsNothing", "", kPlain, false},
    {"RequestsZero", "", R"("containers":[{"resources":{"limits":{"nvidia.com/gpu":"0"}}}])", false},
    {"RequestsAnotherVendorsDevices", "", R"("containers":[{"resources":{"limits":{"amd.com/gpu":"1"}}}])", false},
    // --- Devices without a request.
    {"RuntimeClass", "", R"("runtimeClassName":"nvidia","containers":[{"name":"c"}])", true},
    {"RuntimeClassCDI", "", R"("runtimeClassName":"nvidia-cdi","containers":[{"name":"c"}])", true},
    {"RuntimeClassLegacy", "", R"("runtimeClassName":"nvidia-legacy","containers":[{"name":"c"}])", true},
    {"AnotherRuntimeClass", "", R"("runtimeClassName":"gvisor","containers":[{"name":"c"}])", false},
    {"RuntimeClassOfADaemonSet", kOfDaemonSet, R"("runtimeClassName":"nvidia-cdi","containers":[{"name":"c"}])", false},
    {"VisibleDevices", "", R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}])", true},
    {"VisibleDevicesVoid", "", R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"void"}]}])", false},
    {"VisibleDevicesNone", "", R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"none"}]}])", false},
    {"VisibleDevicesOfADaemonSet", kOfDaemonSet,
     R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}])", false},
    {"HasAResourceClaim", "",
     R"("resourceClaims":[{"name":"gpu","resourceClaimName":"c"}],"containers":[{"name":"c"}])", true},
    // --- MPS.
    {"PipeOfTheChart", "", R"("volumes":[{"name":"p","hostPath":{"path":"/run/nvidia/mps/nvidia.com/gpu/pipe"}}])",
     true},
    {"PipeOfR615", "", R"("volumes":[{"name":"p","hostPath":{"path":"/run/nvidia-mps"}}])", true},
    {"PipeBeforeR615", "", R"("volumes":[{"name":"p","hostPath":{"path":"/tmp/nvidia-mps"}}])", true},
    {"PipeOfThePluginContainer", "", R"("volumes":[{"name":"p","hostPath":{"path":"/mps/nvidia.com/gpu/pipe"}}])",
     true},
    {"PipeBySubPath", "",
     R"("volumes":[{"name":"r","hostPath":{"path":"/run"}}],
        "containers":[{"volumeMounts":[{"name":"r","mountPath":"/pipe","subPath":"nvidia/mps"}]}])",
     true},
    {"PipeOfThisPlugin", "", R"("volumes":[{"name":"p","hostPath":{"path":"/var/lib/mps"}}])", true},
    {"PipeBelowThisPluginsRoot", "",
     R"("volumes":[{"name":"p","hostPath":{"path":"/var/lib/mps/nvidia.com/gpu/pipe"}}])", true},
    {"ADirectoryWithASimilarName", "", R"("volumes":[{"name":"p","hostPath":{"path":"/var/lib/mps-data"}}])", false},
    {"AnotherHostPath", "", R"("volumes":[{"name":"p","hostPath":{"path":"/var/log"}}])", false},
    {"TheDriversDirectory", "", R"("volumes":[{"name":"p","hostPath":{"path":"/run/nvidia/driver"}}])", false},
    {"PipeByVariable", "",
     R"("volumes":[{"name":"p","hostPath":{"path":"/mnt/pipes"}}],"containers":[{
        "env":[{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"/pipes/"}],"volumeMounts":[{"name":"p","mountPath":"/pipes"}]}])",
     true},
    {"PipeByVariableOfAnotherContainer", "",
     R"("volumes":[{"name":"p","persistentVolumeClaim":{"claimName":"c"}}],"containers":[
        {"name":"a","env":[{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"/pipes"}]},
        {"name":"b","volumeMounts":[{"name":"p","mountPath":"/pipes"}]}])",
     true},
    {"PipeByVariableBelowAHostPath", "",
     R"("volumes":[{"name":"t","hostPath":{"path":"/mnt"}}],"containers":[{
        "env":[{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"/t/pipes"}],"volumeMounts":[{"name":"t","mountPath":"/t"}]}])",
     true},
    {"ADaemonOfItsOwnBelowAnEmptyDir", "",
     R"("volumes":[{"name":"t","emptyDir":{}}],"containers":[{
        "env":[{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"/t/pipes"}],"volumeMounts":[{"name":"t","mountPath":"/t"}]}])",
     false},
    {"VariableWithoutAMount", "", R"("containers":[{"env":[{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"/pipes"}]}])",
     false},
    // --- KAI.
    {"KAIFraction", R"("annotations":{"gpu-fraction":"0.5"})", kOfKai, true},
    {"KAIMemory", R"("annotations":{"gpu-memory":"2000"})", kOfKai, true},
    {"KAIGroup", R"("labels":{"runai-gpu-group":"g"})", kOfKai, true},
    {"KAISeveralDevices", R"("labels":{"runai-gpu-group/g1":"g1","runai-gpu-group/g2":"g2"})", kOfKai, true},
    {"NvFractionsMemory", R"("annotations":{"nvidia.com/container.main.gpu-memory.request":"2Gi"})", kOfKai, true},
    {"NvFractionsCompute", R"("annotations":{"nvidia.com/container.main.gpu-compute.mode":"sm-sharing"})", kOfKai,
     true},
    {"NvFractionsDevices", R"("annotations":{"nvidia.com/container.main.gpus.devices":"2"})", kOfKai, true},
    {"KAIFractionThatAnotherSchedulerPlaced", R"("annotations":{"gpu-fraction":"0.5"})",
     R"("schedulerName":"default-scheduler","containers":[{"name":"c"}])", false},
    {"KAIGroupOnAPodThatNobodyPlaced", R"("labels":{"runai-gpu-group":"g"})", kPlain, false},
    {"AnotherAnnotationOfNVIDIA", R"("annotations":{"nvidia.com/container.main.note":"x"})", kPlain, false},
};
INSTANTIATE_TEST_SUITE_P(Pods, Consumer, testing::ValuesIn(kCases),
                         [](const auto& entry) { return std::string(entry.param.name); });

// Anybody who can create pods can write KAI's marks on them.
TEST(Consumers, AreNotThePodsThatKaiHasNotPlaced) {
  const auto asked = [](const World& world, std::string_view name, std::string_view scheduler) {
    return consumes(fmt::format(R"("name":"{}","annotations":{{"gpu-fraction":"0.5"}})", name),
                    fmt::format(R"("schedulerName":"{}","containers":[{{"name":"c"}}])", scheduler), world);
  };
  World world;
  EXPECT_FALSE(asked(world, "p", "kai-scheduler")) << "KAI is not installed";
  world.kai.use_known = false;
  EXPECT_TRUE(asked(world, "p", "kai-scheduler")) << "whether KAI is installed is unknown";
  install_kai(world);
  EXPECT_TRUE(asked(world, "p", "kai-scheduler"));
  EXPECT_TRUE(asked(world, "bound", "default-scheduler")) << "a BindRequest has placed it";
  EXPECT_FALSE(asked(world, "p", "default-scheduler"));
}

// A claim can be for a device of any driver.
TEST(Consumers, HaveAClaimWhereTheGpusDriverOffersDevices) {
  const auto asked = [](const World& world) {
    return consumes("", R"("nodeName":"n1","resourceClaims":[{"name":"x"}],"containers":[{"name":"c"}])", world);
  };
  const auto offer = [](World& world, std::string_view driver, std::string_view node) {
    ResourceSlice slice;
    slice.meta.name = fmt::format("{}-{}", driver, node);
    slice.driver = k8s::Interned(driver);
    slice.node = k8s::Interned(node);
    world.resource_slices.apply(std::move(slice));
  };
  World world;
  EXPECT_TRUE(asked(world)) << "ResourceSlices cannot be read";
  world.resource_slices.mark_synced();
  EXPECT_FALSE(asked(world));
  offer(world, "dra.net", "n1");
  offer(world, "gpu.nvidia.com", "n2");
  EXPECT_FALSE(asked(world));
  offer(world, "gpu.nvidia.com", "n1");
  EXPECT_TRUE(asked(world));
}

TEST(Consumers, APodThatHasEndedIsNone) {
  constexpr std::string_view kGpu = R"("containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}])";
  const World world;
  EXPECT_FALSE(consumes("", kGpu, world, "Succeeded"));
  EXPECT_FALSE(consumes("", kGpu, world, "Failed"));
  EXPECT_TRUE(consumes("", kGpu, world, "Pending")) << "bound, and about to start";
}

TEST(Consumers, TheRootOfMPSIsReadFromFlagVariableOrVolumeOfOperandsOnly) {
  constexpr std::string_view kPod = R"("volumes":[{"name":"p","hostPath":{"path":"/srv/mps/pipe"}}])";
  const std::pair<std::string_view, bool> rows[] = {
      {R"x({"name":"nvidia-device-plugin-ctr","args":["--mps-root=/srv/mps"]})x", true},
      {R"x({"name":"nvidia-device-plugin-ctr","args":["--mps-root","/srv/mps/"]})x", true},
      {R"x({"name":"mps-control-daemon-ctr","env":[{"name":"MPS_ROOT","value":"/srv/mps"}]})x", true},
      {R"x({"name":"nvidia-device-plugin-ctr","env":[{"name":"MPS_ROOT","value":"/"}]})x", false},
      {R"x({"name":"nvidia-device-plugin-ctr","env":[{"name":"MPS_ROOT","value":"$(ROOT)"}]})x", false},
      {R"x({"name":"backup","env":[{"name":"MPS_ROOT","value":"/srv/mps"}]})x", false},
  };
  for (const auto& [container, consumer] : rows)
    EXPECT_EQ(consumes("", kPod, world_with(container)), consumer) << container;
}

// `cleanup` lists no operand pods: the plugin's pods, which mount its daemon's directory, are known by their DaemonSet.
TEST(Consumers, AreNotThePodsOfThePluginsDaemonSet) {
  const World world = world_with(R"({"name":"nvidia-device-plugin"})");
  const auto asked = [&](std::string_view name, std::string_view uid) {
    return consumes(
        fmt::format(R"("namespace":"gpu","ownerReferences":[{{"apiVersion":"apps/v1","kind":"DaemonSet",
        "name":"{}","uid":"{}","controller":true}}])",
                    name, uid),
        R"("volumes":[{"name":"mps-root","hostPath":{"path":"/run/nvidia/mps"}}],"containers":[{"name":"c"}])", world);
  };
  EXPECT_FALSE(asked("plugin", "u1"));
  EXPECT_TRUE(asked("plugin", "of a DaemonSet that had the name before"));
  EXPECT_TRUE(asked("another", "u2"));
}

}  // namespace
}  // namespace gso::test::consumers_test
