// Stories about pods that cannot get well by themselves, and MPS daemons that do not end as they should.
#include <algorithm>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

constexpr const char* kStuck = "a100-02";

std::vector<k8s::ObjectKey> operands_on(Scene* scene, const std::string& node) {
  std::vector<k8s::ObjectKey> keys;
  for (const auto& [key, pod] : scene->cluster().pods.all()) {
    const bool there = pod->value("spec", json::object()).value("nodeName", "") == node;
    if (there && key.ns == scene->gpu_operator().ns) keys.push_back(key);
  }
  return keys;
}

// The containers say what they printed last when they end: without it the operator could only count how often they do.
asio::awaitable<void> keep_last_words(Scene* scene) {
  std::map<k8s::ObjectKey, json> merges;
  for (const auto& [key, daemonset] : scene->cluster().daemonsets.all()) {
    if (key.ns != scene->gpu_operator().ns) continue;
    const json& spec = (*daemonset)["spec"]["template"]["spec"];
    for (const char* list : {"initContainers", "containers"}) {
      json containers = spec.value(list, json::array());
      for (json& container : containers) container["terminationMessagePolicy"] = "FallbackToLogsOnError";
      merges[key]["spec"]["template"]["spec"][list] = std::move(containers);
    }
  }
  for (const auto& [key, merge] : merges) co_await scene->change(kDaemonSets, key, merge);
  const Scene::Check all_do = [scene] {
    for (const auto& [key, pod] : scene->cluster().pods.all()) {
      const json containers = pod->value("spec", json::object()).value("containers", json::array());
      const bool keeps = std::ranges::all_of(containers, [](const json& container) {
        return container.value("terminationMessagePolicy", "") == "FallbackToLogsOnError";
      });
      if (key.ns == scene->gpu_operator().ns && !keeps) return "pod " + key.name + " is of the earlier template";
    }
    return std::string();
  };
  co_await scene->until("pods of the new template", 20min, all_do);
  co_await scene->until_fleet_shows("a fleet that shows its profile again", 20min);
}

// A node is labelled for a key that nobody has written yet, and its pods are restarted: their init containers cannot
// choose a profile.
asio::awaitable<void> label_too_early(Scene* scene) {
  co_await scene->label(kStuck, kConfigLabel, "night");
  const std::vector<k8s::ObjectKey> pods = operands_on(scene, kStuck);
  scene->require(pods.size() >= 2, "a100-02 has no operand pods");
  for (const k8s::ObjectKey& pod : pods) co_await scene->remove(kPods, pod);
  const Scene::Check serves_none = [scene, pods] {
    for (const k8s::ObjectKey& pod : pods)
      if (scene->cluster().pods.find(pod) != nullptr) return "pod " + pod.name + " is still there";
    if (operands_on(scene, kStuck).size() < pods.size()) return std::string("not all pods have come again");
    const auto gpus = scene->cluster().allocatable(kStuck);
    const auto it = gpus.find("nvidia.com/gpu");
    return it == gpus.end() || it->second == 0 ? std::string() : std::string("a100-02 still serves GPUs");
  };
  co_await scene->until("a node without GPUs", 10min, serves_none);
}

// The pods of one node are stuck for a key that comes too late, until the operator replaces each of them once.
asio::awaitable<void> stuck_until_replaced(Scene* scene) {
  if (!scene->failure().empty()) co_return;
  // Its kubelet shows no pod what a ConfigMap has got since the pod was made.
  scene->fleet().faults().late_projection = 24h;
  scene->excused = {kStuck};
  co_await label_too_early(scene);
  // Nothing is restarted into a key that is missing.
  const Scene::Seen missing = scene->seen();
  co_await scene->stays("no pod is deleted while the key is missing", 5min, scene->undisturbed(missing));
  // The key comes; only a new pod can see it, and the operator makes one.
  const std::size_t from = scene->journal().size();
  co_await scene->edit("night", time_slicing_profile(4));
  scene->excused.clear();
  co_await scene->until_fleet_shows("the stuck node on the profile of its label", 30min);
  co_await scene->until_settled(10min);
  const std::size_t restarts = scene->restarts_of(kStuck, missing);
  scene->require(restarts == 1, "a100-02 got " + std::to_string(restarts) + " new plugin pods, not one");
  const std::set<std::string> stuck{kStuck};
  scene->require(scene->restarts_problem(missing, stuck, false));
  scene->require(scene->happened(Happening::started, from) == 0, "a stuck pod was taken for a change of its node");
}

}  // namespace

asio::awaitable<void> stuck_pods(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"any", time_slicing_profile(2)}};
  co_await scene->install_gpu_operator(profiles, "any");
  co_await keep_last_words(scene);
  // Sooner than nodes whose label has moved are restarted because they have not reloaded, and not scaled with the
  // story's time: nobody knows whether a pod that is made within the second of the edit has read it.
  const OperatorSettings quick{{"configmap-propagation", "2s"}};
  co_await scene->install(quick);
  co_await stuck_until_replaced(scene);
}

// As NVIDIA ships the DaemonSets: nobody keeps what a container printed last.
asio::awaitable<void> silent_stuck_pods(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"any", time_slicing_profile(2)}};
  co_await scene->install_gpu_operator(profiles, "any");
  co_await scene->install();
  co_await stuck_until_replaced(scene);
}

namespace {

// The node that the network has lost, or "".
std::string lost_node(Scene* scene) {
  for (const NodeSpec& node : scene->nodes())
    if (scene->fleet().node(node.name)->lost()) return node.name;
  return {};
}

// The node in a change is lost before its MPS daemon has ended. Nobody else starts in its place, and the change goes on
// when the node is back.
asio::awaitable<void> lose_node_in_change(Scene* scene) {
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  // Not as soon as the story sees that a node has started: by then its change can be over.
  scene->fleet().faults().lost_before_mps_stops = true;
  co_await scene->edit("any", mps_profile(8));
  const Scene::Check one_is_lost = [scene, from] {
    if (scene->happened(Happening::started, from) == 0) return std::string("no node has started");
    return lost_node(scene).empty() ? std::string("no MPS daemon was to stop") : std::string();
  };
  co_await scene->until("the node that starts to be lost", 10min, one_is_lost);
  if (!scene->failure().empty()) co_return;
  const std::string node = lost_node(scene), first = scene->nodes_that(Happening::started, from).front();
  scene->require(node == first, node + " was lost, but the change is one of " + first);
  const Scene::Check alone = [scene, from] {
    const std::size_t started = scene->happened(Happening::started, from);
    return started == 1 ? std::string() : std::to_string(started) + " nodes have started";
  };
  co_await scene->stays("no other node starts", 2min, alone);
  if (!scene->failure().empty()) co_return;
  scene->fleet().node(node)->recover();
  co_await scene->until_fleet_shows("every node on the last profile", 60min);
  co_await scene->until_settled(20min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
}

}  // namespace

asio::awaitable<void> unclean_exits(Scene* scene) {
  co_await scene->begin(mps_profile(4));
  if (!scene->failure().empty()) co_return;
  // Daemons that do not hear SIGTERM are killed when their grace period is over.
  scene->fleet().faults().mps_unclean_exit = true;
  const Scene::Seen before = scene->seen();
  co_await scene->edit("any", mps_profile(6));
  co_await scene->until("an Event about GPUs that are left in exclusive mode", 20min,
                        scene->event_says("MPSUncleanExit", "EXCLUSIVE_PROCESS"));
  co_await scene->until_fleet_shows("every node on the new profile all the same", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
  scene->fleet().faults().mps_unclean_exit = false;
  co_await lose_node_in_change(scene);
}

}  // namespace gso::sim
