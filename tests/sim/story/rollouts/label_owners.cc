// A story about who writes the sharing labels: feature discovery, the operator where there is none, and another client
// that wants other values.
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

const std::string kReplicas = "nvidia.com/gpu.replicas";
const std::string kOwned = "gpusharing.dev/owned";

bool names_it(const Scene& scene, const std::string& node, const std::string& annotation) {
  return scene.view().annotation(node, annotation).find(kReplicas) != std::string::npos;
}

// Every node shows two replicas, and either the operator or NFD says that the label is its own, and not both.
Stage::Check labels_are_of(Scene* scene, bool of_operator) {
  return [=] {
    for (const std::string& node : scene->all_nodes()) {
      const std::string value = scene->view().label(node, kReplicas);
      if (value != "2") return node + " has " + kReplicas + "=" + value;
      if (names_it(*scene, node, kOwned) != of_operator)
        return node + " has " + kOwned + "=" + scene->view().annotation(node, kOwned);
      if (names_it(*scene, node, kFeatureLabels) == of_operator)
        return "NFD lists " + scene->view().annotation(node, kFeatureLabels) + " of " + node;
    }
    return std::string();
  };
}

// Another client sets the label of that node again and again.
asio::awaitable<void> compete(Scene* scene, std::string node, int times) {
  for (int i = 0; i < times && scene->failure().empty(); ++i) {
    co_await scene->label(node, kReplicas, "7");
    co_await scene->clock().sleep_for(scene->scaled(20s));
  }
}

}  // namespace

asio::awaitable<void> labels_change_hands(Scene* scene) {
  const OperatorSettings as_usual;
  co_await scene->begin(time_slicing_profile(2), as_usual);
  if (!scene->failure().empty()) co_return;
  const Stage::Seen before = scene->seen();
  const k8s::ObjectKey key{"gpu-operator", "gpu-feature-discovery"};
  const JsonPtr found = scene->cluster().daemonsets.find(key);
  scene->require(found != nullptr, "there is no feature discovery");
  if (!scene->failure().empty()) co_return;
  const json discovery{{"apiVersion", "apps/v1"},
                       {"kind", "DaemonSet"},
                       {"metadata",
                        {{"name", key.name},
                         {"namespace", key.ns},
                         {"labels", member(*found, "metadata").value("labels", json::object())},
                         {"ownerReferences", member(*found, "metadata").value("ownerReferences", json::array())}}},
                       {"spec", member(*found, "spec")}};

  // Without feature discovery the labels go with it, and the operator writes them.
  co_await scene->remove(kDaemonSets, key);
  co_await scene->until("the operator to write the labels", 10min, labels_are_of(scene, true));

  // Against another client it does so three times, and leaves the label then.
  const std::string node = *scene->all_nodes().begin();
  co_await compete(scene, node, 12);
  co_await scene->until("the policy to name the label", 5min,
                        scene->condition_is("default", "LabelsContested", "True", "LabelContested", node));
  co_await scene->until("an Event", 2min, scene->event_says("LabelContested", node));
  const Stage::Check left = [scene, node] {
    const std::string value = scene->view().label(node, kReplicas);
    return value == "7" ? std::string() : node + " has " + kReplicas + "=" + value;
  };
  co_await scene->stays("the label as the other client wants it", 30min, left);

  // Feature discovery returns: NFD takes the labels over, and the operator writes none of them any more.
  co_await scene->put(kDaemonSets, key, discovery);
  co_await scene->until("NFD to own the labels", 10min, labels_are_of(scene, false));
  co_await scene->until("the policy to be content", 5min,
                        scene->condition_is("default", "LabelsContested", "False", "NotContested", ""));
  co_await scene->until_settled(10min);
  scene->require(scene->plugins_restarted(before) == 0, "a plugin was restarted for a label");
}

}  // namespace gso::sim
