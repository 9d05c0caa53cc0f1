// Scenarios in which every node gets the same profile.
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/seeds/seed_scenarios.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

const std::map<std::string, std::string> kShared{{"nvidia.com/gpu.count", "4"},
                                                 {"nvidia.com/gpu.product", "Tesla-T4-SHARED"},
                                                 {"nvidia.com/gpu.replicas", "4"},
                                                 {"nvidia.com/gpu.sharing-strategy", "mps"}};
const std::map<std::string, std::int64_t> kSixteen{{"nvidia.com/gpu", 16}};

// Every node as the document's example, with one MPS control daemon each.
asio::awaitable<void> until_all_are_shared(Scene* scene) {
  for (const NodeSpec& node : scene->nodes()) {
    co_await scene->until("sharing by MPS on " + node.name, 30min, scene->shows(node.name, kShared, kSixteen));
    // Pods and nodes are watched separately: the one may be seen before the other.
    const auto has_one_daemon = [scene, name = node.name] {
      const bool one = scene->cluster().ready_pods("mps-control-daemon", name) == 1;
      return one ? std::string() : "there is no MPS control daemon on " + name;
    };
    co_await scene->until("the MPS control daemon of " + node.name, 30min, has_one_daemon);
  }
}

}  // namespace

// kubectl create -f mps-config-all.yaml; kubectl patch clusterpolicy …
asio::awaitable<void> cluster_wide_default(Scene* scene) {
  co_await scene->put_cluster_policy("", "");
  co_await scene->until_fleet_shows("GPUs that nobody shares", 10min);
  co_await scene->start();
  const Scene::Seen before = scene->seen();
  const std::map<std::string, std::string> profiles{{"mps-any", mps_profile(4)}};
  co_await scene->put_profiles("mps-config-all", profiles);
  co_await scene->point_cluster_policy("mps-config-all", "mps-any");
  co_await until_all_are_shared(scene);
  co_await scene->until_settled(10min);
  // The GPU Operator's own roll is followed, and not doubled.
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
  scene->require(scene->happened(Happening::started, 0) == 0, "the GPU Operator's own roll was doubled");
}

// The ConfigMap, and our operator, are there before the GPU Operator is.
asio::awaitable<void> before_installation(Scene* scene) {
  co_await scene->start();
  const std::map<std::string, std::string> profiles{{"mps-any", mps_profile(4)}};
  co_await scene->put_profiles("mps-config", profiles);
  const Scene::Check runs = [scene] {
    const JsonPtr policy = scene->cluster().policies.find({"", "default"});
    return policy != nullptr ? std::string() : std::string("there is no SharingPolicy default");
  };
  co_await scene->until("the operator to be at work", 2min, runs);
  // helm install … --set devicePlugin.config.name=mps-config
  co_await scene->put_cluster_policy("mps-config", "");
  co_await scene->until_fleet_shows("GPUs that nobody shares", 10min);
  co_await scene->until_settled(10min);
  scene->require(scene->happened(Happening::started, 0) == 0, "a node was restarted by the installation");
  co_await scene->point_cluster_policy("mps-config", "mps-any");
  co_await until_all_are_shared(scene);
  co_await scene->until_settled(10min);
  scene->require(scene->happened(Happening::started, 0) == 0, "the GPU Operator's own roll was doubled");
}

// "To apply the modified config map, manually restart …": not any more.
asio::awaitable<void> updated_config_map(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"mps-any", mps_profile(4)}};
  co_await scene->install_gpu_operator(profiles, "mps-any");
  co_await scene->install();
  co_await until_all_are_shared(scene);
  const Scene::Seen before = scene->seen();
  scene->reset_peak();
  co_await scene->edit("mps-any", mps_profile(2));
  co_await scene->until("every node with 2 replicas", 30min, scene->replicas_are(scene->all_nodes(), 2));
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
  scene->require(scene->beyond(1));
}

asio::awaitable<void> verification(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"mps-any", mps_profile(4)}};
  co_await scene->install_gpu_operator(profiles, "mps-any");
  co_await scene->install();
  co_await until_all_are_shared(scene);
  // mps-verification.yaml: five replicas, all running.
  for (int i = 1; i <= 5; ++i) co_await scene->use_gpu("gpu-01", "mps-verification-" + std::to_string(i));
  for (int i = 1; i <= 5; ++i) {
    const k8s::ObjectKey pod{"default", "mps-verification-" + std::to_string(i)};
    co_await scene->remove(kPods, pod);
  }
  // renameByDefault: true
  co_await scene->edit("mps-any", mps_profile(4, true));
  const std::map<std::string, std::string> labels{{"nvidia.com/gpu.count", "4"},
                                                  {"nvidia.com/gpu.product", "Tesla-T4"},
                                                  {"nvidia.com/gpu.replicas", "4"},
                                                  {"nvidia.com/gpu.sharing-strategy", "mps"}};
  const std::map<std::string, std::int64_t> renamed{{"nvidia.com/gpu", 0}, {"nvidia.com/gpu.shared", 16}};
  co_await scene->until("nvidia.com/gpu.shared", 60min, scene->shows("gpu-01", labels, renamed));
  co_await scene->until_settled(10min);
}

asio::awaitable<void> mps_in_kind(Scene* scene) {
  const std::string node = "kind-control-plane";
  co_await scene->put_cluster_policy("", "");
  co_await scene->until_fleet_shows("two GPUs that nobody shares", 10min);
  const OperatorSettings as_on_a_laptop{
      {"max-unavailable", "10%"}, {"max-unavailable-per-group", "25%"}, {"cluster-max-unavailable", "10%"}};
  co_await scene->start(as_on_a_laptop);
  const std::map<std::string, std::string> profiles{{"any", mps_profile(4, true)}};
  co_await scene->put_profiles("mps-config", profiles);
  co_await scene->point_cluster_policy("mps-config", "any");
  const std::map<std::string, std::string> labels{{"nvidia.com/gpu.product", "Tesla-T4"},
                                                  {"nvidia.com/gpu.replicas", "4"},
                                                  {"node-role.kubernetes.io/control-plane", ""}};
  const std::map<std::string, std::int64_t> eight{{"nvidia.com/gpu", 0}, {"nvidia.com/gpu.shared", 8}};
  co_await scene->until("eight nvidia.com/gpu.shared", 30min, scene->shows(node, labels, eight));
  co_await scene->until_settled(10min);
  for (const char* component : {"nvidia-device-plugin", "gpu-feature-discovery", "mps-control-daemon"})
    scene->require(scene->cluster().ready_pods(component, node) == 1, std::string(component) + " is not Ready");
  // The one node is its own canary, and there is always a slot for it.
  co_await scene->edit("any", mps_profile(6, true));
  const std::map<std::string, std::string> six{{"nvidia.com/gpu.replicas", "6"}};
  const std::map<std::string, std::int64_t> twelve{{"nvidia.com/gpu", 0}, {"nvidia.com/gpu.shared", 12}};
  co_await scene->until("twelve nvidia.com/gpu.shared", 30min, scene->shows(node, six, twelve));
  co_await scene->until_settled(10min);
  scene->require(scene->view().schedulable(node), "the node is cordoned");
}

}  // namespace gso::sim
