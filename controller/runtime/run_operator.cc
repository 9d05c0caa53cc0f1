// run_operator: the operator's life from start to a clean or a violent end.
#include "controller/runtime/run_operator.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <random>
#include <utility>

#include "controller/config/version.h"
#include "controller/runtime/manager.h"
#include "controller/runtime/servers.h"

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
  runtime.metrics->on_misuse([log = runtime.log](const std::string& what) {
    log->error("Metric dropped: its use differs from the catalog", {{"metric", what}});
  });
  runtime.metrics->set("gpusharing_build_info", {{"version", version()}, {"compiler", __VERSION__}}, 1);
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
  Servers servers(runtime, options, &manager, executor);
  k8s::Result<void> listening = servers.listen();
  if (!listening) co_return listening;

  const std::unique_ptr<k8s::Signal> wake = clock->make_signal();
  bool stop = false;
  bool kill = false;
  TaskGroup signals(clock);
  if (runtime.stop != nullptr) signals.spawn(executor, forward(runtime.stop, &stop, wake.get()));
  if (runtime.kill != nullptr) signals.spawn(executor, forward(runtime.kill, &kill, wake.get()));
  servers.start();
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
      runtime.log->warning(
          "The Lease is not released: the API server can still execute a write that it has not answered");
    }
  }
  co_await manager.end(crash);
  servers.stop();
  signals.cancel();
  co_await signals.join();
  co_await servers.join();
  runtime.view->finished = true;
  if (!crash) runtime.log->info("Stopped");
  runtime.log->flush();
  if (manager.fatal()) co_return std::unexpected(*manager.fatal());
  if (kill) co_return k8s::fail(k8s::Reason::cancelled, "killed");
  co_return k8s::Result<void>{};
}

}  // namespace gso
