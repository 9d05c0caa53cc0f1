// Stories about the other way to restart pods than node by node.
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

std::string restarted_for(Scene* scene, const std::string& daemonset) {
  const JsonPtr object = scene->cluster().daemonsets.find({scene->gpu_operator().ns, daemonset});
  if (object == nullptr) return {};
  const json metadata = (*object)["spec"]["template"].value("metadata", json::object());
  return metadata.value("annotations", json::object()).value("gpusharing.dev/restarted-for", "");
}

// Every node gets new pods, once, and no node goes through a change of its own.
asio::awaitable<void> restart_all(Scene* scene, std::string text) {
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  const std::string last = restarted_for(scene, "nvidia-device-plugin-daemonset");
  co_await scene->edit("any", text);
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(20min);
  co_await scene->until("its record to be complete", 5min, scene->phase_is("default", text, "Completed"));
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  scene->require(scene->happened(Happening::started, from) == 0, "a node went through a change of its own");
  const std::string now = restarted_for(scene, "nvidia-device-plugin-daemonset");
  scene->require(!now.empty() && now != last, "the plugin's DaemonSet says that it was restarted for '" + now + "'");
}

}  // namespace

asio::awaitable<void> daemonset_restart(Scene* scene) {
  // Creation times are whole seconds: if a DaemonSet is restarted within the second of the edit, nobody knows whether
  // its pods have read it. The period is not scaled with the story's time.
  const OperatorSettings in_a_later_second{{"settle-period", "2s"}};
  co_await scene->begin(time_slicing_profile(2), in_a_later_second);
  json at_once;
  at_once["mechanism"] = "DaemonSetRestart";
  at_once["workloads"] = "Interrupt";
  at_once["canary"]["nodesPerGroup"] = 0;
  co_await scene->tune("default", at_once);
  co_await restart_all(scene, time_slicing_profile(4));
  // The same operator goes node by node again, as soon as the policy says so.
  json one_by_one;
  one_by_one["mechanism"] = "NodeByNode";
  co_await scene->tune("default", one_by_one);
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  scene->reset_peak();
  co_await scene->edit("any", time_slicing_profile(6));
  co_await scene->until_fleet_shows("every node on the last profile", 60min);
  co_await scene->until_settled(10min);
  const std::set<std::string> all = scene->all_nodes();
  scene->require(scene->restarts_problem(before, all, false));
  scene->require(scene->happened(Happening::finished, from) == all.size(), "not every node went through a change");
  scene->require(scene->beyond(1));
}

}  // namespace gso::sim
