// The GPU Operator, as far as sharing goes: labels GPU nodes with its deploy labels, and turns a ClusterPolicy into the
// three DaemonSets, each at its own moment, by hash and full PUT.
#pragma once

#include <map>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/site.h"

namespace gso::sim {

enum class Operand { device_plugin, mps_control_daemon, feature_discovery };

// The DaemonSet that a ClusterPolicy asks for, in `ns`, with the hash of itself as its annotation
// nvidia.com/last-applied-hash.
[[nodiscard]] nlohmann::json operand_daemonset(Operand operand, const nlohmann::json& clusterpolicy,
                                               const std::string& ns);

class GpuOperator : public Actor {
 public:
  GpuOperator(Site* site, std::string ns);

  void on_clusterpolicy();
  void on_node(const JsonPtr& before, const JsonPtr& after);
  void on_daemonset() { update_status_soon(); }

 private:
  void reconcile();
  void reconcile_operand(Operand operand);
  void label_node(const nlohmann::json& node);
  void update_status_soon();
  void update_status();
  [[nodiscard]] JsonPtr active_policy() const;
  [[nodiscard]] bool has_gpu_nodes() const;

  std::string namespace_;
  bool reconcile_pending_ = false, status_pending_ = false;
  std::set<std::string> labelling_;
  std::map<std::string, std::string> writing_;  // DaemonSet -> hash that is on its way.
};

}  // namespace gso::sim
