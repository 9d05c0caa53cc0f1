// Stories about what comes in between: another edit, a killed operator, drift from before its time.
#include <algorithm>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

// The GPU Operator has given all its DaemonSets that update strategy.
Scene::Check updates_by(Scene* scene, std::string strategy) {
  return [=] {
    for (const auto& [key, daemonset] : scene->cluster().daemonsets.all()) {
      const std::string has = (*daemonset)["spec"]["updateStrategy"].value("type", "");
      if (has != strategy) return key.name + " has " + has;
    }
    return std::string();
  };
}

// Nodes that were started at all were restarted at most twice, and the others not once (or once, where `others` says).
std::string restarts_beyond(const Scene& scene, const Scene::Seen& before, const std::set<std::string>& twice,
                            std::size_t others) {
  for (const NodeSpec& node : scene.nodes()) {
    const std::size_t restarts = scene.restarts_of(node.name, before);
    const std::size_t most = twice.contains(node.name) ? 2 : others;
    if (restarts > most)
      return node.name + " was restarted " + std::to_string(restarts) + " times, not " + std::to_string(most);
  }
  return {};
}

}  // namespace

asio::awaitable<void> superseded(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  // Another edit while the first is under way: what is in progress finishes, the new one begins with its own canary.
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  const std::string first = time_slicing_profile(4);
  const std::string second = time_slicing_profile(6);
  co_await scene->edit("any", first);
  co_await scene->until("two nodes on the first edit", 30min, scene->finished(from, 2));
  co_await scene->edit("any", second);
  co_await scene->until("the first edit to be superseded", 10min, scene->phase_is("default", first, "Superseded"));
  co_await scene->until_fleet_shows("every node on the second edit", 60min);
  co_await scene->until_settled(10min);
  co_await scene->until("the second edit to be complete", 5min, scene->phase_is("default", second, "Completed"));
  // Also those that set out between the edit and the operator's sight of it.
  const std::set<std::string> moved = scene->nodes_started_for("default", first, from);
  scene->require(moved.size() >= 2, "fewer nodes set out for the first edit than arrived there");
  scene->require(restarts_beyond(*scene, before, moved, 1));

  // The fast undo: an edit back to what was verified goes without a canary, to those only that have left it.
  const Scene::Seen verified = scene->seen();
  const std::size_t undo_from = scene->journal().size();
  const std::string third = time_slicing_profile(8);
  // Creation times are whole seconds: nobody knows whether a pod that came within the second of the edit has read it,
  // and its node is restarted. The period is not scaled with the story's time.
  co_await scene->clock().sleep_for(3s);
  co_await scene->edit("any", third);
  co_await scene->until("two nodes on the third edit", 30min, scene->finished(undo_from, 2));
  const k8s::MonoTime undone = scene->clock().monotonic();
  co_await scene->edit("any", second);
  co_await scene->until("the third edit to be superseded", 10min, scene->phase_is("default", third, "Superseded"));
  co_await scene->until_fleet_shows("every node on the second edit again", 60min);
  co_await scene->until_settled(10min);
  const std::set<std::string> left = scene->nodes_started_for("default", third, undo_from);
  scene->require(left.size() >= 2, "fewer nodes set out for the third edit than arrived there");
  scene->require(restarts_beyond(*scene, verified, left, 0));
  for (const std::string& node : scene->nodes_started_for("default", second, undo_from))
    scene->require(left.contains(node), node + " was started, although it had never left the verified profile");
  const k8s::Duration took = scene->clock().monotonic() - undone;
  scene->tell("undone in " + seconds(took) + ", with " + std::to_string(left.size()) + " nodes gone");
  scene->require(scene->beyond(1));
}

asio::awaitable<void> killed(Scene* scene) {
  co_await scene->begin(mps_profile(4));
  const Scene::Seen before = scene->seen();
  scene->reset_peak();
  const std::string text = mps_profile(8);
  co_await scene->edit("any", text);
  const int times = scene->exact() ? 40 : 8;
  int killed = 0;
  for (; killed < times && scene->failure().empty(); ++killed) {
    if (scene->plugins_restarted(before) == scene->nodes().size()) break;
    const std::string traces = scene->operator_traces();
    const Scene::Check has_written = [scene, traces] {
      return scene->operator_traces() != traces ? std::string() : std::string("nothing has happened");
    };
    co_await scene->until("a write by the operator", 10min, has_written);
    co_await scene->kill();
    co_await scene->start();
  }
  scene->tell("killed " + std::to_string(killed) + " times");
  scene->require(killed >= (scene->exact() ? 20 : 4), "killed " + std::to_string(killed) + " times only");
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(20min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), true));
  scene->require(scene->beyond(1));
  co_await scene->until("its record to be complete", 5min, scene->phase_is("default", text, "Completed"));
}

asio::awaitable<void> old_drift(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"any", time_slicing_profile(2)}};
  co_await scene->install_gpu_operator(profiles, "any");
  // Somebody edited the profile when there was no operator: nothing was restarted.
  const std::string text = time_slicing_profile(4);
  co_await scene->edit("any", text);
  const Scene::Seen before = scene->seen();
  co_await scene->stays("nobody restarts anything", 2min, scene->undisturbed(before));
  co_await scene->start();
  co_await scene->until(
      "the drift to be reported", 5min,
      scene->condition_is("default", "Ready", "False", "PreexistingDrift", scene->nodes().front().name));
  co_await scene->stays("drift from before is not touched", 10min, scene->undisturbed(before));
  scene->require(scene->replicas_are(scene->all_nodes(), 2)());
  scene->require(scene->journal().empty() || scene->happened(Happening::started, 0) == 0, "a node was started");
  scene->require(scene->cluster().rollouts.all().empty(), "there is a SharingRollout");

  // rollout start --adopt
  scene->reset_peak();
  json adopt;
  adopt["metadata"]["annotations"]["gpusharing.dev/adopt-drift"] = "true";
  adopt["metadata"]["annotations"]["gpusharing.dev/retry"] = "adopted";
  const k8s::ObjectKey policy{"", "default"};
  co_await scene->change(kPolicies, policy, adopt);
  co_await scene->until_fleet_shows("every node on the profile, as asked", 3h);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  scene->require(scene->beyond(4));
  co_await scene->until("its record to be complete", 5min, scene->phase_is("default", text, "Completed"));
}

asio::awaitable<void> cluster_policy_patched(Scene* scene) {
  const std::map<std::string, std::string> profiles{{"any", time_slicing_profile(2)},
                                                    {"more", time_slicing_profile(4)}};
  co_await scene->install_gpu_operator(profiles, "any");
  json strategy;
  strategy["spec"]["daemonsets"]["updateStrategy"] = "OnDelete";
  const k8s::ObjectKey policy{"", "cluster-policy"};
  co_await scene->change(kClusterPolicies, policy, strategy);
  co_await scene->until("the DaemonSets to wait for deletions", 5min, updates_by(scene, "OnDelete"));
  co_await scene->install();

  // OnDelete: the GPU Operator changes its DaemonSets and restarts nothing; the patch becomes a staged rollout.
  Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  scene->reset_peak();
  co_await scene->new_default("more");
  co_await scene->until_fleet_shows("every node on the new default, by our waves", 60min);
  co_await scene->until_settled(10min);
  const std::set<std::string> all = scene->all_nodes();
  scene->require(scene->restarts_problem(before, all, false));
  scene->require(scene->happened(Happening::finished, from) == all.size(),
                 std::to_string(scene->happened(Happening::finished, from)) + " nodes went through our waves");
  scene->require(scene->beyond(1));
  scene->require(!scene->event_says("UnstagedClusterPolicy", "")().empty(), "a staged change is called unstaged");
  co_await scene->until("its record to be complete", 5min,
                        scene->phase_is("default", time_slicing_profile(4), "Completed"));

  // RollingUpdate: it goes its own way, unstaged; followed and verified, not doubled.
  strategy["spec"]["daemonsets"]["updateStrategy"] = "RollingUpdate";
  co_await scene->change(kClusterPolicies, policy, strategy);
  co_await scene->until("the DaemonSets to roll by themselves", 5min, updates_by(scene, "RollingUpdate"));
  before = scene->seen();
  const std::size_t unstaged = scene->journal().size();
  co_await scene->new_default("any");
  co_await scene->until("an Event that says so", 5min, scene->event_says("UnstagedClusterPolicy", "cluster-policy"));
  co_await scene->until_fleet_shows("every node on the default of before", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, all, false));
  scene->require(scene->happened(Happening::started, unstaged) == 0, "the GPU Operator's own roll was doubled");
}

}  // namespace gso::sim
