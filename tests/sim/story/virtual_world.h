// VirtualWorld: everything that a story needs in one process and in virtual time: API server, fleet, operator, and the
// invariants judged on every write.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

namespace gso::sim {

struct VirtualWorld {
  static constexpr const char* kOperatorUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";

  // The fleet runs from the start on. `judge.operator_user` is filled in.
  VirtualWorld(std::vector<NodeSpec> nodes, InvariantOptions judge, FleetTiming timing = {});
  // Ends operator and fleet.
  ~VirtualWorld();
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;

  // Our definitions, the budget that is judged, and progress into `lines` (and to standard output with
  // GSO_STORY_VERBOSE).
  [[nodiscard]] StageOptions stage_options(const std::string& plugin_version = "v0.20.0");
  // What was told so far, and the operator's log, for the message of a test that failed.
  [[nodiscard]] std::string record() const { return lines + "\nThe operator's log:\n" + op.recent_log(); }

  // What the device plugin serving on the node has read; nullopt: there is no such machine.
  [[nodiscard]] std::optional<std::string> plugin_text(const std::string& node);

  // Runs what tells to its end, at most for `limit`, and looks regularly meanwhile. Nothing: it does not end.
  template <class T>
  [[nodiscard]] std::optional<T> hear(
      boost::asio::awaitable<T> telling, k8s::Duration limit, k8s::Duration interval = k8s::Duration::max(),
      const std::function<void()>& look = [] {}) {
    std::optional<T> told;
    boost::asio::co_spawn(io, std::move(telling), [&told](const std::exception_ptr& error, T answer) {
      if (error) std::rethrow_exception(error);
      told.emplace(std::move(answer));
    });
    for (const k8s::MonoTime end = clock.monotonic() + limit; !told && clock.monotonic() < end; look())
      (void)clock.run_until([&told] { return told.has_value(); }, std::min(interval, limit));
    return told;
  }
  // Kills an operator, and fails the test where it does not end.
  void end(OperatorControl& which);
  // S6: converged means silent, once the last Events are out. Fails the test.
  void expect_silence();

  const std::vector<NodeSpec> nodes;
  const std::size_t budget;
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
  std::unique_ptr<Scene> stage;
};

// The world's stage: a scene of its nodes whose writes and invariants are those of the world, with its operator unless
// there is another one.
[[nodiscard]] Scene& open_scene(VirtualWorld& world, StageOptions options, OperatorControl* op = nullptr);

[[nodiscard]] InvariantOptions judged_by(const ShortStory& story);
// Tells it, and calls `look` regularly meanwhile. Returns what went wrong first: in the story, or by an invariant.
[[nodiscard]] std::string tell_in(
    VirtualWorld& world, const ShortStory& story, StageOptions options, k8s::Duration interval = k8s::Duration::max(),
    const std::function<void()>& look = [] {});
// On the large fleet; fails the test where the story, an invariant, or S6 does not hold.
void tell_in_virtual_time(const ShortStory& story);
// The name of a story as a part of a test's: "canary_fails".
[[nodiscard]] std::string name_of_story(const testing::TestParamInfo<ShortStory>& story);

}  // namespace gso::sim
