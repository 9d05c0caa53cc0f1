// A story about a GPU that dies.
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using namespace std::chrono_literals;

namespace asio = boost::asio;

// At first the kubelet gives out one device less. After a reboot, plugin and GFD count one GPU less, too: only the
// operator remembers what the machine has had.
asio::awaitable<void> gpu_dies(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  if (!scene->failure().empty()) co_return;
  const std::string node = "a100-02", gpu = "nvidia.com/gpu";
  NodeAgent* agent = scene->fleet().node(node);
  const Scene::Seen before = scene->seen();
  const Scene::Check is_reported = scene->condition_is("default", "Degraded", "True", "DeviceUnhealthy", node);
  const Scene::Check nobody = [=] { return scene->disturbed(before); };
  agent->machine().lose_device(gpu);
  co_await scene->until("the policy to name the node that has lost a device", 20min, is_reported);
  std::vector<NodeSpec> nodes = scene->nodes();
  for (NodeSpec& spec : nodes)
    if (spec.name == node) spec.gpus.pop_back();
  agent->machine().set_gpus({a100(), a100(), a100()});
  agent->reboot(1min);
  scene->expect_nodes(std::move(nodes));
  const std::map<std::string, std::string> any_labels;
  const std::map<std::string, std::int64_t> three_gpus{{gpu, 2 * 3}};
  co_await scene->until("what is left after the reboot", 20min, scene->shows(node, any_labels, three_gpus));
  co_await scene->until("the policy to name the node that came back with fewer GPUs", 20min, is_reported);
  co_await scene->stays("nobody is restarted for a GPU that is dead", 20min, nobody);
  co_await scene->edit("any", time_slicing_profile(4));
  co_await scene->until_fleet_shows("every node on the new profile, with the GPUs that it has", 60min);
  co_await scene->until("the policy to name the node still", 20min, is_reported);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  scene->require(scene->beyond(2));
}

}  // namespace gso::sim
