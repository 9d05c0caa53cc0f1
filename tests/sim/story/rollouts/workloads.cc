// Stories about pods in the way: waited for, evicted where a PodDisruptionBudget lets them go.
#include <algorithm>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

// A training run on a100-02 is waited for; after idleTimeout its node is given back, and comes again last.
asio::awaitable<void> wait_for_idle(Scene* scene) {
  co_await scene->use_gpu("a100-02", "training");
  json patient;
  patient["idleTimeout"] = scene->duration(10min);
  co_await scene->tune("default", patient);
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  co_await scene->edit("any", mps_profile(6));
  co_await scene->until("the training run to be named", 30min,
                        scene->blocked_by("default", "WaitingForWorkloads", "training"));
  const Scene::Check given_back = [scene, from] {
    const auto nodes = scene->nodes_that(Happening::uncordoned, from);
    const bool back = std::ranges::find(nodes, "a100-02") != nodes.end();
    return back ? std::string() : "a100-02 has not been uncordoned";
  };
  co_await scene->until("its node to be given back", 30min, given_back);
  scene->excused = {"a100-02"};
  co_await scene->until_fleet_shows("the other nodes on the new profile", 40min);
  scene->require(scene->restarts_of("a100-02", before) == 0, "a100-02 was restarted under the training run");
  const JsonPtr training = scene->cluster().pods.find({"default", "training"});
  scene->require(training != nullptr && training->value("status", json::object()).value("phase", "") == "Running",
                 "the training run was disturbed");
  scene->excused.clear();
  const k8s::ObjectKey pod{"default", "training"};
  co_await scene->remove(kPods, pod);
  co_await scene->until_fleet_shows("the node that was in use, too", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
  const auto finished = scene->nodes_that(Happening::finished, from);
  scene->require(!finished.empty() && finished.back() == "a100-02", "a100-02 was not the last one");
}

// A service on a100-03 must not lose its only pod; when its budget allows it, the pod is evicted.
asio::awaitable<void> refused_eviction(Scene* scene) {
  const k8s::ObjectKey key{"default", "serving"};
  co_await scene->protect("serving", 1);
  co_await scene->use_gpu("a100-03", "serving");
  json evict;
  evict["workloads"] = "Evict";
  evict["cordon"] = true;
  evict["evictBarePods"] = true;  // A fake owner would not do: the garbage collector of a real cluster knows better.
  evict["idleTimeout"] = scene->duration(2h);
  co_await scene->tune("default", evict);
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  co_await scene->edit("any", mps_profile(8));
  co_await scene->until("the budget's refusal to be named", 60min,
                        scene->blocked_by("default", "PDBRefuses", "serving"));
  const Scene::Check is_cordoned = [scene, from] {
    const auto cordoned = scene->nodes_that(Happening::cordoned, from);
    const bool ours = std::ranges::find(cordoned, "a100-03") != cordoned.end();
    return ours ? std::string() : std::string("a100-03 was not cordoned");
  };
  co_await scene->until("the service's node to be cordoned", 0s, is_cordoned);
  const Scene::Check is_kept = [scene, before, key] {
    if (scene->restarts_of("a100-03", before) > 0) return std::string("a100-03 was restarted");
    const JsonPtr pod = scene->cluster().pods.find(key);
    const bool kept = pod != nullptr && !(*pod)["metadata"].contains("deletionTimestamp");
    return kept ? std::string() : std::string("pod serving was evicted");
  };
  co_await scene->stays("the service's pod is kept", 5min, is_kept);
  json lenient;
  lenient["spec"]["minAvailable"] = 0;
  co_await scene->change(kBudgets, key, lenient);
  co_await scene->until("the pod to be evicted", 30min, scene->pod_is_gone("serving"));
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
}

}  // namespace

asio::awaitable<void> workloads(Scene* scene) {
  co_await scene->begin(mps_profile(4));
  scene->reset_peak();
  co_await wait_for_idle(scene);
  co_await refused_eviction(scene);
  scene->require(scene->beyond(2));
}

namespace {

constexpr const char* kBusy = "a100-02";

// Pods that must not be evicted, each with the annotation that says so.
struct Kept {
  const char* pod;
  const char* key;
  const char* value;
};
constexpr Kept kKept[] = {{"of-the-autoscaler", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
                          {"of-karpenter", "karpenter.sh/do-not-disrupt", "true"},
                          {"of-a-person", "gpusharing.dev/do-not-disrupt", "true"}};

asio::awaitable<void> annotate(Scene* scene, const Kept* kept, json value) {
  json merge;
  merge["metadata"]["annotations"][kept->key] = std::move(value);
  const k8s::ObjectKey pod{"default", kept->pod};
  co_await scene->change(kPods, pod, merge);
}

constexpr const char* kOnNode[] = {"of-the-autoscaler", "of-karpenter", "of-a-person", "of-nobody"};

// The operator evicts no pod of kube-system: it names the pod and waits for it.
asio::awaitable<void> wait_for_system_pod(Scene* scene, Scene::Check kept) {
  const k8s::ObjectKey key{"kube-system", "of-the-cluster"};
  const Scene::Check all_kept = [scene, key, kept] {
    const JsonPtr pod = scene->cluster().pods.find(key);
    const bool stays = pod != nullptr && !(*pod)["metadata"].contains("deletionTimestamp");
    return stays ? kept() : std::string("pod kube-system/of-the-cluster was evicted");
  };
  co_await scene->until("the pod of kube-system to be named", 60min,
                        scene->blocked_by("default", "ProtectedNamespace", "kube-system/of-the-cluster"));
  co_await scene->stays("no pod is evicted while one of kube-system is there", 3min, all_kept);
  co_await scene->remove(kPods, key);
}

// All pods of the node run, and the node has not been restarted.
Scene::Check are_kept(Scene* scene, Scene::Seen before) {
  return [=] {
    for (const char* name : kOnNode) {
      const JsonPtr pod = scene->cluster().pods.find({"default", name});
      if (pod == nullptr || (*pod)["metadata"].contains("deletionTimestamp"))
        return "pod " + std::string(name) + " was evicted";
    }
    return scene->restarts_of(kBusy, before) == 0 ? std::string() : std::string("a100-02 was restarted");
  };
}

}  // namespace

asio::awaitable<void> eviction_annotations(Scene* scene) {
  co_await scene->begin(mps_profile(4));
  json evict;
  evict["workloads"] = "Evict";
  evict["cordon"] = true;
  evict["evictBarePods"] = true;
  evict["idleTimeout"] = scene->duration(6h);
  co_await scene->tune("default", evict);
  for (const Kept& kept : kKept) {
    co_await scene->use_gpu(kBusy, kept.pod);
    const json value = kept.value;
    co_await annotate(scene, &kept, value);
  }
  co_await scene->use_gpu(kBusy, "of-nobody");
  co_await scene->use_gpu(kBusy, "of-the-cluster", "kube-system");
  const Scene::Seen before = scene->seen();
  co_await scene->edit("any", mps_profile(8));
  co_await wait_for_system_pod(scene, are_kept(scene, before));
  for (const Kept& one : kKept) {
    const Scene::Check kept = are_kept(scene, before);
    const std::string annotation = one.key;
    co_await scene->until("annotation " + annotation + " to be named", 60min,
                          scene->blocked_by("default", "WaitingForWorkloads", annotation));
    co_await scene->stays("no pod is evicted while one of them must stay", 3min, kept);
    const json none;
    co_await annotate(scene, &one, none);
  }
  for (const char* name : kOnNode) {
    const std::string pod = name;
    co_await scene->until("pod " + pod + " to be evicted", 30min, scene->pod_is_gone(pod));
  }
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
  scene->require(scene->beyond(1));
}

}  // namespace gso::sim
