// The machine that one operator runs on, in the simulator: a process that can be killed and stopped, a clock that can
// be wrong, and a network that can fail. Everything that the operator waits for comes through it, so that nothing of
// the operator runs while its process is stopped.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/story/in_process_operator.h"

namespace gso::sim {

class OperatorHost final : public OperatorControl {
 public:
  // All must outlive the host, and the host what it has started. `name` is the user agent, and distinguishes hosts.
  OperatorHost(boost::asio::any_io_executor executor, SimClock* clock, ApiServer* server, std::string user,
               std::string name);
  ~OperatorHost() override;
  OperatorHost(const OperatorHost&) = delete;
  OperatorHost& operator=(const OperatorHost&) = delete;

  [[nodiscard]] k8s::Result<void> start(const OperatorSettings& settings) override;
  boost::asio::awaitable<void> kill() override;
  [[nodiscard]] std::string trouble() override;

  // kill -9 now: nothing more is sent or received. The kubelet starts it again `down` later, as a new process.
  void crash(k8s::Duration down);
  // SIGSTOP now, SIGCONT `length` later. What it has sent is on its way.
  void suspend(k8s::Duration length);
  // Its wall clock only.
  void step_wall_clock(k8s::Duration by);
  // Its network reaches nothing for so long.
  void cut_off(k8s::Duration length);
  [[nodiscard]] Faults& faults();
  // Given to every process that starts from now on.
  [[nodiscard]] RuntimeHooks& hooks();
  // Called with each of its requests.
  void set_request_listener(std::function<void(const k8s::HttpRequest&)> listener);

  // When a watch of the resource ("nodes") last brought something to the running process. Absent: never.
  [[nodiscard]] std::optional<k8s::MonoTime> heard_of(const std::string& resource) const;
  [[nodiscard]] const std::string& name() const;
  // What it was started with last.
  [[nodiscard]] const OperatorSettings& settings() const;
  [[nodiscard]] std::string recent_log() const;
  [[nodiscard]] std::uint64_t crashes() const;

  struct State;

 private:
  static boost::asio::awaitable<void> restart(std::shared_ptr<State> state, k8s::Duration down);
  std::shared_ptr<State> state_;
};

}  // namespace gso::sim
