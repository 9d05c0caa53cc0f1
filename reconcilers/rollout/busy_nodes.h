// BusyNodes: which nodes have to wait for their workloads, in flight and before: so that idle nodes go first, and a few
// busy ones never stop the others of their policy, nor those of another policy.
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
  // How many nodes of a group may turn out busy before one of them starts, although idle ones may come after them.
  static constexpr std::size_t kLookAhead = 16;
  // And while none of them may start: then idle ones are looked for further on. Each is listed again every kKnown.
  static constexpr std::size_t kMostLookedAt = 240;
  // How long a node counts as busy before it is looked at again.
  static constexpr Duration kKnown = std::chrono::minutes(2);

  // `pass` must outlive it.
  explicit BusyNodes(Pass& pass);

  // Seen in use, for its present target, not long ago.
  [[nodiscard]] bool known(const std::string& node) const { return known_.contains(node); }
  void note(const std::string& node, const NodeAssessment& assessment);
  // Nodes of a policy that are out of service and wait for their workloads; those that start in this pass too.
  [[nodiscard]] std::int64_t waiting(const std::string& policy) const;
  void start(const std::string& policy) { ++waiting_[policy]; }

 private:
  [[nodiscard]] bool waits(const std::string& node, const NodeAssessment& assessment) const;

  Pass& pass_;
  std::set<std::string> known_;
  std::map<std::string, std::int64_t> waiting_;  // By policy.
};

}  // namespace gso
