#include "tests/sim/story/scene.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "k8sclient/api/client.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/workload.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

constexpr const char* kState = "gpusharing.dev/state";
constexpr const char* kChange = "gpusharing.dev/change";

std::string label_value(const JsonPtr& node, const char* key) {
  if (node == nullptr) return {};
  return (*node)["metadata"].value("labels", json::object()).value(key, "");
}

// The revision that the change on the node goes to; empty: none is under way.
std::string change_target(const JsonPtr& node) {
  if (node == nullptr) return {};
  const json annotations = (*node)["metadata"].value("annotations", json::object());
  const json change = json::parse(annotations.value(kChange, ""), nullptr, false);
  return change.is_object() ? change.value("to", "") : "";
}

bool is_cordoned(const JsonPtr& node) {
  return node != nullptr && node->value("spec", json::object()).value("unschedulable", false);
}

}  // namespace

Scene::Scene(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, Fleet* fleet, StageOptions options,
             std::vector<NodeSpec> nodes)
    : Stage(client, clock, op, std::move(options), std::move(nodes)), fleet_(fleet), begun_(clock->now()) {
  view_.nodes.add_listener(
      [this](const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) { note(key, before, after); });
}

void Scene::note(const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) {
  const std::string was = label_value(before, kState);
  const std::string is = label_value(after, kState);
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

void Scene::keep(const Held& held) {
  if (!held) require(false, held.error().message);
}

asio::awaitable<void> Scene::open() {
  const auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(executor, view_.run(), asio::detached);
  const Held prepared = co_await prepare_cluster();
  keep(prepared);
  if (!failure_.empty()) co_return;
  const Held registered = co_await await_registered();
  keep(registered);
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
  PluginInstall install = install_;
  install.plugin_version = options_.plugin_version;
  json object = cluster_policy(install);
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
  const Held started = co_await start_operator(std::move(more));
  keep(started);
}

asio::awaitable<void> Scene::kill() {
  if (!failure_.empty()) co_return;
  const Held killed = co_await kill_operator();
  keep(killed);
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

asio::awaitable<void> Scene::put(k8s::Gvr gvr, k8s::ObjectKey key, json object) {
  if (!failure_.empty()) co_return;
  made_.emplace_back(gvr, key);
  const std::string text = object.dump();
  const Held applied = co_await apply(gvr, key, text);
  keep(applied);
}

asio::awaitable<void> Scene::change(k8s::Gvr gvr, k8s::ObjectKey key, json merge) {
  if (!failure_.empty()) co_return;
  const std::string text = merge.dump();
  const Held patched = co_await patch(gvr, key, text);
  keep(patched);
}

asio::awaitable<void> Scene::replace(k8s::Gvr gvr, k8s::ObjectKey key, json object) {
  if (!failure_.empty()) co_return;
  const std::string text = object.dump();
  auto updated = co_await client_->update(gvr, key, text);
  if (!updated) keep(std::unexpected(updated.error()));
}

asio::awaitable<void> Scene::remove(k8s::Gvr gvr, k8s::ObjectKey key) {
  if (!failure_.empty()) co_return;
  auto removed = co_await client_->remove(gvr, key);
  if (!removed && removed.error().reason != k8s::Reason::not_found) keep(std::unexpected(removed.error()));
}

asio::awaitable<void> Scene::edit(std::string key, std::string text) {
  if (!failure_.empty()) co_return;
  const Held edited = co_await edit_profile(std::move(key), std::move(text));
  keep(edited);
}

asio::awaitable<void> Scene::label(std::string node, std::string key, std::optional<std::string> value) {
  if (!failure_.empty()) co_return;
  const Held labelled = co_await label_node(std::move(node), std::move(key), std::move(value));
  keep(labelled);
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
    const std::string phase = there == nullptr ? "" : there->value("status", json::object()).value("phase", "");
    return phase == "Running" ? std::string() : "its phase is '" + phase + "'";
  };
  co_await until("pod " + pod + " to run on " + node, std::chrono::minutes(2), runs);
}

asio::awaitable<void> Scene::until(std::string what, k8s::Duration bound, Check check) {
  if (!failure_.empty()) co_return;
  const Held held = co_await await(std::move(what), bound, std::move(check));
  keep(held);
}

asio::awaitable<void> Scene::stays(std::string what, k8s::Duration duration, Check check) {
  if (!failure_.empty()) co_return;
  constexpr double kMostSeconds = 4;
  const auto most = std::chrono::ceil<k8s::Duration>(std::chrono::duration<double>(kMostSeconds / options_.time_scale));
  const Held held =
      co_await holds_for(std::move(what), exact() ? duration : std::min(duration, most), std::move(check));
  keep(held);
}

asio::awaitable<void> Scene::until_fleet_shows(std::string what, k8s::Duration bound) {
  const Check shows = [this] {
    for (const NodeSpec& node : nodes_) {
      if (excused.contains(node.name)) continue;
      if (std::string problem = node_problem(node); !problem.empty()) {
        const std::string message = view_.annotation(node.name, "gpusharing.dev/message");
        return problem + (message.empty() ? "" : " (the operator says: " + message + ")");
      }
    }
    return std::string();
  };
  co_await until(std::move(what), bound, shows);
}

std::string Scene::unsettled() const {
  std::int64_t up_to_date = 0, total = 0;
  std::string all;
  for (const auto& [key, object] : view_.policies.all()) {
    const json counts = object->value("status", json::object()).value("nodes", json::object());
    up_to_date += counts.value("upToDate", std::int64_t{0});
    total += counts.value("total", std::int64_t{0});
    all += " " + key.name + ": " + object->value("status", json::object()).dump();
  }
  const auto there = static_cast<std::int64_t>(nodes_.size());
  const auto wanted = there - static_cast<std::int64_t>(excused.size());
  if (total != there || up_to_date < wanted) {
    return "the policies count " + std::to_string(up_to_date) + " of " + std::to_string(total) +
           " nodes as up to date, not " + std::to_string(wanted) + ":" + all;
  }
  for (const auto& [key, rollout] : view_.rollouts.all()) {
    const std::string phase = rollout->value("status", json::object()).value("phase", "");
    if (phase.empty() || phase == "Progressing" || phase == "AwaitingApproval")
      return "SharingRollout '" + key.name + "' is '" + phase + "'";
  }
  for (const NodeSpec& node : nodes_) {
    if (excused.contains(node.name)) continue;
    if (const std::string state = state_of(node.name); !state.empty())
      return node.name + " is " + state + ": " + view_.annotation(node.name, "gpusharing.dev/message");
  }
  return {};
}

asio::awaitable<void> Scene::until_settled(k8s::Duration bound) {
  const Check is_settled = [this] { return unsettled(); };
  co_await until("every node counted as up to date", bound, is_settled);
}

}  // namespace gso::sim
