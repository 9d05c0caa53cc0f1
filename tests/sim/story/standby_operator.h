// A second operator on the same API server, and the trouble after which it takes over.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/sim/story/virtual_world.h"

namespace gso::sim {

// With connections of its own. `world` must outlive it.
struct StandbyOperator {
  explicit StandbyOperator(VirtualWorld* in);
  ~StandbyOperator();  // Ends it.
  StandbyOperator(const StandbyOperator&) = delete;
  StandbyOperator& operator=(const StandbyOperator&) = delete;

  VirtualWorld* world;
  InProcessTransport transport;
  InProcessOperator op;
};

// To be called at each write of the world's operator: at the n-th, its Leases are refused for good and its other writes
// are slow, and the second one is there. 0: nothing ever happens. All must outlive what it returns.
[[nodiscard]] std::function<void()> lose_lease_at(std::uint64_t n, VirtualWorld* world, StandbyOperator* standby,
                                                  OperatorSettings settings);

}  // namespace gso::sim
