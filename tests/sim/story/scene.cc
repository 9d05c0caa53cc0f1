#include "tests/sim/story/scene.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdio>
#include <utility>

#include "k8sclient/api/client.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

constexpr const char* kState = "gpusharing.dev/state";
constexpr const char* kChange = "gpusharing.dev/change";

std::string state_in(const JsonPtr& node) {
  return node == nullptr ? std::string() : text(labels(*node), kState);
}

// The revision that the change on the node goes to; empty: none is under way.
std::string change_target(const JsonPtr& node) {
  if (node == nullptr) return {};
  const json change = json::parse(text(annotations(*node), kChange), nullptr, false);
  return change.is_object() ? change.value("to", "") : "";
}

bool is_cordoned(const JsonPtr& node) {
  return node != nullptr && node->value("spec", json::object()).value("unschedulable", false);
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

Scene::Scene(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, Fleet* fleet, StageOptions options,
             std::vector<NodeSpec> nodes)
    : client_(client),
      clock_(clock),
      operator_(op),
      options_(std::move(options)),
      view_(client, clock),
      nodes_(std::move(nodes)),
      fleet_(fleet),
      begun_(clock->now()) {
  install_.plugin_version = options_.plugin_version;
  view_.nodes.add_listener(
      [this](const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) { note(key, before, after); });
}

void Scene::note(const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) {
  const std::string was = state_in(before);
  const std::string is = state_in(after);
  const auto happens = [&](Happening what) {
    journal_.push_back({clock_->monotonic(), key.name, what, change_target(after)});
  };
  if (is == "Updating" && was != "Updating") happens(Happening::started);
  if (was == "Updating" && is.empty()) happens(Happening::finished);
  if (is == "Failed" && was != "Failed") happens(Happening::failed);
  if (is_cordoned(after) && !is_cordoned(before)) happens(Happening::cordoned);
  if (is_cordoned(before) && after != nullptr && !is_cordoned(after)) happens(Happening::uncordoned);
}

void Scene::require(bool holds, const std::string& wrong) {
  if (!holds && failure_.empty()) failure_ = wrong;
}

asio::awaitable<void> Scene::open() {
  co_await prepare_cluster();
  co_await until_registered();
}

asio::awaitable<void> Scene::until_registered() {
  const Check is_registered = [this] {
    if (!view_.trouble().empty()) return view_.trouble();
    for (const NodeSpec& node : nodes_)
      if (view_.nodes.find({"", node.name}) == nullptr) return "node " + node.name + " is not there";
    return std::string();
  };
  co_await until("the fleet's nodes to register", std::chrono::seconds(60), is_registered);
}

asio::awaitable<void> Scene::prepare_cluster() {
  const auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(executor, view_.run(), asio::detached);
  std::vector<std::string> definitions = options_.custom_resources;
  if (options_.install_definitions)
    definitions.push_back(open_definition("nvidia.com", "clusterpolicies", "ClusterPolicy", "v1", false).dump());
  for (const std::string& definition : definitions) {
    auto created = co_await client_->create(kCustomResourceDefinitions, "", definition);
    if (!created && created.error().reason != k8s::Reason::already_exists) keep(created);
  }
  const std::vector<std::string> namespaces{install_.ns, "gpu-sharing-operator"};
  for (const std::string& ns : namespaces) {
    const json object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}};
    const k8s::ObjectKey key{"", ns};
    co_await write(kNamespaces, key, object);
  }
}

asio::awaitable<void> Scene::put_profiles(std::string name, std::map<std::string, std::string> profiles) {
  install_.config_map = std::move(name);
  profiles_ = std::move(profiles);
  const json object = config_map(install_.ns, install_.config_map, profiles_);
  const k8s::ObjectKey key{install_.ns, install_.config_map};
  co_await put(kConfigMaps, key, object);
}

asio::awaitable<void> Scene::put_cluster_policy(std::string config_map, std::string default_key) {
  default_key_ = default_key;
  install_.default_key = default_key;
  json object = cluster_policy(install_);
  if (config_map.empty())
    object["spec"]["devicePlugin"].erase("config");
  else
    object["spec"]["devicePlugin"]["config"] = {{"name", config_map}, {"default", default_key}};
  const k8s::ObjectKey key{"", "cluster-policy"};
  co_await put(kClusterPolicies, key, object);
}

asio::awaitable<void> Scene::point_cluster_policy(std::string config_map, std::string default_key) {
  default_key_ = default_key;
  json merge;
  merge["spec"]["devicePlugin"]["config"]["name"] = std::move(config_map);
  merge["spec"]["devicePlugin"]["config"]["default"] = std::move(default_key);
  const k8s::ObjectKey policy{"", "cluster-policy"};
  co_await change(kClusterPolicies, policy, merge);
}

asio::awaitable<void> Scene::install_gpu_operator(std::map<std::string, std::string> profiles,
                                                  std::string default_key) {
  co_await put_profiles(install_.config_map, std::move(profiles));
  co_await put_cluster_policy(install_.config_map, std::move(default_key));
  co_await until_fleet_shows("a fleet that shows its profile", std::chrono::minutes(10));
}

asio::awaitable<void> Scene::start(OperatorSettings more) {
  if (!failure_.empty()) co_return;
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
  co_await declare_settings(all);
  running_ = true;
  keep(operator_->start({all.begin(), all.end()}));
}

asio::awaitable<void> Scene::declare_settings(std::map<std::string, std::string> settings) {
  const k8s::ObjectKey key{"default", "operator-settings"};
  const json object = config_map(key.ns, key.name, {{"story", options_.story}, {"flags", json(settings).dump()}});
  co_await write(kConfigMaps, key, object);
}

asio::awaitable<void> Scene::kill() {
  if (!failure_.empty()) co_return;
  running_ = false;
  co_await operator_->kill();
}

asio::awaitable<void> Scene::install(OperatorSettings more) {
  const Seen before = seen();
  co_await start(std::move(more));
  co_await until_settled(std::chrono::minutes(5));
  require(disturbed(before));
}

asio::awaitable<void> Scene::begin(std::string text, OperatorSettings more) {
  const std::map<std::string, std::string> profiles{{"any", text}};
  co_await install_gpu_operator(profiles, "any");
  co_await install(std::move(more));
}

asio::awaitable<void> Scene::write(k8s::Gvr gvr, k8s::ObjectKey key, json object) {
  if (!failure_.empty()) co_return;
  const std::string text = object.dump();
  auto written = co_await client_->create(gvr, key.ns, text);
  if (!written && written.error().reason == k8s::Reason::already_exists)
    written = co_await client_->merge_patch(gvr, key, text);
  keep(written);
}

asio::awaitable<void> Scene::put(k8s::Gvr gvr, k8s::ObjectKey key, json object) {
  if (failure_.empty()) made_.emplace_back(gvr, key);
  co_await write(gvr, key, std::move(object));
}

asio::awaitable<void> Scene::change(k8s::Gvr gvr, k8s::ObjectKey key, json merge) {
  if (!failure_.empty()) co_return;
  const std::string text = merge.dump();
  keep(co_await client_->merge_patch(gvr, key, text));
}

asio::awaitable<void> Scene::replace(k8s::Gvr gvr, k8s::ObjectKey key, json object) {
  if (!failure_.empty()) co_return;
  const std::string text = object.dump();
  keep(co_await client_->update(gvr, key, text));
}

asio::awaitable<void> Scene::remove(k8s::Gvr gvr, k8s::ObjectKey key) {
  if (!failure_.empty()) co_return;
  auto removed = co_await client_->remove(gvr, key);
  if (!removed && removed.error().reason != k8s::Reason::not_found) keep(removed);
}

asio::awaitable<void> Scene::edit(std::string key, std::string text) {
  profiles_[key] = text;
  json merge;
  merge["data"][key] = std::move(text);
  const k8s::ObjectKey where{install_.ns, install_.config_map};
  co_await change(kConfigMaps, where, merge);
}

asio::awaitable<void> Scene::label(std::string node, std::string key, std::optional<std::string> value) {
  if (key == kConfigLabel && value) node_labels_[node] = *value;
  if (key == kConfigLabel && !value) node_labels_.erase(node);
  json merge;
  merge["metadata"]["labels"][key] = value ? json(*value) : json();
  const k8s::ObjectKey name{"", std::move(node)};
  co_await change(kNodes, name, merge);
}

asio::awaitable<void> Scene::new_default(std::string key) {
  default_key_ = key;
  json merge;
  merge["spec"]["devicePlugin"]["config"]["default"] = key;
  const k8s::ObjectKey policy{"", "cluster-policy"};
  co_await change(kClusterPolicies, policy, merge);
}

asio::awaitable<void> Scene::policy(std::string name, json spec) {
  json object;
  object["apiVersion"] = "gpusharing.dev/v1alpha1";
  object["kind"] = "SharingPolicy";
  object["metadata"]["name"] = name;
  object["spec"] = std::move(spec);
  const k8s::ObjectKey key{"", name};
  co_await put(kPolicies, key, object);
}

asio::awaitable<void> Scene::tune(std::string name, json rollout) {
  json merge;
  merge["spec"]["rollout"] = std::move(rollout);
  const k8s::ObjectKey key{"", name};
  co_await change(kPolicies, key, merge);
}

asio::awaitable<void> Scene::serve(k8s::Gvr gvr, std::string kind, std::string field) {
  if (!failure_.empty()) co_return;
  const auto served = co_await client_->served(gvr);
  if (!served) co_return require(false, served.error().message);
  if (*served) co_return;
  json definition = open_definition(gvr.group, gvr.resource, kind, gvr.version, false);
  definition["metadata"]["annotations"]["api-approved.kubernetes.io"] = "unapproved, for a test";
  json path;
  path["jsonPath"] = field;
  if (!field.empty()) definition["spec"]["versions"][0]["selectableFields"].push_back(path);
  const k8s::ObjectKey key{"", gvr.resource + "." + gvr.group};
  co_await put(kCustomResourceDefinitions, key, definition);
}

asio::awaitable<void> Scene::use_gpu(std::string node, std::string pod, std::string ns) {
  ConsumerPod consumer;
  consumer.node = node;
  consumer.name = pod;
  consumer.ns = ns;
  consumer.labels["app"] = pod;
  const json object = consumer_pod(consumer);
  const k8s::ObjectKey key{ns, pod};
  co_await put(kPods, key, object);
  const Check runs = [this, key] {
    const JsonPtr there = view_.pods.find(key);
    const std::string phase = there == nullptr ? "" : text(member(*there, "status"), "phase");
    return phase == "Running" ? std::string() : "its phase is '" + phase + "'";
  };
  co_await until("pod " + pod + " to run on " + node, std::chrono::minutes(2), runs);
}

asio::awaitable<void> Scene::protect(std::string app, int min_available) {
  json budget;
  budget["apiVersion"] = "policy/v1";
  budget["kind"] = "PodDisruptionBudget";
  budget["metadata"] = {{"name", app}, {"namespace", "default"}};
  budget["spec"]["minAvailable"] = min_available;
  budget["spec"]["selector"]["matchLabels"]["app"] = app;
  const k8s::ObjectKey key{"default", app};
  co_await put(kBudgets, key, budget);
}

void Scene::break_drivers(bool broken) {
  for (const NodeSpec& node : nodes_) fleet_->node(node.name)->machine().break_driver(broken);
}

asio::awaitable<void> Scene::until(std::string what, k8s::Duration bound, Check check) {
  const k8s::MonoTime deadline = clock_->monotonic() + scaled(bound) + options_.slack;
  while (failure_.empty()) {
    require(invariant());
    const std::string missing = check();
    if (missing.empty()) co_return;
    const std::string trouble = running_ ? operator_->trouble() : "";
    require(trouble.empty(), "while waiting for " + what + ": " + trouble);
    require(clock_->monotonic() < deadline,
            "waited " + seconds(scaled(bound) + options_.slack) + " for " + what + "; but " + missing);
    if (!failure_.empty()) co_return;
    // Also without a change: the check may depend on time, and the operator may have ended.
    const bool something = co_await view_.changed(std::min(deadline, clock_->monotonic() + std::chrono::seconds(1)));
    (void)something;
  }
}

asio::awaitable<void> Scene::stays(std::string what, k8s::Duration duration, Check check) {
  constexpr k8s::Duration kMost = std::chrono::seconds(4);
  const k8s::MonoTime end =
      clock_->monotonic() + (exact() ? scaled(duration) : std::min<k8s::Duration>(scaled(duration), kMost));
  while (failure_.empty()) {
    const std::string wrong = check ? check() : std::string();
    require(wrong.empty(), what + "; but " + wrong);
    require(invariant());
    if (!failure_.empty() || clock_->monotonic() >= end) co_return;
    const bool something = co_await view_.changed(end);
    (void)something;
  }
}

asio::awaitable<void> Scene::until_fleet_shows(std::string what, k8s::Duration bound) {
  // Only nodes that change are reported.
  told_.clear();
  for (const NodeSpec& node : nodes_)
    if (node_problem(node).empty()) told_.insert(node.name);
  const Check shows = [this] { return fleet_problem(); };
  co_await until(std::move(what), bound, shows);
}

std::string Scene::fleet_problem() {
  std::string first;
  std::size_t wrong = 0;
  for (const NodeSpec& node : nodes_) {
    if (excused.contains(node.name)) continue;
    const std::string problem = node_problem(node);
    if (problem.empty()) {
      if (told_.insert(node.name).second) tell(node.name + "  " + shown(view_, node.name));
      continue;
    }
    told_.erase(node.name);
    if (++wrong > 1) continue;
    const std::string message = view_.annotation(node.name, "gpusharing.dev/message");
    first = problem + (message.empty() ? "" : " (the operator says: " + message + ")");
  }
  return first + (wrong > 1 ? ", and " + std::to_string(wrong - 1) + " more" : "");
}

asio::awaitable<void> Scene::until_settled(k8s::Duration bound) {
  const Check is_settled = [this] { return settled_problem(); };
  co_await until("every node counted as up to date", bound, is_settled);
}

}  // namespace gso::sim
