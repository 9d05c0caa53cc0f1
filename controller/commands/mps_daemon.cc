// The verbs of `mps-daemon`. They know nothing of Kubernetes: the pod that they run in needs no account.
#include "controller/commands/commands.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/config/logging.h"
#include "controller/mps_daemon/standalone_daemon.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using k8s::Clock;
using k8s::Signal;

// The arguments as they were given.
struct Arguments {
  MpsDaemonSettings settings;
  std::vector<std::string> memory_limits;
  std::string compute_mode = "Exclusive";
  std::string stop_timeout;
  bool once = false;
};

struct DaemonVerb {
  const char* name;
  const char* summary;
  void (*describe)(CLI::App& app, OptionFlags& flags, Arguments& given);
  k8s::Result<void> (*check)(Arguments& given);
  bool second_signal_hurries;  // Else it ends the process.
  // What it does, with a logger and until it is asked to stop. Not a coroutine itself.
  asio::awaitable<int> (*run)(const Arguments& given, Clock* clock, Logger* log, DaemonStop stop, std::ostream* out);
};

int run_until_signal(const DaemonVerb& verb, const Arguments& given, const Options& options, std::ostream* out) {
  asio::io_context io;
  const std::unique_ptr<Clock> clock = k8s::make_real_clock(io.get_executor());
  const std::unique_ptr<Signal> stop = clock->make_signal();
  const std::unique_ptr<Signal> hurry = clock->make_signal();
  const StopSignals signals(io, stop.get(), {}, verb.second_signal_hurries ? hurry.get() : nullptr);
  Logger log(options.log_format, options.log_level, [&clock] { return clock->now(); });
  int status = 1;
  const DaemonStop asked{stop.get(), hurry.get()};
  asio::co_spawn(io, verb.run(given, clock.get(), &log, asked, out), [&](const std::exception_ptr& error, int result) {
    if (error != nullptr) std::rethrow_exception(error);
    status = result;
    io.stop();  // A coroutine might still wait for the signal.
  });
  io.run();
  return status;
}

void add_pipe_directory(CLI::App& app, MpsDaemonSettings& settings) {
  app.add_option("--pipe-directory", settings.pipe_directory,
                 "CUDA_MPS_PIPE_DIRECTORY. Default: /run/nvidia-mps for root with driver r615 or later, else "
                 "/tmp/nvidia-mps")
      ->type_name("DIR");
  app.add_option("--root", settings.root,
                 "Where the node's /run and /tmp are mounted, for the default of --pipe-directory")
      ->type_name("DIR");
}

void add_report(CLI::App& app, MpsDaemonSettings& settings) {
  app.add_option("--report", settings.report, "Also write the result to this file, such as /dev/termination-log")
      ->type_name("FILE");
}

void add_processes(CLI::App& app, MpsDaemonSettings& settings) {
  app.add_option("--processes", settings.processes, "Where the processes of the node are listed")
      ->type_name("DIR")
      ->default_str(settings.processes);
}

void add_requirements(CLI::App& app, Arguments& given) {
  MpsDaemonSettings& settings = given.settings;
  add_pipe_directory(app, settings);
  app.add_option("--log-directory", settings.log_directory,
                 "CUDA_MPS_LOG_DIRECTORY; also remembers the compute modes from before")
      ->type_name("DIR")
      ->default_str(settings.log_directory);
  app.add_option("--compute-mode", given.compute_mode,
                 "Exclusive sets EXCLUSIVE_PROCESS while the daemon runs, Keep changes no compute mode")
      ->check(CLI::IsMember({"Exclusive", "Keep"}))
      ->type_name("MODE")
      ->default_str(given.compute_mode);
  add_processes(app, settings);
  add_report(app, settings);
}

void add_log_settings(CLI::App& app, OptionFlags& flags) {
  flags.add_to(&app, [](const OptionSpec& spec) { return spec.name == "log-format" || spec.name == "log-level"; });
}

k8s::Result<void> read_arguments(Arguments& given) {
  const k8s::Result<void> fits = check_length(given.settings);
  if (!fits) return fits;
  given.settings.exclusive = given.compute_mode == "Exclusive";
  for (const std::string& text : given.memory_limits) {
    auto limit = parse_memory_limit(text);
    if (!limit) return std::unexpected(limit.error());
    given.settings.pinned_memory.insert(std::move(*limit));
  }
  return read_duration("--stop-timeout", given.stop_timeout, given.settings.stop_timeout);
}

k8s::Result<void> check_directory(Arguments& given) {
  return check_length(given.settings);
}

void describe_run(CLI::App& app, OptionFlags& flags, Arguments& given) {
  add_requirements(app, given);
  app.add_option("--active-thread-percentage", given.settings.active_thread_percentage,
                 "Default share of a GPU's threads for each client")
      ->check(CLI::Range(1, 100))
      ->type_name("PERCENT");
  app.add_option("--pinned-memory-limit", given.memory_limits,
                 "Default memory of a device for each client, as in 0=10G; once for each device")
      ->type_name("DEVICE=SIZE");
  app.add_option("--server-user", given.settings.server_user,
                 "User id whose MPS server is started at once. Default: a server starts with the first client")
      ->check(CLI::NonNegativeNumber)
      ->type_name("UID");
  app.add_option("--stop-timeout", given.stop_timeout, "How long a stop waits for clients, 1s to 1h")
      ->type_name("DURATION")
      ->default_str("30s");
  add_log_settings(app, flags);
}

void describe_observe(CLI::App& app, OptionFlags& flags, Arguments& given) {
  add_pipe_directory(app, given.settings);
  add_report(app, given.settings);
  app.add_flag("--once", given.once, "End as soon as a daemon answers");
  add_log_settings(app, flags);
}

void describe_ready(CLI::App& app, OptionFlags& /*flags*/, Arguments& given) {
  add_pipe_directory(app, given.settings);
  app.add_flag("--alone", given.settings.alone, "Not ready while a second MPS control daemon runs on the node");
  add_processes(app, given.settings);
}

void describe_check(CLI::App& app, OptionFlags& /*flags*/, Arguments& given) {
  add_requirements(app, given);
  app.add_flag("--restore-compute-modes", given.settings.restores,
               "If the node is refused, set the compute modes from before a daemon that was killed");
}

using Given = const Arguments&;
constexpr DaemonVerb kDaemonVerbs[] = {
    {"run", "Run nvidia-cuda-mps-control in the foreground", describe_run, read_arguments, true,
     [](Given given, Clock* clock, Logger* log, DaemonStop stop, std::ostream*) {
       return run_mps_daemon(clock, given.settings, log, stop);
     }},
    {"observe", "Watch an MPS control daemon that the host runs", describe_observe, check_directory, false,
     [](Given given, Clock* clock, Logger* log, DaemonStop stop, std::ostream*) {
       return observe_mps_daemon(clock, given.settings, given.once, log, stop.stop);
     }},
    {"ready", "Ask whether an MPS control daemon answers: the readiness probe", describe_ready, check_directory, false,
     [](Given given, Clock* clock, Logger*, DaemonStop, std::ostream* out) {
       return probe_readiness(clock, given.settings, out);
     }},
    {"check", "List what keeps the node from running the daemon; changes no compute mode", describe_check,
     read_arguments, false,
     [](Given given, Clock* clock, Logger* log, DaemonStop, std::ostream* out) {
       return report_requirements(clock, given.settings, log, out);
     }},
};

}  // namespace

Subcommand make_mps_daemon_command() {
  Subcommand out{.name = "mps-daemon",
                 .summary = "Run or watch the MPS control daemon of a node without a plugin's daemon"};
  for (const DaemonVerb& verb : kDaemonVerbs) {
    const auto given = std::make_shared<Arguments>();
    out.verbs.push_back(
        {.name = verb.name,
         .summary = verb.summary,
         .describe = [&verb, given](CLI::App& app, OptionFlags& flags) { verb.describe(app, flags, *given); },
         .check = [&verb, given](const Options&) { return verb.check(*given); },
         .run = [&verb, given](const Invocation& i) { return run_until_signal(verb, *given, i.options, &i.out); }});
  }
  return out;
}

}  // namespace gso
