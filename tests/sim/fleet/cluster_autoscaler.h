// The cluster autoscaler and the cloud below it. It adds machines, each under a new name, up to a group's least size
// and for pods that fit nowhere, and removes those that nothing but DaemonSets' pods needs. A Node that says
// scale-down-disabled stays, and so does one with a pod that says safe-to-evict: "false". Source of the rules:
// kubernetes/autoscaler, cluster-autoscaler/core (static_autoscaler.go, scaledown) and simulator/drain.go.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/node_agent.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

// On each Node of a group, with the group's name.
inline constexpr const char* kNodeGroupLabel = "example.com/node-group";
inline constexpr const char* kToBeDeleted = "ToBeDeletedByClusterAutoscaler";

struct NodeGroup {
  NodeSpec machine;  // What each is like. Its name is the group's: "pool" makes pool-x1, pool-x2, …
  std::size_t least = 0, most = 0;
};

class ClusterAutoscaler : public Actor {
 public:
  struct Cloud {
    std::function<void(NodeSpec)> boot;
    std::function<void(const std::string& node)> shut_down;
  };

  // `site` must outlive it.
  ClusterAutoscaler(Site* site, Cloud cloud);

  // From now on, or with other sizes than before.
  void manage(NodeGroup group);
  // Adds and removes nothing any more.
  void release() { groups_.clear(); }
  void on_node(const JsonPtr& before, const JsonPtr& after);

  // In the order in which it happened.
  [[nodiscard]] const std::vector<std::string>& added() const { return added_; }
  [[nodiscard]] const std::vector<std::string>& removed() const { return removed_; }
  // Machines that have been ordered or are on their way out.
  [[nodiscard]] bool at_work() const { return !booting_.empty() || !leaving_.empty(); }

 private:
  void scan();
  void scale_up(const NodeGroup& group);
  void scale_down(const NodeGroup& group);
  void begin_removal(const nlohmann::json& node);
  void end_removal(const std::string& name);
  [[nodiscard]] std::vector<JsonPtr> members_of(const std::string& group) const;
  [[nodiscard]] std::vector<JsonPtr> workloads_on(const std::string& node) const;
  [[nodiscard]] bool is_unneeded(const nlohmann::json& node) const;
  [[nodiscard]] bool some_pod_fits_nowhere() const;

  Cloud cloud_;
  std::map<std::string, NodeGroup> groups_;
  std::map<std::string, std::string> booting_;           // Machine -> group, until its Node is there.
  std::map<std::string, k8s::MonoTime> unneeded_since_;  // By node.
  std::map<std::string, std::string> leaving_;           // Node -> uid.
  std::vector<std::string> added_, removed_;
  std::uint64_t names_ = 0;
  bool scanning_ = false;
};

}  // namespace gso::sim
