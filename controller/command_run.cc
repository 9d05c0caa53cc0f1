// Connection, transport, signals, and the operator on one io_context.
#include "controller/command_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>

#include "controller/logging.h"
#include "controller/metrics.h"
#include "controller/runtime.h"
#include "controller/version.h"
#include "k8sclient/curl_transport.h"
#include "k8sclient/load_connection.h"

namespace gso {
namespace {

namespace asio = boost::asio;

std::string instance_name() {
  if (const char* pod = std::getenv("POD_NAME"); pod != nullptr && *pod != '\0') return pod;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) return host.data();
  return "gpu-sharing-operator";
}

// Unique per process: the pod's uid where the downward API gives it, else a random (version 4) UUID.
std::string unique_part() {
  if (const char* uid = std::getenv("POD_UID"); uid != nullptr && *uid != '\0') return uid;
  std::random_device device;
  const auto word = [&] { return device() & 0xffffU; };
  return fmt::format("{:04x}{:04x}-{:04x}-4{:03x}-{:04x}-{:04x}{:04x}{:04x}", word(), word(), word(), word() & 0xfffU,
                     (word() & 0x3fffU) | 0x8000U, word(), word(), word());
}

// "https://host:port/prefix" -> "host:port"
std::string host_of(const std::string& server) {
  const std::size_t start = server.find("://");
  const std::size_t from = start == std::string::npos ? 0 : start + 3;
  return server.substr(from, server.find('/', from) - from);
}

// Ends the process at the second signal, so that a stuck shutdown can be interrupted.
class Signals {
 public:
  Signals(asio::io_context& io, k8s::Signal* stop) : set_(io, SIGTERM, SIGINT), stop_(stop) { wait(); }
  void cancel() { set_.cancel(); }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& ec, int number) {
      if (ec) return;
      if (std::exchange(seen_, true)) std::_Exit(128 + number);
      stop_->notify();
      wait();
    });
  }
  asio::signal_set set_;
  k8s::Signal* stop_;
  bool seen_ = false;
};

}  // namespace

int run_controller(Options options, std::ostream& err) {
  asio::io_context io(1);
  const std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  const k8s::ConnectionRequest request{options.kubeconfig, options.context};
  k8s::Result<k8s::Connection> connection = k8s::load_connection(request, k8s::process_environment(), clock.get());
  if (!connection) {
    err << "gpu-sharing-operator: " << connection.error().message << "\n";
    return 2;
  }
  // The kubeconfig's namespace is where its user works, not where the operator lives: only a pod's own counts.
  if (options.namespace_.empty() && options.kubeconfig.empty() && k8s::runs_in_cluster(k8s::process_environment())) {
    options.namespace_ = connection->namespace_name;
  }
  if (options.namespace_.empty()) options.namespace_ = PlannerSettings().operator_namespace;
  if (options.identity.empty()) options.identity = instance_name() + "_" + unique_part();
  connection->user_agent = "gpu-sharing-operator/" + version();

  Runtime runtime;
  runtime.host = host_of(connection->server);
  runtime.instance = instance_name();
  runtime.log = std::make_shared<Logger>(options.log_format, options.log_level, [c = clock.get()] { return c->now(); });
  const std::unique_ptr<k8s::Transport> transport =
      k8s::make_curl_transport(io.get_executor(), *std::move(connection), clock.get());
  const std::unique_ptr<k8s::Signal> stop = clock->make_signal();
  runtime.transport = transport.get();
  runtime.clock = clock.get();
  runtime.stop = stop.get();

  Signals signals(io, stop.get());
  std::optional<k8s::Error> ended;
  asio::co_spawn(io, run_operator(runtime, std::move(options)),
                 [&](const std::exception_ptr& error, const k8s::Result<void>& result) {
                   signals.cancel();
                   if (error != nullptr) std::rethrow_exception(error);
                   if (!result) ended = result.error();
                   io.stop();
                 });
  io.run();
  if (!ended) return 0;
  err << "gpu-sharing-operator: " << ended->message << "\n";
  return ended->reason == k8s::Reason::invalid ? 2 : 1;
}

}  // namespace gso
