// How a scene is cleared away, so that the next one finds an empty cluster.
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/scene.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

constexpr const char* kOperatorNamespace = "gpu-sharing-operator";

std::string left_of(const Mirror& mirror, const char* what, const std::string& ns) {
  for (const auto& [key, object] : mirror.all())
    if (ns.empty() || key.ns == ns) return std::string(what) + " " + k8s::to_string(key) + " is still there";
  return {};
}

}  // namespace

asio::awaitable<void> Scene::erase(k8s::Gvr gvr, k8s::ObjectKey key) {
  k8s::DeleteOptions at_once;
  at_once.grace_period_seconds = 0;
  at_once.propagation_policy = "Background";
  auto removed = co_await client_->remove(gvr, key, at_once);
  if (!removed && removed.error().reason != k8s::Reason::not_found) say("    " + removed.error().message);
}

asio::awaitable<void> Scene::erase_all(k8s::Gvr gvr, const Mirror* mirror, std::string ns) {
  std::vector<k8s::ObjectKey> keys;
  for (const auto& [key, object] : mirror->all())
    if (ns.empty() || key.ns == ns) keys.push_back(key);
  for (const k8s::ObjectKey& key : keys) co_await erase(gvr, key);
}

asio::awaitable<std::string> Scene::strike() {
  running_ = false;
  failure_.clear();  // Of the story.
  std::vector<k8s::ObjectKey> policies;
  for (const auto& [key, policy] : view_.policies.all()) policies.push_back(key);
  const std::string no_finalizers = R"({"metadata":{"finalizers":null}})";
  for (const k8s::ObjectKey& key : policies) {
    const auto released = co_await client_->merge_patch(kPolicies, key, no_finalizers);
    if (!released) say("    " + released.error().message);
    co_await erase(kPolicies, key);
  }
  co_await erase_all(kRollouts, &view_.rollouts, "");
  co_await erase_all(kClusterPolicies, &view_.clusterpolicies, "");
  co_await erase_all(kDaemonSets, &view_.daemonsets, install_.ns);
  const Check no_daemonsets = [this] { return left_of(view_.daemonsets, "DaemonSet", install_.ns); };
  co_await until("the DaemonSets to go", std::chrono::minutes(1), no_daemonsets);
  if (!failure_.empty()) co_return failure_;
  fleet_->stop();
  for (const auto& [gvr, key] : made_) co_await erase(gvr, key);
  co_await erase_all(kPods, &view_.pods, install_.ns);
  for (const NodeSpec& node : nodes_) {
    const k8s::ObjectKey name{"", node.name};
    co_await erase(kNodes, name);
    const k8s::ObjectKey lease{"kube-node-lease", node.name};
    co_await erase(kLeases, lease);
  }
  const k8s::ObjectKey state{kOperatorNamespace, "gpu-sharing-operator-state"};
  co_await erase(kConfigMaps, state);
  const Check is_cleared = [this] {
    for (const std::string& left :
         {left_of(view_.nodes, "node", ""), left_of(view_.pods, "pod", install_.ns),
          left_of(view_.pods, "pod", "default"), left_of(view_.policies, "SharingPolicy", ""),
          left_of(view_.rollouts, "SharingRollout", ""), left_of(view_.clusterpolicies, "ClusterPolicy", "")}) {
      if (!left.empty()) return left;
    }
    return std::string();
  };
  co_await until("an empty cluster", std::chrono::minutes(1), is_cleared);
  co_return failure_;
}

}  // namespace gso::sim
