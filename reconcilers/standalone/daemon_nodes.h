// The nodes of standalone MPS daemons, read once per pass.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/mps_daemon_change.h"

namespace gso {

// One node. All referenced objects outlive it.
struct DaemonNode {
  const Node* node = nullptr;
  const NodeAssessment* assessment = nullptr;  // Null: no device plugin serves the node.
  const Operand* daemonset = nullptr;          // The pod's, else the mark's; null: it is gone.
  const Pod* pod = nullptr;
  const SharingPolicy* policy = nullptr;  // Never null.
  MpsDaemonChangeOnNode mark;
  std::string_view holder;  // Not the mark itself. Empty: nobody.
  [[nodiscard]] const std::string& name() const { return node->meta.name; }
  // The pod was created from an older template; false if the newest one is not known.
  [[nodiscard]] bool is_outdated() const;
  [[nodiscard]] bool in_change() const { return mark.change.has_value(); }
};
[[nodiscard]] std::vector<DaemonNode> read_daemon_nodes(const Pass& pass);

// How many nodes can be out of service, and are, by budget. A node counts once, whoever has begun its change.
class DaemonSlots {
 public:
  DaemonSlots(const Pass& pass, const std::vector<DaemonNode>& nodes);
  // Cluster and policy have room for one more node, or the node is out of service already.
  [[nodiscard]] bool free(const DaemonNode& node) const;
  void take(const DaemonNode& node);

 private:
  struct Budget {
    std::int64_t total = 0;
    std::int64_t busy = 0;
  };
  const Pass* pass_;
  Budget cluster_;
  std::map<std::string, Budget> policies_;
};

}  // namespace gso
