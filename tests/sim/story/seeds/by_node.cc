// Scenarios in which nodes get profiles of their own.
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/seeds/seed_scenarios.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

std::map<std::string, std::string> labels_of_t4(int replicas) {
  if (replicas == 1) return {{"nvidia.com/gpu.product", "Tesla-T4"}, {"nvidia.com/gpu.sharing-strategy", "none"}};
  return {{"nvidia.com/gpu.count", "4"},
          {"nvidia.com/gpu.product", "Tesla-T4-SHARED"},
          {"nvidia.com/gpu.replicas", std::to_string(replicas)},
          {"nvidia.com/gpu.sharing-strategy", "mps"}};
}

Scene::Check shares(Scene* scene, std::string node, int replicas) {
  const std::map<std::string, std::int64_t> gpus{{"nvidia.com/gpu", 4 * replicas}};
  return scene->shows(std::move(node), labels_of_t4(replicas), gpus);
}

// mps-config-fine, named by the ClusterPolicy without a default: nothing is shared until a node asks for it.
asio::awaitable<void> fine_grained(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"mps-four", mps_profile(4)}, {"mps-two", mps_profile(2)}};
  co_await scene->put_profiles("mps-config-fine", profiles);
  co_await scene->put_cluster_policy("mps-config-fine", "");
  co_await scene->until_fleet_shows("GPUs that nobody shares", 10min);
  co_await scene->install();
}

}  // namespace

asio::awaitable<void> profiles_by_label(Scene* scene) {
  co_await fine_grained(scene);
  co_await scene->label("gpu-01", kConfigLabel, "mps-two");
  co_await scene->label("gpu-02", kConfigLabel, "mps-four");
  co_await scene->until("two replicas on gpu-01", 30min, shares(scene, "gpu-01", 2));
  co_await scene->until("four replicas on gpu-02", 30min, shares(scene, "gpu-02", 4));
  scene->require(shares(scene, "gpu-03", 1)());
  co_await scene->until_settled(20min);
  // Another profile for one of them.
  co_await scene->label("gpu-01", kConfigLabel, "mps-four");
  co_await scene->until("four replicas on gpu-01", 30min, shares(scene, "gpu-01", 4));
  co_await scene->until_settled(20min);
}

asio::awaitable<void> profile_by_selector(Scene* scene) {
  co_await fine_grained(scene);
  // kubectl label node --selector=nvidia.com/gpu.product=Tesla-T4 nvidia.com/device-plugin.config=mps-two
  std::set<std::string> selected;
  for (const std::string& node : scene->all_nodes())
    if (scene->view().label(node, "nvidia.com/gpu.product") == "Tesla-T4") selected.insert(node);
  scene->require(selected.size() == 2, std::to_string(selected.size()) + " nodes have product Tesla-T4, not 2");
  for (const std::string& node : selected) co_await scene->label(node, kConfigLabel, "mps-two");
  for (const std::string& node : selected)
    co_await scene->until("two replicas on " + node, 30min, shares(scene, node, 2));
  co_await scene->until_settled(20min);
  const std::map<std::string, std::string> unshared{{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}};
  const std::map<std::string, std::int64_t> one{{"nvidia.com/gpu", 1}};
  scene->require(scene->shows("other-01", unshared, one)());
}

asio::awaitable<void> mps_by_label_refused(Scene* scene) {
  co_await fine_grained(scene);
  json spec;
  spec["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] = "gpu-01";
  spec["profile"]["configMapKey"] = "mps-two";
  const Scene::Seen before = scene->seen();
  co_await scene->policy("team", spec);
  co_await scene->until("the refusal, with the remedy", 5min,
                        scene->blocked_by("team", "MPSByLabelUnsupported", "default"));
  co_await scene->stays("nothing is restarted for it", 10min, scene->undisturbed(before));
  scene->require(shares(scene, "gpu-01", 1)());
  scene->require(scene->view().label("gpu-01", kConfigLabel).empty(), "gpu-01 was labelled");
}

asio::awaitable<void> mig_single_shared(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"mps-any", mps_profile(4)}, {"slices", time_slicing_profile(3)}};
  co_await scene->label("mig-01", kConfigLabel, "slices");
  co_await scene->install_gpu_operator(profiles, "mps-any");
  co_await scene->install();
  std::map<std::string, std::string> labels{{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED"},
                                            {"nvidia.com/gpu.replicas", "3"},
                                            {"nvidia.com/gpu.sharing-strategy", "time-slicing"},
                                            {"nvidia.com/mig.strategy", "single"}};
  const std::map<std::string, std::int64_t> three{{"nvidia.com/gpu", 7 * 3}};
  co_await scene->until("MIG devices that are shared", 10min, scene->shows("mig-01", labels, three));
  // An edit is rolled there like anywhere else.
  const Scene::Seen before = scene->seen();
  co_await scene->edit("slices", time_slicing_profile(5));
  labels["nvidia.com/gpu.replicas"] = "5";
  const std::map<std::string, std::int64_t> five{{"nvidia.com/gpu", 7 * 5}};
  co_await scene->until("five replicas of each MIG device", 30min, scene->shows("mig-01", labels, five));
  co_await scene->until_settled(10min);
  const std::set<std::string> mig{"mig-01"};
  scene->require(scene->restarts_problem(before, mig, false));
}

asio::awaitable<void> mps_refused_on_mig(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"mps-any", mps_profile(4)}, {"slices", time_slicing_profile(3)}};
  co_await scene->label("mig-01", kConfigLabel, "slices");
  co_await scene->install_gpu_operator(profiles, "mps-any");
  co_await scene->install();
  const Scene::Seen before = scene->seen();
  json spec;
  spec["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] = "mig-01";
  spec["profile"]["configMapKey"] = "mps-any";
  spec["takeover"] = true;
  co_await scene->policy("mps-everywhere", spec);
  co_await scene->until("the refusal", 5min, scene->blocked_by("mps-everywhere", "MIGEnabled", "mig-01"));
  co_await scene->stays("the MIG node is left alone", 10min, scene->undisturbed(before));
  const std::string label = scene->view().label("mig-01", kConfigLabel);
  scene->require(label == "slices", "mig-01 has label '" + label + "'");
  const std::map<std::string, std::string> labels{{"nvidia.com/gpu.sharing-strategy", "time-slicing"}};
  const std::map<std::string, std::int64_t> three{{"nvidia.com/gpu", 7 * 3}};
  scene->require(scene->shows("mig-01", labels, three)());
}

}  // namespace gso::sim
