// Signals and the operator on the connection's io_context.
#include "controller/commands/commands.h"

#include <unistd.h>

#include <array>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <cstdlib>
#include <memory>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/config/logging.h"
#include "controller/runtime/run_operator.h"
#include "k8sclient/auth/connection.h"

namespace gso {
namespace {

constexpr std::string_view kRunCommand = "gpu-sharing-operator";

std::string instance_name() {
  if (const char* pod = std::getenv("POD_NAME"); pod != nullptr && *pod != '\0') return pod;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) return host.data();
  return "gpu-sharing-operator";
}

// Unique per process: the pod's uid where the downward API gives it, else a random (version 4) UUID.
std::string unique_part() {
  if (const char* uid = std::getenv("POD_UID"); uid != nullptr && *uid != '\0') return uid;
  return boost::uuids::to_string(boost::uuids::random_generator()());
}

// "https://host:port/prefix" -> "host:port"
std::string host_of(const std::string& server) {
  const std::size_t start = server.find("://");
  const std::size_t from = start == std::string::npos ? 0 : start + 3;
  return server.substr(from, server.find('/', from) - from);
}

boost::asio::awaitable<int> control(Session session, Options options, std::ostream* err) {
  // The kubeconfig's namespace is where its user works, not where the operator lives: only a pod's own counts.
  if (options.namespace_.empty() && options.kubeconfig.empty() && k8s::runs_in_cluster(k8s::process_environment()))
    options.namespace_ = session.namespace_name;
  if (options.namespace_.empty()) options.namespace_ = PlannerSettings().operator_namespace;
  if (options.identity.empty()) options.identity = instance_name() + "_" + unique_part();

  Runtime runtime{.host = host_of(session.server), .instance = instance_name()};
  runtime.log =
      std::make_shared<Logger>(options.log_format, options.log_level, [c = session.clock] { return c->now(); });
  if (!session.verified) {
    runtime.log->warning("The API server's certificate is not verified: whoever answers in its place gets the token",
                         {{"server", session.server}, {"setting", "insecure-skip-tls-verify"}});
  }
  const std::unique_ptr<k8s::Signal> stop = session.clock->make_signal();
  runtime.transport = session.transport;
  runtime.clock = session.clock;
  runtime.stop = stop.get();
  StopSignals signals(*session.io, stop.get());
  const k8s::Result<void> ended = co_await run_operator(runtime, options);
  signals.cancel();
  if (ended) co_return 0;
  *err << kRunCommand << ": " << ended.error().message << "\n";
  co_return ended.error().reason == k8s::Reason::invalid ? 2 : 1;
}

}  // namespace

int run_controller(Options options, std::ostream& err) {
  return run_connected(
      kRunCommand, options, k8s::Interaction{}, err,
      [&](Session session) { return control(std::move(session), options, &err); }, NoServer::is_awaited);
}

Subcommand make_run_command() {
  const auto describe = [](CLI::App& app, OptionFlags& settings) {
    settings.add_config_to(&app);
    settings.add_to(&app, [](const OptionSpec&) { return true; });
    app.footer(
        "Every setting can also be given in the environment (the name in brackets) and in the file of --config.\n"
        "A flag overrides the environment; the environment overrides the file.");
  };
  return {.name = "run",
          .summary = "Run the controller",
          .describe = describe,
          .check = [](const Options& options) { return validate(options); },
          .run = [](const Invocation& i) { return run_controller(i.options, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
