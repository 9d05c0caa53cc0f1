// NVIDIA's DRA driver on a node, as far as the scheduler sees it: it publishes the node's GPUs as a ResourceSlice, and
// takes that back.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

class DraDriver {
 public:
  explicit DraDriver(Site* site) : outbox_(site->client, site->clock) {}

  void offer(const std::string& node, std::size_t gpus);
  void withdraw(const std::string& node);

  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

 private:
  Outbox outbox_;
};

}  // namespace gso::sim
