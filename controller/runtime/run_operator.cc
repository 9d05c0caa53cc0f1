// run_operator: the operator's life from start to a clean or a violent end.
#include "controller/runtime/run_operator.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <random>
#include <utility>
#include <vector>

#include "controller/config/version.h"
#include "controller/runtime/manager.h"
#include "controller/serving/http_server.h"

namespace gso {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> forward(k8s::Signal* from, bool* flag, k8s::Signal* to) {
  const bool notified = co_await from->wait();
  if (!notified) co_return;
  *flag = true;
  to->notify();
}

void complete(Runtime& runtime, Options& options) {
  if (runtime.view == nullptr) runtime.view = std::make_shared<RuntimeView>();
  if (runtime.log == nullptr) runtime.log = Logger::silent();
  if (runtime.metrics == nullptr) runtime.metrics = std::make_shared<Metrics>();
  if (runtime.seed == 0) runtime.seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  if (options.identity.empty()) options.identity = fmt::format("gpu-sharing-operator_{:016x}", runtime.seed);
  if (runtime.instance.empty()) runtime.instance = options.identity;
  runtime.metrics->set("gpusharing_build_info", {{"version", version()}, {"compiler", __VERSION__}}, 1);
}

// The servers for metrics and probes: one when both have the same address, none for "0" or "".
std::vector<std::unique_ptr<HealthServer>> make_servers(const Runtime& runtime, const Options& options,
                                                        Manager* manager, const asio::any_io_executor& executor) {
  const auto on = [](const std::string& address) { return !address.empty() && address != "0"; };
  HealthRoutes probes{.ready = [manager] { return manager->ready(); },
                      .live = [manager] { return manager->live(); },
                      .metrics = nullptr,
                      .probes = true};
  HealthRoutes metrics{.ready = {}, .live = {}, .metrics = runtime.metrics, .probes = false};
  std::vector<std::unique_ptr<HealthServer>> out;
  const auto add = [&](const std::string& address, HealthRoutes routes) {
    HealthServerOptions serving;
    serving.address = address;
    out.push_back(std::make_unique<HealthServer>(executor, runtime.clock, std::move(serving), std::move(routes)));
  };
  const bool shared = options.metrics_bind_address == options.health_probe_bind_address &&
                      !options.metrics_bind_address.ends_with(":0");
  if (on(options.health_probe_bind_address)) {
    if (shared) probes.metrics = runtime.metrics;
    add(options.health_probe_bind_address, std::move(probes));
  }
  if (on(options.metrics_bind_address) && !shared) add(options.metrics_bind_address, std::move(metrics));
  return out;
}

// The one for /debug, listening; null where it is off.
k8s::Result<std::unique_ptr<HealthServer>> listen_for_debug(const Runtime& runtime, const Options& options,
                                                            Manager* manager, const asio::any_io_executor& executor) {
  if (options.debug_bind_address.empty() || options.debug_bind_address == "0") return nullptr;
  HealthRoutes routes{.ready = {}, .live = {}, .metrics = nullptr, .probes = false};
  routes.debug = [manager](const DebugRequest& request) { return manager->debug(request); };
  HealthServerOptions serving;
  serving.address = options.debug_bind_address;
  auto server = std::make_unique<HealthServer>(executor, runtime.clock, std::move(serving), std::move(routes));
  const k8s::Result<void> listening = server->listen();
  if (!listening) return std::unexpected(listening.error());
  runtime.view->debug_port = server->port();
  return server;
}

k8s::Result<void> listen_all(const std::vector<std::unique_ptr<HealthServer>>& servers, const Options& options,
                             RuntimeView& view) {
  for (const auto& server : servers) {
    k8s::Result<void> listening = server->listen();
    if (!listening) return listening;
  }
  if (servers.empty()) return {};
  const bool probes = options.health_probe_bind_address != "0" && !options.health_probe_bind_address.empty();
  if (probes) view.health_port = servers.front()->port();
  view.metrics_port = servers.size() == 2 || !probes ? servers.back()->port() : 0;
  if (servers.size() == 1 && probes && options.metrics_bind_address == options.health_probe_bind_address) {
    view.metrics_port = view.health_port;
  }
  return {};
}

// The view outlives the operator, whichever way it ends: an exception, or a coroutine that is destroyed while it waits.
struct ViewOfRun {
  std::shared_ptr<RuntimeView> view;
  ~ViewOfRun() {
    view->debug = nullptr;
    view->leading = false;
  }
};

}  // namespace

asio::awaitable<k8s::Result<void>> run_operator(Runtime runtime, Options options) {
  k8s::Result<void> valid = validate(options);
  if (!valid) co_return valid;
  complete(runtime, options);
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  k8s::Clock* clock = runtime.clock;
  Manager manager(runtime, options, executor);
  const ViewOfRun clearing{runtime.view};  // Goes before the manager.
  std::vector<std::unique_ptr<HealthServer>> servers = make_servers(runtime, options, &manager, executor);
  k8s::Result<void> listening = listen_all(servers, options, *runtime.view);
  if (!listening) co_return listening;
  k8s::Result<std::unique_ptr<HealthServer>> debug = listen_for_debug(runtime, options, &manager, executor);
  if (!debug) co_return std::unexpected(debug.error());
  if (*debug != nullptr) servers.push_back(*std::move(debug));

  const std::unique_ptr<k8s::Signal> wake = clock->make_signal();
  bool stop = false;
  bool kill = false;
  TaskGroup signals(clock);
  TaskGroup serving(clock);
  if (runtime.stop != nullptr) signals.spawn(executor, forward(runtime.stop, &stop, wake.get()));
  if (runtime.kill != nullptr) signals.spawn(executor, forward(runtime.kill, &kill, wake.get()));
  for (const auto& server : servers) serving.spawn(executor, server->run());
  manager.on_fatal([&wake] { wake->notify(); });
  runtime.view->debug = [&manager](const DebugRequest& request) { return manager.debug(request); };
  runtime.log->info("Started", {{"version", version()},
                                {"identity", options.identity},
                                {"leaderElection", options.leader_elect && !options.dry_run}});
  manager.start();
  while (!stop && !kill && !manager.fatal()) co_await wake->wait();

  const bool crash = kill || (manager.fatal() && manager.fatal()->reason == k8s::Reason::cancelled);
  if (!crash) {
    runtime.log->info("Shutting down");
    manager.stop_planning();
    const bool ended = co_await manager.finish_writes(clock->monotonic() + options.shutdown_timeout);
    if (ended) {
      co_await manager.release_lease();
    } else {
      runtime.log->warning("The Lease is not released: the API server can still execute a cancelled write");
    }
  }
  co_await manager.end(crash);
  for (const auto& server : servers) server->stop();
  signals.cancel();
  co_await signals.join();
  co_await serving.join();
  runtime.view->finished = true;
  if (!crash) runtime.log->info("Stopped");
  runtime.log->flush();
  if (manager.fatal()) co_return std::unexpected(*manager.fatal());
  if (kill) co_return k8s::fail(k8s::Reason::cancelled, "killed");
  co_return k8s::Result<void>{};
}

}  // namespace gso
