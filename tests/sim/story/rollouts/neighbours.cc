// Stories about those who work on the same nodes: feature discovery's files, driver upgrades, the MIG manager, DRA,
// KAI.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/kai_tenants.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

// What was seen of the nodes' labels while somebody looked.
struct Watched {
  std::set<std::string> unlabelled;  // Nodes that have been without a product.
  std::string crowded;               // More than one node of a model in a change at once.
};

std::shared_ptr<Watched> watch_labels(Scene* scene) {
  auto seen = std::make_shared<Watched>();
  scene->cluster().nodes.add_listener([scene, seen](const k8s::ObjectKey& key, const JsonPtr&, const JsonPtr& after) {
    if (after == nullptr) return;
    if (text(labels(*after), "nvidia.com/gpu.product").empty()) seen->unlabelled.insert(key.name);
    std::map<std::string, std::string> in_change;  // By model.
    for (const NodeSpec& node : scene->nodes()) {
      if (scene->state_of(node.name) != "Updating") continue;
      std::string& other = in_change[node.name.substr(0, node.name.find('-'))];
      if (!other.empty() && seen->crowded.empty()) seen->crowded = other + " and " + node.name;
      other = node.name;
    }
  });
  return seen;
}

Scene::Check label_is(Scene* scene, std::string node, std::string key, std::string value) {
  return [=] {
    const std::string is = scene->view().label(node, key);
    return is == value ? std::string() : node + " has " + key + "=" + is;
  };
}

// `node` is left alone until its label `state` says `done`, while others are rolled: whoever works on it waits for
// that.
asio::awaitable<void> others_go_on(Scene* scene, std::string node, std::size_t from, std::string state,
                                   std::string done) {
  // Of the node as it was at each moment: once it is done it can be started before the story looks.
  const auto early = std::make_shared<bool>(false);
  scene->cluster().nodes.add_listener([=](const k8s::ObjectKey& key, const JsonPtr&, const JsonPtr& after) {
    if (key.name != node || after == nullptr || scene->state_of(node) != "Updating") return;
    *early = *early || text(labels(*after), state) != done;
  });
  const Scene::Check another = [=] {
    return scene->happened(Happening::started, from) > 0 ? std::string() : std::string("no node has started");
  };
  co_await scene->until("another node to start meanwhile", 30min, another);
  // Creation times are whole seconds: the new pods come in a later one than the edit. The period is not scaled with the
  // story's time.
  co_await scene->clock().sleep_for(3s);
  scene->fleet().faults().jobs_remain = false;
  const Scene::Check is_done = label_is(scene, node, state, done);
  co_await scene->until("somebody else to be done with " + node, 30min, is_done);
  scene->require(!*early, node + " was started under somebody else's hands");
}

}  // namespace

// Each restart of feature discovery takes the labels of a node away for a minute: its product, by which groups are
// counted and canaries chosen.
asio::awaitable<void> labels_vanish(Scene* scene) {
  scene->fleet().faults().feature_files = true;
  const OperatorSettings one_of_a_model{{"max-unavailable-per-group", "1"}};
  co_await scene->begin(time_slicing_profile(2), one_of_a_model);
  if (!scene->failure().empty()) co_return;
  scene->fleet().faults().worker_looks_in_the_gap = true;
  const auto seen = watch_labels(scene);
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  scene->reset_peak();
  const std::string text = time_slicing_profile(4);
  co_await scene->edit("any", text);
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(10min);
  scene->require(seen->unlabelled.size() == scene->nodes().size(),
                 std::to_string(seen->unlabelled.size()) + " nodes have been without labels, not every one");
  scene->require(seen->crowded.empty(), seen->crowded + " were in a change at once, with a budget of one of a model");
  scene->require(scene->beyond(2));
  scene->require(scene->canary_problem(from, scene->all_nodes(), 60s));
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  co_await scene->until("its record to be complete", 5min, scene->phase_is("default", text, "Completed"));
}

// The node is cordoned and without a plugin on somebody else's account; its new pods read the edit by themselves.
asio::awaitable<void> driver_upgraded(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  if (!scene->failure().empty()) co_return;
  const char *node = "a100-02", *state = "nvidia.com/gpu-driver-upgrade-state";
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  scene->fleet().faults().jobs_remain = true;
  scene->fleet().driver_upgrader().upgrade(node);
  co_await scene->until("the upgrade to be under way", 5min, label_is(scene, node, state, "wait-for-jobs-required"));
  co_await scene->edit("any", time_slicing_profile(4));
  co_await others_go_on(scene, node, from, state, "upgrade-done");
  co_await scene->until_fleet_shows("every node on the new profile", 60min);
  co_await scene->until_settled(20min);
  scene->require(scene->restarts_of(node, before) == 1,
                 "the pods of a100-02, which are newer than the edit, were restarted again");
  scene->require(scene->beyond(2));
}

// After the MIG change the node has more devices than before, and the operator has not caused that.
asio::awaitable<void> mig_changed(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  if (!scene->failure().empty()) co_return;
  const char *node = "a100-02", *state = "nvidia.com/mig.config.state";
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  scene->fleet().faults().jobs_remain = true;
  co_await scene->label(node, "nvidia.com/mig.config", "all-1g.5gb");
  co_await scene->until("the MIG manager to be at work", 2min, label_is(scene, node, state, "pending"));
  scene->excused.insert(node);
  co_await scene->edit("any", time_slicing_profile(4));
  co_await others_go_on(scene, node, from, state, "success");
  const std::map<std::string, std::string> labels_of_slices{
      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED"}};
  const std::map<std::string, std::int64_t> shared_slices{{"nvidia.com/gpu", 2 * 7 * 4}};
  co_await scene->until("its slices, shared", 20min, scene->shows(node, labels_of_slices, shared_slices));
  co_await scene->until_fleet_shows("every other node on the new profile", 60min);
  scene->excused.clear();
  co_await scene->until_settled(20min);
  scene->require(scene->restarts_of(node, before) == 1,
                 "the pods of a100-02, which are newer than the edit, were restarted again");
  scene->require(scene->beyond(2));
}

// Where the scheduler could hand out a GPU twice while the plugin is away, the plugin is not taken away.
asio::awaitable<void> offered_twice(Scene* scene) {
  co_await scene->serve(kResourceSlices, "ResourceSlice", ".spec.driver");
  co_await scene->serve(kDeviceClasses, "DeviceClass", "");
  co_await scene->begin(time_slicing_profile(2));
  if (!scene->failure().empty()) co_return;
  const std::string node = "a100-02";
  json device_class;
  device_class["apiVersion"] = "resource.k8s.io/v1";
  device_class["kind"] = "DeviceClass";
  device_class["metadata"]["name"] = "gpu.nvidia.com";
  device_class["spec"]["extendedResourceName"] = "nvidia.com/gpu";
  const k8s::ObjectKey name{"", "gpu.nvidia.com"};
  co_await scene->put(kDeviceClasses, name, device_class);
  scene->fleet().dra_driver().offer(node, 2);
  co_await scene->clock().sleep_for(scene->scaled(10s));
  const Scene::Seen before = scene->seen();
  co_await scene->edit("any", time_slicing_profile(4));
  co_await scene->until("the policy to name the node and the reason", 10min,
                        scene->blocked_by("default", "DRADoubleOffer", node));
  scene->excused.insert(node);
  co_await scene->until_fleet_shows("every other node on the new profile", 60min);
  scene->require(scene->restarts_of(node, before) == 0, node + " was restarted although DRA offers its GPUs, too");
  if (!scene->failure().empty()) co_return;
  scene->fleet().dra_driver().withdraw(node);
  scene->excused.clear();
  co_await scene->until_fleet_shows("the node, once DRA offers it no more", 20min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
}

// KAI has one GPU of a node, and is about to bind a pod to another node; a third one it takes while that drains.
asio::awaitable<void> shared_by_kai(Scene* scene) {
  co_await scene->begin(mps_profile(2));
  if (!scene->failure().empty()) co_return;
  const std::string shared = "a100-02", bound_soon = "a100-03", busy = "a100-04";
  co_await bring_kai(scene, shared, bound_soon);
  co_await scene->use_gpu(busy, "training");
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  co_await scene->edit("any", mps_profile(4));
  const std::set<std::string> of_kai{shared, bound_soon};
  for (const std::string& node : of_kai)
    co_await scene->until(node + " to be blocked", 10min, scene->blocked_by("default", "KAIReservations", node));
  const Scene::Check drains = [=] {
    return scene->state_of(busy) == "Updating" ? std::string() : busy + " is '" + scene->state_of(busy) + "'";
  };
  co_await scene->until(busy + " to drain", 20min, drains);
  co_await bind_soon(scene, busy);
  co_await scene->until(busy + " to be blocked", 10min, scene->blocked_by("default", "KAIReservations", busy));
  const Scene::Check is_back = [=] {
    const bool back = scene->happened(Happening::uncordoned, from) > 0 && scene->view().schedulable(busy);
    return back ? std::string() : busy + " stays cordoned although KAI has taken it";
  };
  co_await scene->until(busy + " to be schedulable", 0s, is_back);
  const k8s::ObjectKey training{"default", "training"};
  co_await scene->remove(kPods, training);
  scene->excused = {shared, bound_soon, busy};
  co_await scene->until_fleet_shows("the node that KAI has left alone on the new profile", 30min);
  const Scene::Check alone = [=] {
    for (const std::string& node : {shared, bound_soon, busy})
      if (scene->restarts_of(node, before) > 0) return node + " was restarted, whose GPUs KAI shares";
    return std::string();
  };
  co_await scene->stays("KAI's nodes as they are", 10min, alone);
  co_await end_kai_pods(scene);
  scene->excused.clear();
  co_await scene->until_fleet_shows("every node on the new profile, once KAI has left", 60min);
  co_await scene->until_settled(20min);
  // Its daemons are the device plugin's, and serve no fraction; only virtual time has the minute until a label is set.
  const Scene::Check unmarked = [=] {
    for (const NodeSpec& node : scene->nodes())
      if (!scene->view().label(node.name, "nvidia.mps/enabled").empty()) return node.name + " attracts KAI's MPS pods";
    return std::string();
  };
  if (scene->exact()) co_await scene->stays("the nodes without KAI's label", 5min, unmarked);
}

}  // namespace gso::sim
