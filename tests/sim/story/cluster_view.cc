#include "tests/sim/story/cluster_view.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "reconcilers/model/project.h"

namespace gso::sim {
namespace {

// Conditions that no watched object shows (an Event, the passing of time) are looked at this often.
constexpr k8s::Duration kPoll = std::chrono::milliseconds(200);

std::int64_t count(const std::map<k8s::Interned, std::int64_t>& resources, std::string_view name) {
  auto it = resources.find(k8s::Interned(name));
  return it == resources.end() ? 0 : it->second;
}

bool serving(const Node& node) {
  return node.ready && !node.unschedulable &&
         std::any_of(node.allocatable.begin(), node.allocatable.end(), [](const auto& r) { return r.second > 0; });
}

}  // namespace

std::string component_of(const Pod& pod) {
  const k8s::OwnerReference* owner = pod.meta.controller();
  if (owner == nullptr || owner->kind != "DaemonSet") return {};
  const std::string_view name = owner->name.view();
  if (name.find("mps-control-daemon") != std::string_view::npos) return "mps";
  if (name.find("feature-discovery") != std::string_view::npos) return "gfd";
  return name.find("device-plugin") != std::string_view::npos ? "plugin" : "";
}

ClusterView::ClusterView(k8s::ApiClient* client, k8s::Clock* clock, std::string ns)
    : client_(client), clock_(clock), ns_(std::move(ns)), changed_(clock->make_signal()) {
  nodes_.add_listener([this](const auto&, const auto&, const auto& after) {
    most_out_ = std::max(most_out_, out_of_service());
    if (after != nullptr && node_listener_) node_listener_(*after);
    changed_->notify();
  });
  pods_.add_listener([this](const auto&, const auto&, const auto& after) {
    if (after != nullptr) pod_changed(*after);
    changed_->notify();
  });
  policies_.add_listener([this](const auto&, const auto&, const auto&) { changed_->notify(); });
  rollouts_.add_listener([this](const auto&, const auto&, const auto&) { changed_->notify(); });
}

void ClusterView::start(boost::asio::any_io_executor executor) {
  auto errors = [this](const k8s::Error& error) { last_error_ = error.message; };
  auto add = [&]<class T>(k8s::Store<T>* store, typename k8s::StoreSink<T>::Projector project, k8s::Gvr gvr,
                          std::string ns) {
    sinks_.push_back(std::make_unique<k8s::StoreSink<T>>(store, project, errors));
    watch(executor, std::move(gvr), std::move(ns), sinks_.back().get());
  };
  add(&nodes_, &project_node, {"", "v1", "nodes"}, "");
  add(&pods_, &project_pod, {"", "v1", "pods"}, ns_);
  add(&policies_, &project_sharing_policy, {"gpusharing.dev", "v1alpha1", "sharingpolicies"}, "");
  add(&rollouts_, &project_sharing_rollout, {"gpusharing.dev", "v1alpha1", "sharingrollouts"}, "");
}

void ClusterView::watch(boost::asio::any_io_executor executor, k8s::Gvr gvr, std::string ns, k8s::WatchSink* sink) {
  k8s::WatcherOptions options;
  options.ns = std::move(ns);
  options.slow_retry = std::chrono::seconds(1);
  watchers_.push_back(std::make_unique<k8s::Watcher>(client_, std::move(gvr), options, sink));
  ++running_;
  boost::asio::co_spawn(executor, run(watchers_.back().get()), boost::asio::detached);
}

boost::asio::awaitable<void> ClusterView::run(k8s::Watcher* watcher) {
  co_await watcher->run();
  --running_;
}

void ClusterView::stop() {
  for (auto& watcher : watchers_) watcher->stop();
}

bool ClusterView::synced() const {
  return nodes_.synced() && pods_.synced() && policies_.synced() && rollouts_.synced();
}

boost::asio::awaitable<bool> ClusterView::wait_for(std::function<bool()> holds, k8s::Duration limit) {
  const k8s::MonoTime deadline = clock_->monotonic() + limit;
  while (!holds()) {
    const k8s::MonoTime now = clock_->monotonic();
    if (now >= deadline) co_return false;
    const bool notified = co_await changed_->wait_until(std::min(deadline, now + kPoll));
    (void)notified;
  }
  co_return true;
}

std::string ClusterView::label(std::string_view name, std::string_view key) const {
  const Node* found = node(name);
  return found == nullptr ? "" : std::string(found->meta.labels.get(key).value_or(""));
}

std::string ClusterView::annotation(std::string_view name, std::string_view key) const {
  const Node* found = node(name);
  return found == nullptr ? "" : std::string(found->meta.annotations.get(key).value_or(""));
}

std::int64_t ClusterView::allocatable(std::string_view name, std::string_view resource) const {
  const Node* found = node(name);
  return found == nullptr ? 0 : count(found->allocatable, resource);
}

std::int64_t ClusterView::capacity(std::string_view name, std::string_view resource) const {
  const Node* found = node(name);
  return found == nullptr ? 0 : count(found->capacity, resource);
}

std::string ClusterView::pod(std::string_view name, std::string_view component) const {
  for (const auto& [key, pod] : pods_.all()) {
    if (pod->node_name == name && !pod->meta.deletion_timestamp && component_of(*pod) == component) return pod->meta.uid;
  }
  return {};
}

bool ClusterView::pod_ready(std::string_view name, std::string_view component) const {
  return std::any_of(pods_.all().begin(), pods_.all().end(), [&](const auto& entry) {
    const Pod& pod = *entry.second;
    return pod.node_name == name && pod.ready && !pod.meta.deletion_timestamp && component_of(pod) == component;
  });
}

void ClusterView::pod_changed(const Pod& pod) {
  const std::string component = component_of(pod);
  if (component.empty() || pod.node_name.empty()) return;
  history_[std::string(pod.node_name.view())][component].insert(pod.meta.uid);
}

std::size_t ClusterView::new_pods(const PodHistory& mark, const std::string& node_name,
                                  const std::string& component) const {
  auto count_of = [&](const PodHistory& history) -> std::size_t {
    auto by_node = history.find(node_name);
    if (by_node == history.end()) return 0;
    auto uids = by_node->second.find(component);
    return uids == by_node->second.end() ? 0 : uids->second.size();
  };
  return count_of(history_) - count_of(mark);
}

std::size_t ClusterView::out_of_service() const {
  return static_cast<std::size_t>(std::count_if(nodes_.all().begin(), nodes_.all().end(),
                                                [](const auto& entry) { return !serving(*entry.second); }));
}

}  // namespace gso::sim
