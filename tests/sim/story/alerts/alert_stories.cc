#include "tests/sim/story/alerts/alert_stories.h"

#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

// --- Healthy: nobody is paged.

// Wave after wave of restarted MPS daemons, for longer than the alert of nodes without GPUs waits.
asio::awaitable<void> long_rollout(Scene* scene) {
  const OperatorSettings long_soak{{"canary-soak", "10m"}};
  co_await scene->begin(mps_profile(4), long_soak);
  co_await scene->edit("any", mps_profile(8));
  co_await scene->until_fleet_shows("every node on the new profile", 12h);
  co_await scene->until_settled(1h);
  co_await scene->stays("the hour after it", 1h);
}

// One node, then the window is closed for three hours.
asio::awaitable<void> closed_window(Scene* scene) {
  const OperatorSettings one_by_one{{"canary-nodes-per-group", "0"}};
  co_await scene->begin(time_slicing_profile(2), one_by_one);
  json rollout;
  json entry;
  entry["cron"] = "0 11 * * *";  // The stories begin at 08:00.
  entry["duration"] = "8h";
  rollout["maintenanceWindows"].push_back(entry);
  co_await scene->tune("default", rollout);
  co_await scene->edit("any", time_slicing_profile(4));
  co_await scene->until("the window to be named as the reason", 10min,
                        scene->condition_is("default", "Progressing", "False", "OutsideWindow", "opens at"));
  co_await scene->until_fleet_shows("every node, once the window is open", 6h);
  co_await scene->until_settled(1h);
}

// Approved after three hours.
asio::awaitable<void> late_approval(Scene* scene) {
  const OperatorSettings approve{{"mode", "Approve"}};
  co_await scene->begin(time_slicing_profile(2), approve);
  const std::string text = time_slicing_profile(4);
  co_await scene->edit("any", text);
  co_await scene->until("a rollout that waits", 5min, scene->phase_is("default", text, "AwaitingApproval"));
  co_await scene->stays("three hours of waiting", 3h);
  if (!scene->failure().empty()) co_return;
  json approved;
  approved["spec"]["approved"] = true;
  const k8s::ObjectKey rollout{"", scene->rollout_of("default", text)["metadata"].value("name", "")};
  co_await scene->change(kRollouts, rollout, approved);
  co_await scene->until_fleet_shows("every node", 2h);
  co_await scene->until_settled(1h);
}

// A person paused the policy and left.
asio::awaitable<void> pause_of_a_person(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  json pause;
  pause["paused"] = true;
  co_await scene->tune("default", pause);
  co_await scene->edit("any", time_slicing_profile(4));
  co_await scene->stays("three hours of a pause", 3h);
  pause["paused"] = false;
  co_await scene->tune("default", pause);
  co_await scene->until_fleet_shows("every node", 2h);
  co_await scene->until_settled(1h);
}

// A pod that uses a GPU until shortly before idleTimeout: the node waits for it, cordoned.
asio::awaitable<void> busy_node(Scene* scene) {
  co_await scene->begin(mps_profile(4));
  json patient;
  patient["idleTimeout"] = "3h";
  co_await scene->tune("default", patient);
  co_await scene->use_gpu("a100-02", "training");
  co_await scene->edit("any", mps_profile(8));
  co_await scene->stays("most of idleTimeout", 2h);
  const k8s::ObjectKey pod{"default", "training"};
  co_await scene->remove(kPods, pod);
  co_await scene->until_fleet_shows("the node that was in use, too", 2h);
  co_await scene->until_settled(1h);
}

// A replica that is gone for two minutes, as at an upgrade of the operator.
asio::awaitable<void> restarted_operator(Scene* scene) {
  co_await scene->begin(mps_profile(4));
  co_await scene->edit("any", mps_profile(8));
  co_await scene->stays("a part of the rollout", 2min);
  co_await scene->kill();
  co_await scene->clock().sleep_for(2min);
  co_await scene->start();
  co_await scene->until_fleet_shows("every node on the new profile", 4h);
  co_await scene->until_settled(1h);
}

// --- Not healthy: the alert that says so, and no other one.

asio::awaitable<void> failing_canary(Scene* scene) {
  const OperatorSettings impatient{{"verify-timeout", scene->short_verify_timeout()}};
  co_await scene->begin(time_slicing_profile(2), impatient);
  if (!scene->failure().empty()) co_return;
  scene->break_drivers(true);
  const std::string bad = time_slicing_profile(5);
  co_await scene->edit("any", bad);
  co_await scene->until("the rollout to stop", 30min, scene->phase_is("default", bad, "Paused"));
  co_await scene->stays("an hour without anybody", 1h);
}

asio::awaitable<void> invalid_profile(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  co_await scene->edit("any",
                       "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n");
  co_await scene->stays("an hour without anybody", 1h);
}

// kubectl delete pod, for all of the device plugin's pods on a node.
asio::awaitable<void> delete_operand_pods(Scene* scene, std::string node) {
  std::vector<k8s::ObjectKey> pods;
  for (const auto& [key, pod] : scene->cluster().pods.all())
    if (key.ns == scene->gpu_operator().ns && (*pod)["spec"].value("nodeName", "") == node) pods.push_back(key);
  for (const k8s::ObjectKey& pod : pods) co_await scene->remove(kPods, pod);
}

// A policy is paused, its key is edited, and somebody deletes a plugin pod: its node reads the edit.
asio::awaitable<void> deleted_plugin_pod(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  json pause;
  pause["paused"] = true;
  co_await scene->tune("default", pause);
  co_await scene->edit("any", time_slicing_profile(4));
  co_await scene->stays("the time in which kubelets project the edit", 10min);
  co_await delete_operand_pods(scene, "a100-02");
  co_await scene->stays("an hour without anybody", 1h);
}

// A person has labelled a node by hand, and a policy names another key.
asio::awaitable<void> label_of_a_person(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  co_await scene->edit("other", time_slicing_profile(4));
  co_await scene->label("a100-02", "nvidia.com/device-plugin.config", "any");
  json spec;
  spec["priority"] = 1;
  spec["profile"]["configMapKey"] = "other";
  co_await scene->policy("team", spec);
  co_await scene->stays("forty minutes without anybody", 40min);
}

asio::awaitable<void> dead_operator(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  co_await scene->kill();
  co_await scene->clock().sleep_for(20min);
}

}  // namespace

const std::vector<AlertStory>& alert_stories() {
  static const std::vector<AlertStory> kStories{
      {{.name = "long-rollout",
        .title = "A rollout of twelve nodes takes its time and completes",
        .nodes = [](bool) { return a100s(12); },
        .tell = long_rollout},
       {}},
      {{.name = "closed-window", .title = "A rollout waits for its maintenance window", .tell = closed_window}, {}},
      {{.name = "late-approval", .title = "A rollout waits three hours for its approval", .tell = late_approval}, {}},
      {{.name = "pause-of-a-person", .title = "A person pauses a rollout for hours", .tell = pause_of_a_person}, {}},
      {{.name = "busy-node", .title = "A node is busy, and its rollout waits for it", .tell = busy_node}, {}},
      {{.name = "restarted-operator", .title = "The operator is restarted in a rollout", .tell = restarted_operator},
       {}},
      {{.name = "failing-canary", .title = "The canary does not come up with the new profile", .tell = failing_canary},
       {"GpuSharingBrakeTripped", "GpuSharingNodesFailed", "GpuSharingAllocatableZero"}},
      {{.name = "invalid-profile", .title = "Somebody saves a profile that is invalid", .tell = invalid_profile},
       {"GpuSharingConfigInvalid"}},
      {{.name = "deleted-plugin-pod",
        .title = "Somebody deletes a plugin pod under a paused edit",
        .tell = deleted_plugin_pod},
       {"GpuSharingLoadedUngated"}},
      {{.name = "label-of-a-person",
        .title = "A policy names another key than a person's label",
        .tell = label_of_a_person},
       {"GpuSharingLabelConflict"}},
      {{.name = "dead-operator",
        .title = "The operator stops and nobody starts it again",
        .nodes = [](bool) { return a100s(2); },
        .tell = dead_operator},
       {"GpuSharingNoLeader"}},
  };
  return kStories;
}

}  // namespace gso::sim
