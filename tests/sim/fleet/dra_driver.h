// NVIDIA's DRA driver on a node, as far as the scheduler sees it: it publishes the node's GPUs as a ResourceSlice, and
// takes that back.
#pragma once

#include <string>

#include "tests/sim/fleet/site.h"

namespace gso::sim {

class DraDriver : public Actor {
 public:
  using Actor::Actor;

  void offer(const std::string& node, std::size_t gpus);
  void withdraw(const std::string& node);
};

}  // namespace gso::sim
