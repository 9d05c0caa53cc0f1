#include "controller/mps_daemon/host_daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "controller/mps_daemon/control_pipe.h"
#include "controller/mps_daemon/report.h"

namespace gso {
namespace {

namespace asio = boost::asio;
constexpr k8s::Duration kPoll = std::chrono::seconds(10);

// Where the pod has last said that the daemon is. It outlives the container, like what the operator read of it: a
// daemon that moves while the container is started again has moved all the same.
class LastReport {
 public:
  explicit LastReport(MpsDaemonSettings settings) : settings_(std::move(settings)) {
    std::ifstream in(settings_.last_report, std::ios::binary);
    std::getline(in, directory_);
    if (!directory_.starts_with('/')) directory_.clear();  // Or only the begin of one: then it is said once more.
  }

  // Empty: nowhere yet.
  [[nodiscard]] const std::string& directory() const { return directory_; }
  void set(const std::string& directory) {
    directory_ = directory;
    if (settings_.last_report.empty()) return;
    std::ofstream out(settings_.last_report, std::ios::binary | std::ios::trunc);
    out << directory << "\n";
  }
  void publish(const std::string& directory) const {
    write_report(settings_, fmt::format("pipeDirectory={}", directory));
  }

 private:
  MpsDaemonSettings settings_;
  std::string directory_;
};

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
  LastReport last(settings);
  // However the container ends, its report is not lost.
  if (!last.directory().empty()) last.publish(last.directory());
  std::optional<std::string> where;  // nullopt: not looked yet; empty: nowhere.
  while (true) {
    const std::string found = co_await find_daemon(clock, settings);
    const bool moved = !found.empty() && !last.directory().empty() && found != last.directory();
    if (where != found) {
      where = found;
      if (found.empty()) {
        log->warning("No MPS control daemon of the host answers",
                     {{"looked", fmt::format("{}", fmt::join(possible_pipe_directories(settings), ", "))}});
      } else {
        if (found != last.directory()) last.publish(found);
        // What the check says when its pod's containers start again is older than what the daemon's container says.
        if (last.directory().empty() || !once) last.set(found);
        log->info("The host's MPS control daemon answers", {{"pipeDirectory", found}});
      }
    }
    if (moved || (once && !found.empty())) co_return 0;
    const bool stopped = co_await stop->wait_until(clock->monotonic() + kPoll);
    if (stopped) co_return 0;
  }
}

}  // namespace gso
