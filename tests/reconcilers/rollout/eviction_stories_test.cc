// Random stories under `workloads: Evict`: whatever pods use the GPUs, only consumers of a node that is being drained
// are evicted, and none that must stay.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/invariant_checks.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::eviction_stories_test {
namespace {

class EvictionStory {
 public:
  explicit EvictionStory(unsigned seed) : random_(seed) {
    free_cluster_budget(fleet);
    fleet.settings.settle = std::chrono::seconds(1);
    fleet.settings.projection = std::chrono::seconds(2);
    EXPECT_TRUE(fleet.settle());
    const int idle_timeout = 20 + pick(200);  // In seconds.
    fleet.policy(
        rollout_of(fmt::format("workloads: Evict, evictBarePods: {}, maxUnavailable: 50%, canary: {{soak: 3s}}, "
                               "verifyTimeout: 40s, idleTimeout: {}s",
                               pick(2) == 0, idle_timeout)));
  }

  // Checks every plan; returns the evictions.
  std::ptrdiff_t run() {
    const char* const profiles[] = {"mps-4", "mps-8", "ts-4", "ts-8", "mps-6-renamed", "none"};
    std::ptrdiff_t evictions = 0;
    for (int second = 0; second < 240; ++second) {
      if (pick(8) == 0) add_pod(second);
      if (pick(40) == 0) fleet.edit("any", profiles[pick(6)]);
      if (pick(25) == 0) disturb(node());
      evictions += tick();
    }
    return evictions;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string node() { return fmt::format("n0{}", 1 + pick(4)); }

  // Three of four are replicas of a workload, which leave; each other one has something for which it must stay.
  void add_pod(int number) {
    const std::string where = node();
    const std::string name = fmt::format("pod{}", number);
    if (pick(4) == 0)
      fleet.use_by_job(where, name, fmt::format("job{}", pick(2)), {});
    else
      fleet.use(where, name, "nvidia.com/gpu", 1 + pick(2));
    Pod& pod = fleet.consumers[where].pods.back();
    pod.priority = pick(3);
    if (pick(4) == 0) make_it_stay(pod);
  }

  void make_it_stay(Pod& pod) {
    const char* const namespaces[] = {"kube-system", "gpu-operator", "gpu-sharing-operator"};
    const char* const owners[] = {"DaemonSet", "Node", ""};
    switch (pick(6)) {
      case 0:
      case 1:
        pod.meta.ns = k8s::Interned(namespaces[pick(3)]);
        return;
      case 2:
        pod.meta.annotations.set("gpusharing.dev/do-not-disrupt", "true");
        return;
      case 3:
        pod.meta.deletion_timestamp = fleet.now;
        return;
      case 4:
        pod.phase = k8s::Interned("Succeeded");
        return;
      default:
        break;
    }
    const std::string owner = owners[pick(3)];
    pod.meta.owners.clear();
    if (!owner.empty())
      pod.meta.owners.push_back({k8s::Interned(owner), k8s::Interned("owner"), k8s::Interned("uid"), true});
  }

  void disturb(const std::string& where) {
    switch (pick(5)) {
      case 0:
        return fleet.cordon(where, pick(2) == 0);
      case 1:
        return fleet.annotate(where, kHoldAnnotation, pick(2) == 0 ? std::optional<std::string>("true") : std::nullopt);
      case 2:
        return fleet.set_ready(where, pick(3) != 0);
      case 3:
        return fleet.restart_operator();
      default:
        return fleet.release(where);
    }
  }

  std::ptrdiff_t tick() {
    const Plan plan = fleet.plan();
    check_plan(fleet, plan);
    fleet.apply(plan);
    fleet.advance(std::chrono::seconds(1));
    return count_of<EvictPod>(plan);
  }

  std::mt19937 random_;
  FleetModel fleet{spec_of(4, "ts-12")};
};

TEST(EvictionStories, EvictOnlyConsumersOfNodesThatAreBeingDrained) {
  std::ptrdiff_t evictions = 0;
  for (unsigned seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    evictions += EvictionStory(seed).run();
  }
  EXPECT_GT(evictions, 100) << "the stories evict too few pods to prove anything";
}

}  // namespace
}  // namespace gso::test::eviction_stories_test
