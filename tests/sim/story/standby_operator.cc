#include "tests/sim/story/standby_operator.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

namespace gso::sim {

using namespace std::chrono_literals;

StandbyOperator::StandbyOperator(VirtualWorld* in)
    : world(in),
      transport(in->server, {.user = VirtualWorld::kOperatorUser, .user_agent = "the second operator"}),
      op(in->io.get_executor(), &transport, &in->clock) {}

StandbyOperator::~StandbyOperator() {
  bool ended = false;
  boost::asio::co_spawn(world->io, op.kill(), [&ended](const std::exception_ptr&) { ended = true; });
  EXPECT_TRUE(world->clock.run_until([&ended] { return ended; }, 1min)) << "the second operator does not end";
}

std::function<void()> lose_lease_at(std::uint64_t n, VirtualWorld* world, StandbyOperator* standby,
                                    OperatorSettings settings) {
  return [n, world, standby, settings = std::move(settings), writes = std::uint64_t{0}]() mutable {
    if (n == 0 || ++writes != n) return;
    FaultRule refused;
    refused.verb = "write";
    refused.resource = "leases";
    world->operator_transport.faults().add(refused);
    // Slow enough that what it had planned is not all sent when its lease runs out.
    for (const char* resource : {"nodes", "pods"}) {
      FaultRule slow;
      slow.fault = Fault::latency;
      slow.verb = "write";
      slow.resource = resource;
      slow.delay = 6s;
      world->operator_transport.faults().add(slow);
    }
    // Without one, both would be called by their number of starts.
    OperatorSettings named = settings;
    named.emplace_back("identity", "second");
    const k8s::Result<void> started = standby->op.start(named);
    EXPECT_TRUE(started.has_value());
  };
}

}  // namespace gso::sim
