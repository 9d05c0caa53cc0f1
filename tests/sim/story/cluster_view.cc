#include "tests/sim/story/cluster_view.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/api/client.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

std::map<std::string, std::int64_t> gpu_resources(const json& quantities) {
  std::map<std::string, std::int64_t> gpus;
  for (const auto& [name, amount] : quantities.items()) {
    if (!name.starts_with("nvidia.com/")) continue;
    gpus[name] = amount.is_string() ? std::strtoll(amount.get_ref<const std::string&>().c_str(), nullptr, 10)
                                    : amount.get<std::int64_t>();
  }
  return gpus;
}

bool condition_true(const json& object, const std::string& type) {
  auto conditions = member(object, "status").find("conditions");
  if (conditions == member(object, "status").end()) return false;
  return std::ranges::any_of(*conditions, [&type](const json& condition) {
    return condition.value("type", "") == type && condition.value("status", "") == "True";
  });
}

// Which of NVIDIA's three a pod is, by its first container; empty for other pods.
std::string component_of(const json& pod) {
  const json& spec = member(pod, "spec");
  if (!spec.contains("containers") || spec["containers"].empty()) return {};
  std::string name = spec["containers"][0].value("name", "");
  if (name.ends_with("-ctr")) name.resize(name.size() - 4);
  static constexpr std::array<std::string_view, 3> kComponents{"nvidia-device-plugin", "gpu-feature-discovery",
                                                               "mps-control-daemon"};
  return std::ranges::find(kComponents, name) != kComponents.end() ? name : std::string();
}

asio::awaitable<void> watch_until_stopped(k8s::Watcher* watcher, std::size_t* running, k8s::Signal* ended) {
  co_await watcher->run();
  --*running;
  ended->notify();
}

}  // namespace

ClusterView::ClusterView(k8s::ApiClient* client, k8s::Clock* clock)
    : client_(client),
      clock_(clock),
      change_(clock->make_signal()),
      stop_(clock->make_signal()),
      ended_(clock->make_signal()),
      over_(clock->make_signal()) {
  nodes.add_listener([this](const k8s::ObjectKey& key, const JsonPtr&, const JsonPtr& after) { on_node(key, after); });
  pods.add_listener([this](const k8s::ObjectKey&, const JsonPtr&, const JsonPtr& after) { on_pod(after); });
  for (Mirror* mirror : {&nodes, &pods, &daemonsets, &configmaps, &clusterpolicies, &policies, &rollouts, &events})
    mirror->add_listener([this](const k8s::ObjectKey&, const JsonPtr&, const JsonPtr&) { change_->notify(); });
}

ClusterView::~ClusterView() = default;

void ClusterView::watch(const k8s::Gvr& gvr, Mirror* mirror) {
  k8s::WatcherOptions options;
  options.first_backoff = std::chrono::milliseconds(100);
  options.last_backoff = std::chrono::seconds(1);
  options.absent_retry = std::chrono::milliseconds(300);
  options.failed = [mirror](const k8s::Error& error) { mirror->note_error(error); };
  watchers_.push_back(std::make_unique<k8s::Watcher>(client_, gvr, std::move(options), mirror));
  watched_.emplace_back(gvr.resource, mirror);
}

asio::awaitable<void> ClusterView::run() {
  const auto executor = co_await asio::this_coro::executor;
  watching_ = true;
  watch(kNodes, &nodes);
  watch(kPods, &pods);
  watch(kDaemonSets, &daemonsets);
  watch(kConfigMaps, &configmaps);
  watch(kClusterPolicies, &clusterpolicies);
  watch({"gpusharing.dev", "v1alpha1", "sharingpolicies"}, &policies);
  watch({"gpusharing.dev", "v1alpha1", "sharingrollouts"}, &rollouts);
  watch({"events.k8s.io", "v1", "events"}, &events);
  for (auto& watcher : watchers_) {
    ++running_;
    asio::co_spawn(executor, watch_until_stopped(watcher.get(), &running_, ended_.get()), asio::detached);
  }
  const bool stopped = co_await stop_->wait_until(k8s::MonoTime::never());
  (void)stopped;
  for (auto& watcher : watchers_) watcher->stop();
  while (running_ > 0) {
    const bool one_ended = co_await ended_->wait_until(k8s::MonoTime::never());
    (void)one_ended;
  }
  watching_ = false;
  over_->notify();
}

asio::awaitable<void> ClusterView::close() {
  stop();
  while (watching_) {
    const bool over = co_await over_->wait_until(k8s::MonoTime::never());
    (void)over;
  }
}

void ClusterView::stop() {
  stop_->notify();
}

bool ClusterView::synced() const {
  return !watched_.empty() && std::ranges::all_of(watched_, [](const auto& entry) { return entry.second->synced(); });
}

std::string ClusterView::trouble() const {
  for (const auto& [name, mirror] : watched_)
    if (!mirror->synced()) return "the watch of " + name + " has not synced: " + mirror->last_error();
  return {};
}

std::string ClusterView::label(const std::string& node, const std::string& key) const {
  const JsonPtr object = nodes.find({"", node});
  return object == nullptr ? "" : member((*object)["metadata"], "labels").value(key, "");
}

std::string ClusterView::annotation(const std::string& node, const std::string& key) const {
  const JsonPtr object = nodes.find({"", node});
  return object == nullptr ? "" : member((*object)["metadata"], "annotations").value(key, "");
}

std::map<std::string, std::int64_t> ClusterView::capacity(const std::string& node) const {
  const JsonPtr object = nodes.find({"", node});
  if (object == nullptr) return {};
  return gpu_resources(member(member(*object, "status"), "capacity"));
}

std::map<std::string, std::int64_t> ClusterView::allocatable(const std::string& node) const {
  const JsonPtr object = nodes.find({"", node});
  if (object == nullptr) return {};
  return gpu_resources(member(member(*object, "status"), "allocatable"));
}

bool ClusterView::schedulable(const std::string& node) const {
  const JsonPtr object = nodes.find({"", node});
  return object != nullptr && !member(*object, "spec").value("unschedulable", false) &&
         condition_true(*object, "Ready");
}

void ClusterView::on_node(const k8s::ObjectKey& key, const JsonPtr& after) {
  if (after == nullptr) {
    unavailable_.erase(key.name);
    return;
  }
  std::int64_t usable = 0;
  for (const auto& [resource, count] : allocatable(key.name)) usable += count;
  bool& served = served_[key.name];
  if (usable > 0) served = true;
  const bool in_progress = label(key.name, "gpusharing.dev/state") == "Updating";
  if (served && (usable == 0 || in_progress || !schedulable(key.name)))
    unavailable_.insert(key.name);
  else
    unavailable_.erase(key.name);
  peak_ = std::max(peak_, unavailable_.size());
}

void ClusterView::on_pod(const JsonPtr& after) {
  if (after == nullptr) return;
  const std::string component = component_of(*after);
  const std::string node = member(*after, "spec").value("nodeName", "");
  if (component.empty() || node.empty()) return;
  auto& uids = seen_[component][node];
  const std::string uid = (*after)["metadata"].value("uid", "");
  if (std::ranges::find(uids, uid) == uids.end()) uids.push_back(uid);
}

const ClusterView::Pods& ClusterView::pods_seen(const std::string& component) const {
  static const Pods kNone;
  auto it = seen_.find(component);
  return it == seen_.end() ? kNone : it->second;
}

std::map<std::string, std::size_t> ClusterView::restarted(const std::string& component, const Pods& before) const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [node, uids] : pods_seen(component)) {
    auto old = before.find(node);
    const std::size_t had = old == before.end() ? 0 : old->second.size();
    if (uids.size() > had) counts[node] = uids.size() - had;
  }
  return counts;
}

std::size_t ClusterView::ready_pods(const std::string& component, const std::string& node) const {
  std::size_t count = 0;
  for (const auto& [key, pod] : pods.all()) {
    if (component_of(*pod) != component || member(*pod, "spec").value("nodeName", "") != node) continue;
    if (!(*pod)["metadata"].contains("deletionTimestamp") && condition_true(*pod, "Ready")) ++count;
  }
  return count;
}

std::vector<std::string> ClusterView::event_notes(const std::string& reason, k8s::WallTime since) const {
  std::vector<std::pair<k8s::WallTime, std::string>> found;
  for (const auto& [key, event] : events.all()) {
    if (event->value("reason", "") != reason) continue;
    // A repeated Event is a series; its last time counts.
    std::string text = member(*event, "series").value("lastObservedTime", "");
    if (text.empty())
      text = event->contains("eventTime") && (*event)["eventTime"].is_string() ? event->value("eventTime", "") : "";
    if (text.empty()) text = (*event)["metadata"].value("creationTimestamp", "");
    const auto time = k8s::parse_rfc3339(text).value_or(k8s::WallTime{});
    if (time + std::chrono::seconds(1) >= since) found.emplace_back(time, event->value("note", ""));
  }
  std::ranges::sort(found);
  std::vector<std::string> notes;
  for (auto& [time, note] : found) notes.push_back(std::move(note));
  return notes;
}

}  // namespace gso::sim
