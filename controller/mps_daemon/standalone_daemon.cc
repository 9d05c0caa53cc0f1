#include "controller/mps_daemon/standalone_daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <ranges>

#include "controller/mps_daemon/control_pipe.h"
#include "k8sclient/auth/child_process.h"

namespace gso {

namespace {

namespace asio = boost::asio;
constexpr k8s::Duration kStartLimit = std::chrono::seconds(60);
constexpr k8s::Duration kStartPoll = std::chrono::milliseconds(100);
// What a daemon gets beyond the time limit of `quit` to end servers whose clients still compute, and itself.
constexpr std::chrono::seconds kAfterQuitLimit(5);
constexpr k8s::Duration kOthersPoll = std::chrono::seconds(10);
constexpr k8s::Duration kForever = std::chrono::hours(24 * 365 * 10);
constexpr int kDescriptorOfMessages = 2;  // What the daemon prints goes to this process's standard error.

// The result of a verb, in a file that its container publishes when it ends (its termination message).
void write_report(const MpsDaemonSettings& settings, const std::string& text) {
  if (settings.report.empty()) return;
  std::ofstream out(settings.report, std::ios::binary | std::ios::trunc);
  out << text << "\n";
}

// The running daemon; shared with the coroutine that waits for its end.
struct Running {
  std::unique_ptr<k8s::Signal> changed;  // It has ended, or is to stop.
  std::shared_ptr<k8s::Signal> kill;
  std::shared_ptr<k8s::Signal> stop_waiting;  // For clients.
  bool ended = false;
  bool stopping = false;
  bool hurried = false;
  std::string how;  // It ended.
};

std::string how_it_ended(const k8s::Result<k8s::ProcessResult>& result) {
  if (!result) return result.error().message;
  if (result->signal != 0) return fmt::format("signal {}", result->signal);
  return fmt::format("exit status {}", result->exit_code);
}

asio::awaitable<void> await_daemon(std::shared_ptr<Running> running, k8s::ProcessSpec spec, k8s::Clock* clock) {
  const k8s::Result<k8s::ProcessResult> result = co_await k8s::run_process(spec, clock);
  running->ended = true;
  running->how = how_it_ended(result);
  running->changed->notify();
}

asio::awaitable<void> await_stop(std::shared_ptr<Running> running, k8s::Signal* stop) {
  (void)co_await stop->wait();
  running->stopping = true;
  running->changed->notify();
}

asio::awaitable<void> await_hurry(std::shared_ptr<Running> running, k8s::Signal* hurry) {
  (void)co_await hurry->wait();
  running->hurried = true;
  running->stop_waiting->notify();
  running->kill->notify();
}

BootMemory compute_mode_memory(const MpsDaemonSettings& settings) {
  return {settings.log_directory + "/compute-modes.json", boot_id(settings.processes), "modes"};
}

// Which of the driver's default directories the node's pod has reported to clients: its init container runs once for
// each pod, but its daemon is started again whenever it ends, and with another driver the default can be another one by
// then.
BootMemory announced_directory(const MpsDaemonSettings& settings) {
  return {settings.log_directory + "/pipe-directory.json", boot_id(settings.processes), "pipeDirectory"};
}

std::string announced_in(const MpsDaemonSettings& settings) {
  if (!settings.pipe_directory.empty()) return {};
  const k8s::Result<std::optional<nlohmann::json>> announced = announced_directory(settings).read();
  const bool known = announced && *announced && (*announced)->is_string();
  return known ? (*announced)->get<std::string>() : std::string();
}

// After a failure the container might never be started again: its pod can be deleted while it waits for its next start.
asio::awaitable<void> restore_after_failure(k8s::Clock* clock, MpsDaemonSettings settings, bool beside_another,
                                            Logger* log) {
  const k8s::Result<ComputeModes> left = remembered_modes(compute_mode_memory(settings));
  if (left && left->empty()) co_return;
  if (beside_another) {
    log->warning("Left the compute modes to the other MPS control daemon of the node", {});
    co_return;
  }
  (void)co_await restore_compute_modes(clock, compute_mode_memory(settings), log);
}

// One daemon, from its start to its end.
class Daemon {
 public:
  Daemon(k8s::Clock* clock, MpsDaemonSettings settings, Requirements found, Logger* log)
      : clock_(clock),
        settings_(std::move(settings)),
        found_(std::move(found)),
        log_(log),
        memory_(compute_mode_memory(settings_)) {}

  asio::awaitable<int> run(DaemonStop stop) {
    if (settings_.exclusive) {
      const k8s::Result<void> set = co_await set_exclusive(clock_, memory_, found_.gpus, log_);
      if (!set) co_return refuse(set.error().message);
    } else {
      (void)co_await restore_compute_modes(clock_, memory_, log_);  // Of a daemon that was not to keep them.
    }
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    running_ = std::make_shared<Running>(clock_->make_signal(), clock_->make_signal(), clock_->make_signal());
    asio::co_spawn(executor, await_stop(running_, stop.stop), k8s::kRethrow);
    asio::co_spawn(executor, await_hurry(running_, stop.hurry), k8s::kRethrow);
    asio::co_spawn(executor, await_daemon(running_, spec(), clock_), k8s::kRethrow);
    const k8s::Result<void> configured = co_await configure();
    if (!configured && !running_->stopping && !running_->ended) {
      (void)refuse(configured.error().message);
      (void)co_await stop_daemon();
      co_return 1;
    }
    while (!running_->ended && !running_->stopping) {
      co_await look_for_others();
      (void)co_await running_->changed->wait_until(clock_->monotonic() + kOthersPoll);
    }
    if (!running_->stopping) {
      const OtherDaemons others = co_await find_other_daemons(clock_, settings_, "");
      co_await restore_after_failure(clock_, settings_, !others.empty(), log_);
      co_return died();
    }
    const bool clean = co_await stop_daemon();
    co_return clean ? 0 : 1;
  }

 private:
  [[nodiscard]] k8s::ProcessSpec spec() const {
    k8s::ProcessSpec out;
    out.program = kMpsControl;
    out.args = {"-f"};
    out.env = {{"CUDA_MPS_PIPE_DIRECTORY", found_.pipe_directory}, {"CUDA_MPS_LOG_DIRECTORY", settings_.log_directory}};
    if (settings_.active_thread_percentage) {
      // It holds for the very first client, which can be faster than our commands. No variable does that for memory.
      out.env.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", fmt::format("{}", *settings_.active_thread_percentage));
    }
    out.time_limit = kForever;
    out.output = kDescriptorOfMessages;  // In the foreground it writes its log to standard output, and to no file.
    out.messages = kDescriptorOfMessages;
    out.stop = running_->kill;
    return out;
  }

  // One that is started later, as by systemd, might take GPUs as well. The pod is not Ready meanwhile
  // (MpsDaemonSettings::alone).
  asio::awaitable<void> look_for_others() {
    OtherDaemons others = co_await find_other_daemons(clock_, settings_, found_.pipe_directory);
    if (others == others_) co_return;
    others_ = std::move(others);
    if (others_.empty()) {
      log_->info("The other MPS control daemon on the node has ended", {});
      co_return;
    }
    log_->warning(
        "Another MPS control daemon runs on the node, and two must not serve one GPU: stop it, or watch it with "
        "mode observe",
        {{"processes", fmt::format("{}", fmt::join(others_.processes, ", "))},
         {"directories", fmt::format("{}", fmt::join(others_.directories, ", "))}});
  }

  int refuse(const std::string& why) {
    log_->error("Refused to serve the node", {{"problem", why}});
    write_report(settings_, why);
    return 1;
  }

  int died() {
    const std::string why = fmt::format(
        "{} ended by itself ({}): the container restarts; the previous log (kubectl logs "
        "--previous) has the daemon's last lines",
        kMpsControl, running_->how);
    log_->error("MPS control daemon ended", {{"how", running_->how}});
    write_report(settings_, why);
    return 1;
  }

  asio::awaitable<k8s::Result<void>> configure() {
    const k8s::Result<void> answers = co_await await_answer();
    if (!answers) co_return answers;
    const k8s::Result<void> limited =
        co_await set_client_limits(clock_, found_.pipe_directory, settings_, found_.gpus, log_);
    if (!limited) co_return limited;
    if (settings_.server_user) {
      const k8s::Result<void> started =
          co_await start_mps_server(clock_, found_.pipe_directory, *settings_.server_user, log_);
      if (!started) co_return started;
    }
    log_->info("MPS control daemon is ready",
               {{"pipeDirectory", found_.pipe_directory}, {"driver", found_.gpus.front().driver_version}});
    co_return k8s::Result<void>();
  }

  asio::awaitable<k8s::Result<void>> await_answer() {
    const k8s::MonoTime deadline = clock_->monotonic() + kStartLimit;
    while (!running_->ended && !running_->stopping) {
      const k8s::Result<std::string> answer = co_await probe_mps_daemon(clock_, found_.pipe_directory);
      if (answer) co_return k8s::Result<void>();
      if (clock_->monotonic() >= deadline) co_return k8s::fail(answer.error().reason, answer.error().message);
      co_await clock_->sleep_for(kStartPoll);
    }
    co_return k8s::fail(k8s::Reason::cancelled, "the daemon ended, or is to stop");
  }

  // `quit` waits for clients that are connected, idle ones as well. A moment after its time limit the daemon ends their
  // servers and itself, or it keeps waiting: both have been seen with drivers of r580. So it is killed kAfterQuitLimit
  // after stop_timeout, or at a second signal, which ends its servers. Then the GPUs get their compute mode again,
  // whatever signals come.
  asio::awaitable<bool> stop_daemon() {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(settings_.stop_timeout);
    const std::chrono::seconds patience = seconds + kAfterQuitLimit;
    const k8s::MonoTime deadline = clock_->monotonic() + patience;
    if (!running_->ended) {
      const std::string quit = fmt::format("quit -t {}", seconds.count());
      const k8s::Result<std::string> answer =
          co_await ask_mps_daemon(clock_, found_.pipe_directory, quit, patience, running_->stop_waiting);
      if (!answer && !running_->hurried)
        log_->warning("MPS control daemon did not quit", {{"error", answer.error().message}});
    }
    while (!running_->ended && clock_->monotonic() < deadline) (void)co_await running_->changed->wait_until(deadline);
    if (running_->hurried) log_->warning("Killed MPS control daemon", {{"why", "a second signal to stop"}});
    if (!running_->ended && !running_->hurried) {
      log_->warning("Killed MPS control daemon", {{"after", patience.count()}});
      running_->kill->notify();
    }
    while (!running_->ended) (void)co_await running_->changed->wait();
    bool restored = true;
    if (settings_.exclusive) restored = co_await restore_compute_modes(clock_, memory_, log_);
    log_->info("Stopped MPS control daemon", {{"how", running_->how}, {"computeModesRestored", restored}});
    co_return restored;
  }

  k8s::Clock* clock_;
  MpsDaemonSettings settings_;
  Requirements found_;
  Logger* log_;
  BootMemory memory_;
  std::shared_ptr<Running> running_;
  OtherDaemons others_;  // At the last look.
};

}  // namespace

asio::awaitable<int> run_mps_daemon(k8s::Clock* clock, MpsDaemonSettings settings, Logger* log, DaemonStop stop) {
  settings.announced = announced_in(settings);
  Requirements found = co_await check_requirements(clock, settings, false);
  for (const std::string& problem : found.problems) log->error("Refused to serve the node", {{"problem", problem}});
  if (!found.problems.empty()) {
    write_report(settings, fmt::format("{}", fmt::join(found.problems, "\n")));
    co_await restore_after_failure(clock, settings, found.beside_another, log);
    co_return 1;
  }
  Daemon daemon(clock, settings, std::move(found), log);
  co_return co_await daemon.run(stop);
}

asio::awaitable<int> probe_readiness(k8s::Clock* clock, MpsDaemonSettings settings, std::ostream* out) {
  const std::vector<std::string> places = possible_pipe_directories(settings);
  std::map<std::string, std::string> daemons;
  if (settings.alone) daemons = running_control_daemons(settings.processes);
  std::string problems;
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < places.size() && (answers.empty() || settings.alone); ++i) {
    const k8s::Result<std::string> answer = co_await probe_mps_daemon(clock, places[i]);
    if (answer)
      answers.push_back(fmt::format("an MPS control daemon answers in {}: active threads {} %\n", places[i], *answer));
    else
      problems += answer.error().message + "\n";
  }
  if (answers.empty()) {
    *out << problems;
    co_return 1;
  }
  *out << fmt::format("{}", fmt::join(answers, ""));
  if (daemons.size() < 2 && answers.size() < 2) co_return 0;
  *out << fmt::format(
      "{} MPS control daemons run on the node{}, and two must not serve one GPU: stop every daemon except this pod's, "
      "or watch the host's with mode observe\n",
      std::max(daemons.size(), answers.size()),
      daemons.size() < 2 ? "" : fmt::format(" (processes {})", fmt::join(std::views::keys(daemons), ", ")));
  co_return 1;
}

asio::awaitable<int> report_requirements(k8s::Clock* clock, MpsDaemonSettings settings, Logger* log,
                                         std::ostream* out) {
  Requirements found = co_await check_requirements(clock, settings, true);
  if (found.problems.empty() && settings.pipe_directory.empty()) {
    const k8s::Result<void> announced =
        announced_directory(settings).write(path_on_node(settings, found.pipe_directory));
    if (!announced) found.problems.push_back(announced.error().message);
  }
  std::string text = fmt::format("{}", fmt::join(found.problems, "\n"));
  if (found.problems.empty()) {  // The operator reads it from the pod's status.
    text = fmt::format("pipeDirectory={} driver={} gpus={}", path_on_node(settings, found.pipe_directory),
                       found.gpus.front().driver_version, found.gpus.size());
  }
  *out << text << "\n";
  write_report(settings, text);
  const bool refused = !found.problems.empty();
  if (refused && settings.restores) co_await restore_after_failure(clock, settings, found.beside_another, log);
  co_return refused ? 1 : 0;
}

namespace {

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
