// ClusterView: what a person with `kubectl get --watch` would see of the fleet, kept in step by watches, with the three
// measures the story judges by: which pods were ever there (restarts), how many nodes were out of service at once, and
// what each node shows now.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/client.h"
#include "k8sclient/clock.h"
#include "k8sclient/store_sink.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"

namespace gso::sim {

// The operand pods that a node has ever had, by component ("plugin", "gfd", "mps").
using PodHistory = std::map<std::string, std::map<std::string, std::set<std::string>>>;  // node -> component -> uids

class ClusterView {
 public:
  // Watches `ns` for operand pods, and the cluster for Nodes, SharingPolicies and SharingRollouts. `client` and `clock`
  // must outlive the view, the view its watches (stop(), then run the executor until stopped()).
  ClusterView(k8s::ApiClient* client, k8s::Clock* clock, std::string ns);

  void start(boost::asio::any_io_executor executor);
  void stop();
  [[nodiscard]] bool stopped() const { return running_ == 0; }
  [[nodiscard]] bool synced() const;

  // True as soon as `holds` does; false when `limit` has passed. Checked at every change, and every `poll`.
  boost::asio::awaitable<bool> wait_for(std::function<bool()> holds, k8s::Duration limit);

  [[nodiscard]] const Node* node(std::string_view name) const { return nodes_.find(name); }
  [[nodiscard]] const k8s::Store<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const k8s::Store<SharingPolicy>& policies() const { return policies_; }
  [[nodiscard]] const k8s::Store<SharingRollout>& rollouts() const { return rollouts_; }

  // A label's value or "".
  [[nodiscard]] std::string label(std::string_view node, std::string_view key) const;
  [[nodiscard]] std::string annotation(std::string_view node, std::string_view key) const;
  // Allocatable and capacity of a resource; 0 when absent.
  [[nodiscard]] std::int64_t allocatable(std::string_view node, std::string_view resource) const;
  [[nodiscard]] std::int64_t capacity(std::string_view node, std::string_view resource) const;
  // The uid of the pod of that component that is on the node now and not on its way out, or "".
  [[nodiscard]] std::string pod(std::string_view node, std::string_view component) const;
  [[nodiscard]] bool pod_ready(std::string_view node, std::string_view component) const;

  [[nodiscard]] const PodHistory& history() const { return history_; }
  // New pods of a component on a node since `mark` was taken.
  [[nodiscard]] std::size_t new_pods(const PodHistory& mark, const std::string& node,
                                     const std::string& component) const;

  // Out of service: cordoned, NotReady, or without a single allocatable GPU resource.
  [[nodiscard]] std::size_t out_of_service() const;
  // The most that were out of service at once since the last reset.
  [[nodiscard]] std::size_t most_out_of_service() const { return most_out_; }
  void reset_most_out_of_service() { most_out_ = out_of_service(); }

  // Called at every change of a node, for the live progress.
  void on_node_change(std::function<void(const Node&)> listener) { node_listener_ = std::move(listener); }
  [[nodiscard]] std::string last_error() const { return last_error_; }

 private:
  boost::asio::awaitable<void> run(k8s::Watcher* watcher);
  void watch(boost::asio::any_io_executor executor, k8s::Gvr gvr, std::string ns, k8s::WatchSink* sink);
  void pod_changed(const Pod& pod);

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  std::string ns_;
  std::unique_ptr<k8s::Signal> changed_;
  k8s::Store<Node> nodes_;
  k8s::Store<Pod> pods_;
  k8s::Store<SharingPolicy> policies_;
  k8s::Store<SharingRollout> rollouts_;
  std::vector<std::unique_ptr<k8s::WatchSink>> sinks_;
  std::vector<std::unique_ptr<k8s::Watcher>> watchers_;
  PodHistory history_;
  std::function<void(const Node&)> node_listener_;
  std::string last_error_;
  std::size_t most_out_ = 0;
  int running_ = 0;
};

// Which operand a pod belongs to, by its owner's name; "" for none.
[[nodiscard]] std::string component_of(const Pod& pod);

}  // namespace gso::sim
