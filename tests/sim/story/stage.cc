#include "tests/sim/story/stage.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/api/client.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

std::unexpected<k8s::Error> broken(std::string why) {
  return k8s::fail(k8s::Reason::invalid, std::move(why));
}

}  // namespace

std::string seconds(k8s::Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(duration).count());
  return text;
}

std::string mps_profile(int replicas, bool rename, std::optional<bool> fail_above_one) {
  std::string text = "version: v1\nsharing:\n  mps:\n";
  if (rename) text += "    renameByDefault: true\n";
  if (fail_above_one)
    text += std::string("    failRequestsGreaterThanOne: ") + (*fail_above_one ? "true" : "false") + "\n";
  return text + "    resources:\n    - name: nvidia.com/gpu\n      replicas: " + std::to_string(replicas) + "\n";
}

std::string time_slicing_profile(int replicas) {
  return "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: " +
         std::to_string(replicas) + "\n";
}

Stage::Stage(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, StageOptions options,
             std::vector<NodeSpec> nodes)
    : client_(client),
      clock_(clock),
      operator_(op),
      options_(std::move(options)),
      view_(client, clock),
      nodes_(std::move(nodes)) {
  install_.plugin_version = options_.plugin_version;
}

k8s::Duration Stage::scaled(k8s::Duration real) const {
  return std::chrono::duration_cast<k8s::Duration>(std::chrono::duration<double>(real) * options_.time_scale);
}

bool Stage::default_first() const {
  return PluginVersion::of_image(options_.plugin_version).default_first();
}

asio::awaitable<Stage::Held> Stage::apply(k8s::Gvr gvr, k8s::ObjectKey key, std::string object) {
  auto created = co_await client_->create(gvr, key.ns, object);
  if (created) co_return Held{};
  if (created.error().reason != k8s::Reason::already_exists) co_return std::unexpected(created.error());
  auto patched = co_await client_->merge_patch(gvr, key, object);
  if (!patched) co_return std::unexpected(patched.error());
  co_return Held{};
}

asio::awaitable<Stage::Held> Stage::patch(k8s::Gvr gvr, k8s::ObjectKey key, std::string body) {
  auto patched = co_await client_->merge_patch(gvr, key, body);
  if (!patched) co_return std::unexpected(patched.error());
  co_return Held{};
}

asio::awaitable<Stage::Held> Stage::edit_profile(std::string key, std::string text) {
  profiles_[key] = text;
  json body;
  body["data"][key] = text;
  const Held edited = co_await patch(kConfigMaps, {install_.ns, install_.config_map}, body.dump());
  co_return edited;
}

asio::awaitable<Stage::Held> Stage::label_node(std::string node, std::string key, std::optional<std::string> value) {
  json body;
  body["metadata"]["labels"][key] = value ? json(*value) : json();
  if (key == kConfigLabel && value) node_labels_[node] = *value;
  if (key == kConfigLabel && !value) node_labels_.erase(node);
  const Held labelled = co_await patch(kNodes, {"", node}, body.dump());
  co_return labelled;
}

asio::awaitable<Stage::Held> Stage::declare_settings(std::map<std::string, std::string> settings) {
  const k8s::ObjectKey key{"default", "operator-settings"};
  json object;
  object["apiVersion"] = "v1";
  object["kind"] = "ConfigMap";
  object["metadata"] = {{"name", key.name}, {"namespace", key.ns}};
  object["data"]["story"] = options_.story;
  object["data"]["flags"] = json(settings).dump();
  const Held declared = co_await apply(kConfigMaps, key, object.dump());
  co_return declared;
}

asio::awaitable<Stage::Held> Stage::start_operator(OperatorSettings more) {
  const auto text = [this](k8s::Duration real) {
    return k8s::format_go_duration(std::max<k8s::Duration>(scaled(real), std::chrono::milliseconds(20)));
  };
  const std::string budget = std::to_string(options_.max_unavailable);
  std::map<std::string, std::string> all{
      // At least a second: times of objects are whole ones, and a pod of the second of its text is replaced again.
      {"settle-period",
       k8s::format_go_duration(std::max<k8s::Duration>(scaled(std::chrono::seconds(10)), std::chrono::seconds(1)))},
      {"clock-difference",
       k8s::format_go_duration(std::chrono::floor<std::chrono::seconds>(scaled(std::chrono::seconds(3))))},
      {"node-status-lag", text(std::chrono::seconds(15))},
      {"configmap-propagation", text(std::chrono::seconds(100))},
      {"status-interval", text(std::chrono::seconds(1))},
      {"canary-soak", text(std::chrono::seconds(60))},
      {"verify-timeout", k8s::format_go_duration(scaled(std::chrono::minutes(10)) + options_.slack)},
      {"max-unavailable", budget},
      {"max-unavailable-per-group", budget},
      {"cluster-max-unavailable", budget}};
  for (const auto& [name, value] : options_.operator_settings) all[name] = value;
  for (const auto& [name, value] : more) all[name] = value;
  const Held declared = co_await declare_settings(all);
  if (!declared) co_return declared;
  running_ = true;
  co_return operator_->start({all.begin(), all.end()});
}

asio::awaitable<Stage::Held> Stage::kill_operator() {
  running_ = false;
  co_await operator_->kill();
  co_return Held{};
}

asio::awaitable<Stage::Held> Stage::prepare_cluster() {
  std::vector<std::string> definitions = options_.custom_resources;
  if (options_.install_definitions)
    definitions.push_back(open_definition("nvidia.com", "clusterpolicies", "ClusterPolicy", "v1", false).dump());
  for (const std::string& definition : definitions) {
    const std::string name = json::parse(definition)["metadata"]["name"];
    auto created = co_await client_->create(kCustomResourceDefinitions, "", definition);
    if (!created && created.error().reason != k8s::Reason::already_exists) co_return std::unexpected(created.error());
  }
  const std::vector<std::string> namespaces{install_.ns, "gpu-sharing-operator"};
  for (const std::string& ns : namespaces) {
    const json object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}};
    const k8s::ObjectKey key{"", ns};
    const Held made = co_await apply(kNamespaces, key, object.dump());
    if (!made) co_return made;
  }
  co_return Held{};
}

asio::awaitable<Stage::Held> Stage::await_registered() {
  const Check is_registered = [this] {
    if (!view_.trouble().empty()) return view_.trouble();
    for (const NodeSpec& node : nodes_)
      if (view_.nodes.find({"", node.name}) == nullptr) return "node " + node.name + " is not there";
    return std::string();
  };
  const Held registered = co_await await("the fleet's nodes to register", std::chrono::seconds(60), is_registered);
  co_return registered;
}

asio::awaitable<Stage::Held> Stage::await(std::string what, k8s::Duration bound, Check check) {
  const k8s::MonoTime deadline = clock_->monotonic() + scaled(bound) + options_.slack;
  while (true) {
    if (const std::string why = invariant(); !why.empty()) co_return broken(why);
    const std::string missing = check();
    if (missing.empty()) co_return Held{};
    if (const std::string why = running_ ? operator_->trouble() : ""; !why.empty())
      co_return broken("while waiting for " + what + ": " + why);
    if (clock_->monotonic() >= deadline)
      co_return broken("waited " + seconds(scaled(bound) + options_.slack) + " for " + what + "; but " + missing);
    // Also without a change: the check may depend on time, and the operator may have ended.
    const bool something = co_await view_.changed(std::min(deadline, clock_->monotonic() + std::chrono::seconds(1)));
    (void)something;
  }
}

asio::awaitable<Stage::Held> Stage::holds_for(std::string what, k8s::Duration duration, Check check) {
  const k8s::MonoTime end = clock_->monotonic() + scaled(duration);
  while (true) {
    const std::string wrong = check();
    if (!wrong.empty()) co_return broken(what + "; but " + wrong);
    if (const std::string why = invariant(); !why.empty()) co_return broken(why);
    if (clock_->monotonic() >= end) co_return Held{};
    const bool something = co_await view_.changed(end);
    (void)something;
  }
}

std::string Stage::effective_key(const NodeSpec& node) const {
  auto label = node_labels_.find(node.name);
  if (label != node_labels_.end()) return label->second;
  return node.nfd ? default_key_ : install_.default_key;
}

std::string Stage::node_problem(const NodeSpec& node) const {
  const std::string key = effective_key(node);
  auto profile = profiles_.find(key);
  if (profile == profiles_.end() && !key.empty()) return node.name + ": the story has no profile '" + key + "'";
  const std::string text = key.empty() ? "version: v1\n" : profile->second;  // Without a key, nothing is shared.
  const auto expectation = expect_node(node, text, options_.plugin_version, "single");
  if (!expectation) return node.name + ": profile '" + key + "' cannot work there";
  const std::string differs = difference(view_, node.name, *expectation);
  return differs.empty() ? "" : node.name + ": " + differs;
}

std::string Stage::fleet_problem() {
  std::string first;
  std::size_t wrong = 0;
  for (const NodeSpec& node : nodes_) {
    const std::string problem = node_problem(node);
    if (problem.empty()) {
      if (told_.insert(node.name).second) say("    " + node.name + "  " + shown(view_, node.name));
      continue;
    }
    told_.erase(node.name);
    if (++wrong == 1) first = problem;
  }
  if (wrong == 0) return {};
  const std::string message = view_.annotation(first.substr(0, first.find(':')), "gpusharing.dev/message");
  return first + (message.empty() ? "" : " (the operator says: " + message + ")") +
         (wrong > 1 ? ", and " + std::to_string(wrong - 1) + " more" : "");
}

asio::awaitable<Stage::Held> Stage::await_fleet(std::string what, k8s::Duration bound) {
  // Only nodes that change are reported.
  told_.clear();
  for (const NodeSpec& node : nodes_)
    if (node_problem(node).empty()) told_.insert(node.name);
  const Check is_held = [this] { return fleet_problem(); };
  const Held held = co_await await(std::move(what), bound, is_held);
  co_return held;
}

// A DaemonSet controller that still replaces pods by a new template would restart them under the next step of a story.
std::string Stage::unfinished_update() const {
  for (const auto& [key, daemonset] : view_.daemonsets.all()) {
    const json spec = daemonset->value("spec", json::object());
    const json status = daemonset->value("status", json::object());
    const bool rolls = spec.value("updateStrategy", json::object()).value("type", "RollingUpdate") == "RollingUpdate";
    if (rolls && status.value("updatedNumberScheduled", 0) < status.value("desiredNumberScheduled", 0))
      return "DaemonSet '" + key.name + "' still replaces pods: " + status.dump();
  }
  return {};
}

std::string Stage::settled_problem() const {
  if (std::string unfinished = unfinished_update(); !unfinished.empty()) return unfinished;
  const JsonPtr policy = view_.policies.find({"", "default"});
  if (policy == nullptr) return "there is no SharingPolicy 'default'";
  const json status = policy->value("status", json::object());
  const json counts = status.value("nodes", json::object());
  const auto total = counts.value("total", std::int64_t{0});
  const auto fine = counts.value("upToDate", std::int64_t{0});
  if (total != static_cast<std::int64_t>(nodes_.size()) || fine != total) {
    return "the SharingPolicy 'default' counts " + std::to_string(fine) + " of " + std::to_string(total) +
           " nodes as up to date, not " + std::to_string(nodes_.size()) + ": " + status.dump();
  }
  for (const auto& [key, rollout] : view_.rollouts.all()) {
    const std::string phase = rollout->value("status", json::object()).value("phase", "");
    if (phase != "Completed" && phase != "Superseded") return "SharingRollout '" + key.name + "' is '" + phase + "'";
  }
  for (const NodeSpec& node : nodes_)
    if (const std::string state = view_.label(node.name, "gpusharing.dev/state"); !state.empty())
      return node.name + " is " + state + ": " + view_.annotation(node.name, "gpusharing.dev/message");
  return {};
}

asio::awaitable<Stage::Held> Stage::await_settled(k8s::Duration bound) {
  const Check is_held = [this] { return settled_problem(); };
  const Held held = co_await await("every node counted as up to date", bound, is_held);
  co_return held;
}

Stage::Seen Stage::seen() const {
  return {view_.pods_seen("nvidia-device-plugin"), view_.pods_seen("gpu-feature-discovery"),
          view_.pods_seen("mps-control-daemon")};
}

// Nobody but `nodes` got new pods, and these got exactly one plugin pod each (and one MPS pod, if `mps`).
std::string Stage::restarts_problem(const Seen& before, const std::set<std::string>& nodes, bool mps) const {
  for (const auto& [component, old] :
       {std::pair{"nvidia-device-plugin", &before.plugin}, std::pair{"gpu-feature-discovery", &before.gfd},
        std::pair{"mps-control-daemon", &before.mps}}) {
    for (const auto& [node, count] : view_.restarted(component, *old)) {
      if (!nodes.contains(node))
        return std::string(component) + " was restarted on " + node + ", which is not concerned";
      if (count > 1)
        return std::string(component) + " was restarted " + std::to_string(count) + " times on " + node + ", not once";
    }
  }
  const auto plugins = view_.restarted("nvidia-device-plugin", before.plugin);
  const auto daemons = view_.restarted("mps-control-daemon", before.mps);
  for (const std::string& node : nodes) {
    if (!plugins.contains(node)) return "the device plugin was not restarted on " + node;
    if (mps && !daemons.contains(node)) return "the MPS daemon was not restarted on " + node;
  }
  return {};
}

std::set<std::string> Stage::nodes_on(const std::string& key) const {
  std::set<std::string> names;
  for (const NodeSpec& node : nodes_)
    if (effective_key(node) == key) names.insert(node.name);
  return names;
}

std::set<std::string> Stage::all_nodes() const {
  std::set<std::string> names;
  for (const NodeSpec& node : nodes_) names.insert(node.name);
  return names;
}

std::vector<std::vector<std::string>> Stage::node_table() const {
  std::vector<std::vector<std::string>> rows;
  for (const NodeSpec& node : nodes_) {
    std::string state = view_.label(node.name, "gpusharing.dev/state");
    if (state.empty()) state = node_problem(node).empty() ? "UpToDate" : "Differs";
    std::string gpus;
    for (const auto& [resource, count] : view_.allocatable(node.name))
      gpus += (gpus.empty() ? "" : " ") + resource + "=" + std::to_string(count);
    rows.push_back({node.name, effective_key(node), view_.label(node.name, "nvidia.com/gpu.sharing-strategy"),
                    view_.label(node.name, "nvidia.com/gpu.replicas"), view_.label(node.name, "nvidia.com/gpu.product"),
                    gpus, state});
  }
  return rows;
}

}  // namespace gso::sim
