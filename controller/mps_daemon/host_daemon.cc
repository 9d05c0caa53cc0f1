#include "controller/mps_daemon/host_daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "controller/mps_daemon/control_pipe.h"
#include "controller/mps_daemon/report.h"

namespace gso {
namespace {

namespace asio = boost::asio;
constexpr k8s::Duration kPoll = std::chrono::seconds(10);

// Its path on the node; empty: none answers.
asio::awaitable<std::string> find_daemon(k8s::Clock* clock, MpsDaemonSettings settings) {
  const std::vector<std::string> places = possible_pipe_directories(settings);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const k8s::Result<std::string> answer = co_await probe_mps_daemon(clock, places[i]);
    if (answer) co_return path_on_node(settings, places[i]);
  }
  co_return std::string();
}

}  // namespace

asio::awaitable<int> observe_mps_daemon(k8s::Clock* clock, MpsDaemonSettings settings, bool once, Logger* log,
                                        k8s::Signal* stop) {
  std::optional<std::string> where;  // nullopt: not looked yet; empty: nowhere.
  while (true) {
    const std::string found = co_await find_daemon(clock, settings);
    if (where != found) {
      where = found;
      if (found.empty()) {
        log->warning("No MPS control daemon of the host answers",
                     {{"looked", fmt::format("{}", fmt::join(possible_pipe_directories(settings), ", "))}});
      } else {
        write_report(settings, fmt::format("pipeDirectory={}", found));
        log->info("The host's MPS control daemon answers", {{"pipeDirectory", found}});
      }
    }
    if (once && !found.empty()) co_return 0;
    const bool stopped = co_await stop->wait_until(clock->monotonic() + kPoll);
    if (stopped) co_return 0;
  }
}

}  // namespace gso
