// The chapters before and around profiles: the fleet, the installation, what is refused, the crash.
#include <algorithm>
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

json status_of(const JsonPtr& object) {
  return object == nullptr ? json::object() : object->value("status", json::object());
}

}  // namespace

// What was there before the operator: definitions, namespace, profiles, the GPU Operator's DaemonSets, a standalone
// plugin on one node, and a MIG node that somebody labelled.
asio::awaitable<Story::Held> Story::running_fleet() {
  const Held prepared = co_await prepare_cluster();
  if (!prepared) co_return prepared;
  profiles_ = {{"any", mps_profile(4)}, {kSlices, time_slicing_profile(4)}, {kOtherMps, mps_profile(2)}};
  const Held stored = co_await apply(kConfigMaps, {install_.ns, install_.config_map},
                                     config_map(install_.ns, install_.config_map, profiles_).dump());
  if (!stored) co_return stored;
  const Held registered = co_await await_registered();
  if (!registered) co_return registered;
  const Held labelled = co_await label_node("mig-01", kConfigLabel, kSlices);
  if (!labelled) co_return labelled;
  const Held policy = co_await apply(kClusterPolicies, {"", "cluster-policy"}, cluster_policy(install_).dump());
  if (!policy) co_return policy;
  for (const json& daemonset : standalone_daemonsets(install_, "edge")) {
    const Held applied = co_await apply(kDaemonSets, {install_.ns, daemonset["metadata"]["name"]}, daemonset.dump());
    if (!applied) co_return applied;
  }
  // The node that nobody labels shows its GPUs, but no sharing labels yet: those come from the operator.
  const Check is_up = [this] {
    for (const NodeSpec& node : nodes_) {
      const std::string problem = node_problem(node);
      if (!problem.empty() && (node.nfd || !problem.contains("label "))) return problem;
    }
    return std::string();
  };
  const Held up = co_await await("a fleet that shares its GPUs by MPS", 5min, is_up);
  co_return up;
}

asio::awaitable<Story::Held> Story::install() {
  const Seen before = seen();
  view_.reset_peak();
  const OperatorSettings as_usual;
  const Held started = co_await start_operator(as_usual);
  if (!started) co_return started;
  const Held labelled = co_await await_fleet("labels on the node that nobody labels", 2min);
  if (!labelled) co_return labelled;
  const Held settled = co_await await_settled(2min);
  if (!settled) co_return settled;
  const Check still_quiet = [this, before] {
    if (const std::string restarted = restarts_problem(before, {}, false); !restarted.empty()) return restarted;
    return std::string(view_.peak_unavailable() > 0 ? "a node was out of service" : "");
  };
  const Held quiet = co_await holds_for("nothing is disturbed", 2min, still_quiet);
  co_return quiet;
}

asio::awaitable<Story::Held> Story::apply_policy(std::string name, std::string node, std::string key) {
  const json policy{{"apiVersion", "gpusharing.dev/v1alpha1"},
                    {"kind", "SharingPolicy"},
                    {"metadata", {{"name", name}}},
                    {"spec",
                     {{"priority", 100},
                      {"takeover", true},
                      {"nodeSelector", {{"matchLabels", {{"kubernetes.io/hostname", node}}}}},
                      {"profile", {{"configMapKey", key}}},
                      {"rollout", {{"maxUnavailable", 1}, {"maxUnavailablePerGroup", 1}}}}}};
  const Held applied = co_await apply(kPolicies, {"", name}, policy.dump());
  co_return applied;
}

// status.blocked names the reason, and says what to do about it.
asio::awaitable<Story::Held> Story::await_block(std::string policy, std::string reason, std::string mention) {
  const Check is_blocked = [=, this] {
    const json status = status_of(view_.policies.find({"", policy}));
    for (const json& block : status.value("blocked", json::array())) {
      if (block.value("reason", "") != reason) continue;
      if (block.value("message", "").empty()) return "the block has no message: " + block.dump();
      if (!block.dump().contains(mention)) return "the block does not mention '" + mention + "': " + block.dump();
      return std::string();
    }
    return "its status is " + status.dump();
  };
  const Held blocked = co_await await("SharingPolicy '" + policy + "' blocked by " + reason, 2min, is_blocked);
  co_return blocked;
}

asio::awaitable<Story::Held> Story::refuse_mps_on_mig() {
  const Seen before = seen();
  const Held applied = co_await apply_policy("mig-on-mps", "mig-01", "any");
  if (!applied) co_return applied;
  const Held blocked = co_await await_block("mig-on-mps", "MIGEnabled", "mig-01");
  if (!blocked) co_return blocked;
  const Check still_left_alone = [this, before] {
    const std::string label = view_.label("mig-01", kConfigLabel);
    return label == kSlices ? restarts_problem(before, {}, false) : "its label is '" + label + "'";
  };
  const Held left_alone = co_await holds_for("the MIG node is left alone", 30s, still_left_alone);
  if (!left_alone) co_return left_alone;
  auto removed = co_await client_->remove(kPolicies, {"", "mig-on-mps"});
  if (!removed) co_return removed;
  const Held settled = co_await await_settled(2min);
  co_return settled;
}

asio::awaitable<Story::Held> Story::broken_edit() {
  const Seen before = seen();
  const k8s::WallTime edited_at = clock_->now();
  const std::string good = profiles_["any"];
  const Held edited = co_await edit_profile("any", mps_profile(1));
  if (!edited) co_return edited;
  const Check is_refused = [=, this] {
    const json status = status_of(view_.policies.find({"", "default"}));
    for (const json& condition : status.value("conditions", json::array())) {
      if (condition.value("type", "") != "ConfigValid" || condition.value("status", "") != "False") continue;
      const std::string message = condition.value("message", "");
      if (!message.contains("line 6") || !message.contains("replicas")) return "the condition says: " + message;
      for (const std::string& note : view_.event_notes("ConfigInvalid", edited_at))
        if (note.contains("line 6") && note.contains("replicas")) return std::string();
      return std::string("there is no Event ConfigInvalid that says the same");
    }
    return "the SharingPolicy 'default' says " + status.value("conditions", json::array()).dump();
  };
  const Held refused = co_await await("a refusal with line and reason", 2min, is_refused);
  if (!refused) co_return refused;
  const Check still_nothing = [=, this] { return restarts_problem(before, {}, false); };
  const Held nothing = co_await holds_for("nothing is restarted", 2min, still_nothing);
  if (!nothing) co_return nothing;
  const Held repaired = co_await roll("6 replicas", mps_profile(6), true);
  co_return repaired;
}

asio::awaitable<Story::Held> Story::one_node_by_label() {
  const Seen before = seen();
  const Held labelled = co_await label_node("a100-03", kConfigLabel, kSlices);
  if (!labelled) co_return labelled;
  const Held moved = co_await await_fleet("a100-03 on time-slicing", 5min);
  if (!moved) co_return moved;
  const Held settled = co_await await_settled(2min);
  if (!settled) co_return settled;
  const auto plugins = view_.restarted("nvidia-device-plugin", before.plugin);
  const auto daemons = view_.restarted("mps-control-daemon", before.mps);
  for (const std::string& node : all_nodes()) {
    if (node == "a100-03" || (!plugins.contains(node) && !daemons.contains(node))) continue;
    co_return k8s::fail(k8s::Reason::invalid, node + " was restarted, too");
  }
  co_return Held{};
}

// With v0.18.2 and later an MPS profile that is not the default never gets there: refused, with the remedy. Before that
// it works, once the MPS pod is replaced.
asio::awaitable<Story::Held> Story::mps_by_label() {
  const Seen before = seen();
  const Held applied = co_await apply_policy("other-mps", "a100-04", kOtherMps);
  if (!applied) co_return applied;
  if (default_first()) {
    const Held blocked = co_await await_block("other-mps", "MPSByLabelUnsupported", "default");
    if (!blocked) co_return blocked;
    const Check still_left_alone = [this, before] {
      const std::string label = view_.label("a100-04", kConfigLabel);
      return label.empty() ? restarts_problem(before, {}, false) : "its label is '" + label + "'";
    };
    const Held left_alone = co_await holds_for("a100-04 is left alone", 30s, still_left_alone);
    if (!left_alone) co_return left_alone;
  } else {
    node_labels_["a100-04"] = kOtherMps;
    const Held moved = co_await await_fleet("a100-04 on the other MPS profile", 10min);
    if (!moved) co_return moved;
  }
  auto removed = co_await client_->remove(kPolicies, {"", "other-mps"});
  if (!removed) co_return removed;
  if (!default_first()) {
    // The label stays with the node when its policy goes.
    const Held unlabelled = co_await label_node("a100-04", kConfigLabel, std::nullopt);
    if (!unlabelled) co_return unlabelled;
  }
  const Held back = co_await await_fleet("a100-04 on the default again", 10min);
  if (!back) co_return back;
  const Held settled = co_await await_settled(5min);
  co_return settled;
}

// The native way: the GPU Operator rolls its DaemonSets, at its own pace; the operator follows and says beforehand
// which nodes will not survive it.
asio::awaitable<Story::Held> Story::new_default() {
  // A team pinned its node to what is the default today.
  const Held pinned = co_await label_node("a100-05", kConfigLabel, "any");
  if (!pinned) co_return pinned;
  const Held settled_before = co_await await_settled(2min);
  if (!settled_before) co_return settled_before;
  const k8s::WallTime patched_at = clock_->now();
  default_key_ = kSlices;
  json body;
  body["spec"]["devicePlugin"]["config"]["default"] = kSlices;
  const Held patched = co_await patch(kClusterPolicies, {"", "cluster-policy"}, body.dump());
  if (!patched) co_return patched;
  if (default_first()) {
    const Check is_named = [=, this] {
      const auto notes = view_.event_notes("NodesWouldBreak", patched_at);
      if (notes.empty()) return std::string("there is no Event NodesWouldBreak");
      return notes.back().contains("a100-05") ? std::string() : "the Event says: " + notes.back();
    };
    const Held named = co_await await("a100-05 named as a node that will break", 2min, is_named);
    if (!named) co_return named;
    const Held unpinned = co_await label_node("a100-05", kConfigLabel, std::nullopt);
    if (!unpinned) co_return unpinned;
  }
  const Held followed = co_await await_fleet("time-slicing by default", 15min);
  if (!followed) co_return followed;
  const Held settled = co_await await_settled(5min);
  co_return settled;
}

}  // namespace gso::sim
