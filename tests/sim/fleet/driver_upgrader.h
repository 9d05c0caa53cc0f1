// The GPU Operator's upgrade controller, and the driver manager on the node: takes one node through the states of a
// driver upgrade, cordons it, and keeps the device plugin's pods off it while the driver is exchanged.
#pragma once

#include <set>
#include <string>

#include "tests/sim/fleet/site.h"

namespace gso::sim {

class DriverUpgrader : public Actor {
 public:
  using Actor::Actor;

  // From upgrade-required to upgrade-done. A node that was cordoned before stays so.
  void upgrade(const std::string& node);

 private:
  void enter(const std::string& node, std::size_t step);
  void leave_later(const std::string& node, std::size_t step);

  std::set<std::string> cordoned_before_;
};

}  // namespace gso::sim
