// The chapters before and around profiles: the fleet, the installation, what is refused, other defaults.
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/story.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

constexpr const char* kSlices = "slices-4";
constexpr const char* kOtherMps = "mps-2";

}  // namespace

// What was there before the operator: definitions, namespace, profiles, the GPU Operator's DaemonSets, a standalone
// plugin on one node, and a MIG node that somebody labelled.
asio::awaitable<void> Story::running_fleet() {
  co_await prepare_cluster();
  const std::map<std::string, std::string> profiles{
      {"any", mps_profile(4)}, {kSlices, time_slicing_profile(4)}, {kOtherMps, mps_profile(2)}};
  co_await put_profiles(install_.config_map, profiles);
  co_await until_registered();
  co_await label("mig-01", kConfigLabel, kSlices);
  co_await put_cluster_policy(install_.config_map, "any");
  for (const json& daemonset : standalone_daemonsets(install_, "edge")) {
    const k8s::ObjectKey key{install_.ns, daemonset["metadata"]["name"]};
    co_await put(kDaemonSets, key, daemonset);
  }
  // The node that nobody labels shows its GPUs, but no sharing labels yet: those come from the operator.
  const Check is_up = [this] {
    for (const NodeSpec& node : nodes_) {
      const std::string problem = node_problem(node);
      if (!problem.empty() && (node.nfd || !problem.contains("label "))) return problem;
    }
    return std::string();
  };
  co_await until("a fleet that shares its GPUs by MPS", 5min, is_up);
}

asio::awaitable<void> Story::installed() {
  const Seen before = look();
  co_await start();
  co_await until_fleet_shows("labels on the node that nobody labels", 2min);
  co_await until_settled(2min);
  const Check still_quiet = [this, before] {
    const std::string restarted = disturbed(before);
    return restarted.empty() ? beyond(0) : restarted;
  };
  co_await stays("nothing is disturbed", 2min, still_quiet);
}

asio::awaitable<void> Story::ask_for(std::string policy, std::string node, std::string key) {
  json spec;
  spec["priority"] = 100;
  spec["takeover"] = true;
  spec["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] = std::move(node);
  spec["profile"]["configMapKey"] = std::move(key);
  spec["rollout"]["maxUnavailable"] = 1;
  spec["rollout"]["maxUnavailablePerGroup"] = 1;
  co_await this->policy(std::move(policy), spec);
}

Scene::Check Story::left_alone(std::string node, std::string label) const {
  return [=, this, before = seen()] {
    const std::string is = view_.label(node, kConfigLabel);
    return is == label ? disturbed(before) : "its label is '" + is + "'";
  };
}

asio::awaitable<void> Story::refuse_mps_on_mig() {
  const Check is_left_alone = left_alone("mig-01", kSlices);
  co_await ask_for("mig-on-mps", "mig-01", "any");
  co_await until("the policy to be blocked", 2min, blocked_by("mig-on-mps", "MIGEnabled", "mig-01"));
  co_await stays("the MIG node is left alone", 30s, is_left_alone);
  const k8s::ObjectKey policy{"", "mig-on-mps"};
  co_await remove(kPolicies, policy);
  co_await until_settled(2min);
}

asio::awaitable<void> Story::broken_edit() {
  const Seen before = seen();
  co_await edit("any", mps_profile(1));
  // A refusal with line and reason.
  for (const std::string mention : {"line 6", "replicas"}) {
    co_await until("the policy to say so", 2min,
                   condition_is("default", "ConfigValid", "False", "ConfigInvalid", mention));
    co_await until("an Event that says the same", 2min, event_says("ConfigInvalid", mention));
  }
  const Check still_nothing = [=, this] { return disturbed(before); };
  co_await stays("nothing is restarted", 2min, still_nothing);
  co_await roll("6 replicas", mps_profile(6), true);
}

asio::awaitable<void> Story::one_node_by_label() {
  const Seen before = seen();
  co_await label("a100-03", kConfigLabel, kSlices);
  co_await until_fleet_shows("a100-03 on time-slicing", 5min);
  co_await until_settled(2min);
  for (const auto& restarted :
       {view_.restarted("nvidia-device-plugin", before.plugin), view_.restarted("mps-control-daemon", before.mps)}) {
    for (const auto& [node, count] : restarted) require(node == "a100-03", node + " was restarted, too");
  }
}

// With v0.18.2 and later an MPS profile that is not the default never gets there: refused, with the remedy. Before that
// it works, once the MPS pod is replaced.
asio::awaitable<void> Story::mps_by_label() {
  const Check is_left_alone = left_alone("a100-04", "");
  co_await ask_for("other-mps", "a100-04", kOtherMps);
  if (default_first()) {
    co_await until("the policy to be blocked", 2min, blocked_by("other-mps", "MPSByLabelUnsupported", "default"));
    co_await stays("a100-04 is left alone", 30s, is_left_alone);
  } else {
    node_labels_["a100-04"] = kOtherMps;
    co_await until_fleet_shows("a100-04 on the other MPS profile", 10min);
  }
  const k8s::ObjectKey policy{"", "other-mps"};
  co_await remove(kPolicies, policy);
  // The label stays with the node when its policy goes.
  if (!default_first()) co_await label("a100-04", kConfigLabel, std::nullopt);
  co_await until_fleet_shows("a100-04 on the default again", 10min);
  co_await until_settled(5min);
}

// The native way: the GPU Operator rolls its DaemonSets, at its own pace; the operator follows and says beforehand
// which nodes will not survive it.
asio::awaitable<void> Story::another_default() {
  // A team pinned its node to what is the default today.
  co_await label("a100-05", kConfigLabel, "any");
  co_await until_settled(2min);
  co_await new_default(kSlices);
  if (default_first()) {
    co_await until("a100-05 named as a node that will break", 2min, event_says("NodesWouldBreak", "a100-05"));
    co_await label("a100-05", kConfigLabel, std::nullopt);
  }
  co_await until_fleet_shows("time-slicing by default", 15min);
  co_await until_settled(5min);
}

}  // namespace gso::sim
