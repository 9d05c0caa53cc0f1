// The GPU Operator's upgrade controller, and the driver manager on the node: takes one node through the states of a
// driver upgrade, cordons it, and keeps the device plugin's pods off it while the driver is exchanged.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <set>
#include <string>

#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

class DriverUpgrader {
 public:
  explicit DriverUpgrader(Site* site) : site_(site), outbox_(site->client, site->clock) {}

  // From upgrade-required to upgrade-done. A node that was cordoned before stays so.
  void upgrade(const std::string& node);

  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

 private:
  void enter(const std::string& node, std::size_t step);
  void leave_later(const std::string& node, std::size_t step);

  Site* site_;
  Outbox outbox_;
  std::set<std::string> cordoned_before_;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace gso::sim
