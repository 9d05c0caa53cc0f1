// ClusterView: what anybody with kubectl can see of the cluster, kept up to date by watches, with a memory: which pods
// each node has run, and how many nodes were out of service at once. The story judges by this and by nothing else.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "k8sclient/watch/watcher.h"
#include "tests/sim/fleet/mirror.h"

namespace gso::sim {

class ClusterView {
 public:
  using Pods = std::map<std::string, std::vector<std::string>>;  // By node: uids in order of appearance.

  ClusterView(k8s::ApiClient* client, k8s::Clock* clock);
  ~ClusterView();

  // Watches until stop().
  boost::asio::awaitable<void> run();
  void stop();
  // stop(), and returns when run() has. The view must not be destroyed before.
  boost::asio::awaitable<void> close();
  // Waits for the next change of anything, or until `deadline`. False when the deadline passed.
  boost::asio::awaitable<bool> changed(k8s::MonoTime deadline) { return change_->wait_until(deadline); }
  [[nodiscard]] bool synced() const;
  // Names the watch that does not sync and why, or is empty.
  [[nodiscard]] std::string trouble() const;

  Mirror nodes, pods, daemonsets, configmaps, clusterpolicies, policies, rollouts, events;

  // Labels and annotations; empty when absent.
  [[nodiscard]] std::string label(const std::string& node, const std::string& key) const;
  [[nodiscard]] std::string annotation(const std::string& node, const std::string& key) const;
  // GPU resources (nvidia.com/*) of a node.
  [[nodiscard]] std::map<std::string, std::int64_t> capacity(const std::string& node) const;
  [[nodiscard]] std::map<std::string, std::int64_t> allocatable(const std::string& node) const;
  [[nodiscard]] bool schedulable(const std::string& node) const;

  // Every pod that a DaemonSet ever had, by node. `component` is a container's name prefix: "nvidia-device-plugin",
  // "gpu-feature-discovery", "mps-control-daemon".
  [[nodiscard]] const Pods& pods_seen(const std::string& component) const;
  // Nodes on which new pods of the component appeared since `before` was taken, with how many.
  [[nodiscard]] std::map<std::string, std::size_t> restarted(const std::string& component, const Pods& before) const;
  // Pods of the component on a node that are Ready and not going away.
  [[nodiscard]] std::size_t ready_pods(const std::string& component, const std::string& node) const;

  // Nodes out of service now: cordoned, NotReady, in progress, or 0 allocatable GPUs where there were some before.
  [[nodiscard]] const std::set<std::string>& unavailable() const { return unavailable_; }
  // The most of them at once since reset_peak().
  [[nodiscard]] std::size_t peak_unavailable() const { return peak_; }
  void reset_peak() { peak_ = unavailable_.size(); }

  // Notes of Events with this reason that appeared at or after `since`, newest last.
  [[nodiscard]] std::vector<std::string> event_notes(const std::string& reason, k8s::WallTime since) const;

 private:
  void on_node(const k8s::ObjectKey& key, const JsonPtr& after);
  void on_pod(const JsonPtr& after);
  void watch(const k8s::Gvr& gvr, Mirror* mirror);

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  std::unique_ptr<k8s::Signal> change_, stop_, ended_, over_;
  std::vector<std::unique_ptr<k8s::Watcher>> watchers_;
  std::vector<std::pair<std::string, Mirror*>> watched_;
  std::map<std::string, Pods> seen_;
  std::map<std::string, bool> served_;  // Nodes that had allocatable GPUs once.
  std::set<std::string> unavailable_;
  std::size_t peak_ = 0;
  std::size_t running_ = 0;
  bool watching_ = false;  // run() has begun and not returned.
};

}  // namespace gso::sim
