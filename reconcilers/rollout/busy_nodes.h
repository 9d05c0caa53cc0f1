// BusyNodes: which nodes must wait for their workloads, during a change and before it. Idle nodes start first, and a
// few busy nodes never stop the other nodes of their policy or of another policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

class BusyNodes {
 public:
  // How many busy nodes of a group are skipped before one of them starts, although later ones might be idle.
  static constexpr std::size_t kLookAhead = 16;
  // The limit while none of these busy nodes is allowed to start: the search for idle nodes then continues beyond
  // kLookAhead. Each node is listed again every kKnown.
  static constexpr std::size_t kMostLookedAt = 240;
  // How long a node counts as busy before it is listed again.
  static constexpr Duration kKnown = std::chrono::minutes(2);

  // `pass` must outlive it.
  explicit BusyNodes(Pass& pass);

  // The node was seen in use less than kKnown ago, for its present target.
  [[nodiscard]] bool known(const std::string& node) const { return known_.contains(node); }
  void note(const std::string& node, const NodeAssessment& assessment);
  // Nodes of a policy that are out of service and wait for their workloads, including those that start in this pass.
  [[nodiscard]] std::int64_t waiting(const std::string& policy) const;
  // The same, of all policies.
  [[nodiscard]] std::int64_t waiting() const;
  void start(const std::string& policy) { ++waiting_[policy]; }

 private:
  [[nodiscard]] bool waits(const std::string& node, const NodeAssessment& assessment) const;

  Pass& pass_;
  std::set<std::string> known_;
  std::map<std::string, std::int64_t> waiting_;  // By policy.
};

}  // namespace gso
