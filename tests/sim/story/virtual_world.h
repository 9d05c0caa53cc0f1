// VirtualWorld: everything that a story needs in one process and in virtual time: API server, fleet, operator, and the
// invariants judged on every write.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/story/in_process_operator.h"
#include "tests/sim/story/invariants.h"
#include "tests/sim/story/scene.h"
#include "tests/sim/story/short_story.h"
#include "tests/sim/story/stage.h"

namespace gso::sim {

struct VirtualWorld {
  static constexpr const char* kOperatorUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";

  // The fleet runs from the start on. `judge.operator_user` is filled in.
  VirtualWorld(std::vector<NodeSpec> nodes, InvariantOptions judge, FleetTiming timing = {});
  // Ends operator and fleet.
  ~VirtualWorld();
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;

  // Our definitions, and progress into `lines` (and to standard output with GSO_STORY_VERBOSE).
  [[nodiscard]] StageOptions stage_options(const std::string& plugin_version);
  // What was told so far, and the operator's log, for the message of a test that failed.
  [[nodiscard]] std::string record() const { return lines + "\nThe operator's log:\n" + op.recent_log(); }

  // What the device plugin serving on the node has read; nullopt: there is no such machine.
  [[nodiscard]] std::optional<std::string> plugin_text(const std::string& node);

  boost::asio::io_context io{1};
  SimClock clock;
  ApiServer server;
  InProcessTransport fleet_transport, user_transport, operator_transport;
  k8s::ApiClient fleet_client, user_client;
  std::string lines;
  Fleet fleet;
  InProcessOperator op;
  Invariants invariants;
  // What is told there; its watches end before it does.
  std::unique_ptr<Stage> stage;
};

// The world's stage: a scene whose writes and invariants are those of the world.
[[nodiscard]] Scene& open_scene(VirtualWorld& world, StageOptions options, const std::vector<NodeSpec>& nodes);

// Tells it, and calls `look` regularly meanwhile. Returns what went wrong first: in the story, or by an invariant.
[[nodiscard]] std::string tell_and_watch(const ShortStory& story, k8s::Duration interval,
                                         const std::function<void(InProcessOperator& op)>& look);
// Tells it; fails the test where the story, an invariant, or S6 (converged means silent) does not hold.
void tell_in_virtual_time(const ShortStory& story);
// The story of that name in a list; fails the test when there is none.
void tell_in_virtual_time(const std::vector<ShortStory>& stories, const std::string& name);

}  // namespace gso::sim
