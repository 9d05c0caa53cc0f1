// A killed daemon does not reset its GPUs to compute mode DEFAULT (reference: the device plugin's mps-control-daemon,
// which resets them when it is asked to stop).
#include "reconcilers/cluster/killed_daemons.h"

#include <algorithm>

#include "reconcilers/cluster/discovery.h"

namespace gso {

namespace {

constexpr std::int64_t kKilled = 137;  // 128 + SIGKILL.

const ContainerStatus* daemon_of(const Pod& pod) {
  const auto it = std::ranges::find_if(pod.containers, [](const ContainerStatus& container) {
    return component_of_container(container.name.view()) == Component::mps;
  });
  return it == pod.containers.end() ? nullptr : &*it;
}

}  // namespace

void follow_killed_daemons(World& world) {
  world.operand_pods.add_listener([&world](const ObjectKey&, const auto&, const auto& pod) {
    const ContainerStatus* daemon = pod == nullptr ? nullptr : daemon_of(*pod);
    if (daemon == nullptr) return;
    const std::string node(pod->node_name.view());
    if (daemon->running && daemon->ready && !pod->meta.deletion_timestamp) {
      const auto killed = world.killed_daemons.find(node);
      if (killed != world.killed_daemons.end()) killed->second.replaced = true;
    } else if (pod->meta.deletion_timestamp && daemon->terminated && daemon->terminated->exit_code == kKilled) {
      world.killed_daemons[node] = {.pod = pod->meta.name, .deleted_at = *pod->meta.deletion_timestamp};
    }
  });
  world.nodes.add_listener([&world](const ObjectKey& key, const auto&, const auto& node) {
    if (node == nullptr) world.killed_daemons.erase(key.name);
  });
}

}  // namespace gso
