// run_operator: the operator's life from start to a clean or a violent end.
#include "controller/runtime/run_operator.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/config/version.h"
#include "controller/runtime/manager.h"
#include "controller/serving/admission_review.h"
#include "controller/serving/http_server.h"
#include "controller/serving/tls_context.h"
#include "k8sclient/backoff.h"

namespace gso {
namespace {

namespace asio = boost::asio;

const std::string kRequestFailed = "HTTP request ended by an internal error";
const std::string kCertificateFailed = "Serving certificate could not be loaded";
constexpr k8s::Duration kCertificatePeriod = std::chrono::minutes(1);
// Each has up to 100 KiB of buffers. The API server opens one for each review that is not answered yet, as many at once
// as a controller creates pods.
constexpr std::size_t kMostTlsConnections = 64;
// The kubelet waits for a probe a second by default.
constexpr k8s::Duration kHeaderOfProbe = std::chrono::seconds(2);

bool is_on(const std::string& address) {
  return !address.empty() && address != "0";
}

// Of the questions about scrapers, which go apart from the operator's own requests.
k8s::ClientOptions client_options(const Manager& manager) {
  k8s::ClientOptions out = manager.client_settings();
  out.reads_only = false;  // Reviews change nothing.
  out.most_reads = 1;
  out.most_writes = static_cast<int>(ScrapeAccessLimits{}.most_open) + 1;
  return out;
}

// The HTTP servers of the operator: which address serves what, plain or over TLS, and who may read it.
class Servers {
 public:
  // `runtime` has its optional parts filled in; `options` are valid. `manager` must outlive the servers.
  Servers(const Runtime& runtime, const Options& options, Manager* manager, asio::any_io_executor executor)
      : runtime_(runtime),
        options_(options),
        manager_(manager),
        executor_(std::move(executor)),
        client_(runtime.transport, runtime.clock, client_options(*manager)),
        scrape_access_(&client_, runtime.clock),
        outages_(runtime.clock, runtime.log),
        tasks_(runtime.clock),
        background_(runtime.clock) {
    tasks_.on_failure([manager](const std::string& what) { manager->task_failed("HTTP server: " + what); });
    background_.on_failure(
        [manager](const std::string& what) { manager->task_failed("serving certificate: " + what); });
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // All of them; writes the ports into the RuntimeView. Errors name the address, or the certificate's file.
  [[nodiscard]] k8s::Result<void> listen() {
    // One server for both where both have the same address.
    const bool shared = options_.metrics_bind_address == options_.health_probe_bind_address &&
                        !options_.metrics_bind_address.ends_with(":0");
    RuntimeView& view = *runtime_.view;
    k8s::Result<void> listening;
    if (is_on(options_.health_probe_bind_address)) {
      Routes routes;
      routes.ready = [manager = manager_] { return manager->ready(); };
      routes.live = [manager = manager_] { return manager->live(); };
      if (shared) routes.metrics = runtime_.metrics;
      listening = serve(options_.health_probe_bind_address, std::move(routes), {}, view.health_port);
      if (shared) view.metrics_port = view.health_port;
    }
    if (listening && is_on(options_.metrics_bind_address) && !shared) listening = listen_for_metrics();
    if (listening && is_on(options_.webhook_bind_address)) listening = listen_for_admission();
    if (!listening || !is_on(options_.debug_bind_address)) return listening;
    Routes routes;
    routes.debug = [manager = manager_](const HttpRequest& request) { return manager->debug(request); };
    return serve(options_.debug_bind_address, std::move(routes), {}, view.debug_port);
  }
  void start() {
    if (!certificate_files_.empty()) background_.spawn(executor_, keep_certificates());
    for (const auto& server : servers_) tasks_.spawn(executor_, server->run());
  }
  // Closes everything. join() returns when it has.
  void stop() {
    for (const auto& server : servers_) server->stop();
    background_.cancel();
  }
  asio::awaitable<void> join() {
    co_await background_.join();
    co_await tasks_.join();
  }

 private:
  [[nodiscard]] k8s::Result<void> serve(HttpServerOptions serving, HttpHandler handler, int& port) {
    serving.request_failed = [this, address = serving.address](const std::string& what) {
      outages_.failed(kRequestFailed, address, {k8s::Reason::unavailable, 0, what});
    };
    HttpServer& server = *servers_.emplace_back(
        std::make_unique<HttpServer>(executor_, runtime_.clock, std::move(serving), std::move(handler)));
    k8s::Result<void> listening = server.listen();
    if (listening) port = server.port();
    return listening;
  }

  [[nodiscard]] k8s::Result<void> serve(const std::string& address, Routes routes, TlsContexts tls, int& port) {
    HttpServerOptions serving{.address = address};
    routes.clock = runtime_.clock;
    if (tls) serving.max_connections = kMostTlsConnections;
    if (routes.ready) serving.header_timeout = kHeaderOfProbe;
    serving.tls = std::move(tls);
    return serve(std::move(serving), make_handler(std::move(routes)), port);
  }

  [[nodiscard]] k8s::Result<void> listen_for_metrics() {
    Routes routes;
    routes.metrics = runtime_.metrics;
    TlsContexts tls;
    if (options_.metrics_secure) {
      k8s::Result<TlsContexts> certified =
          certificates({options_.tls_cert_file, options_.tls_private_key_file, options_.client_ca_file}, "metrics");
      if (!certified) return std::unexpected(certified.error());
      tls = *std::move(certified);
      routes.metrics_access = [this](HttpRequest request) { return scrape_access_.check(std::move(request)); };
    }
    return serve(options_.metrics_bind_address, std::move(routes), std::move(tls), runtime_.view->metrics_port);
  }

  // Every replica answers: reviews read its stores, which a standby keeps as well.
  [[nodiscard]] k8s::Result<void> listen_for_admission() {
    const bool clients_only = !options_.webhook_client_ca.empty();
    k8s::Result<TlsContexts> certified = certificates(
        {options_.webhook_cert_file, options_.webhook_private_key_file, options_.webhook_client_ca, clients_only},
        "webhook");
    if (!certified) return std::unexpected(certified.error());
    HttpServerOptions serving;
    serving.address = options_.webhook_bind_address;
    serving.tls = *std::move(certified);
    serving.body_limit = kMostAdmissionBytes;
    serving.max_connections = kMostTlsConnections;
    AdmissionParts parts = manager_->admission();
    parts.refuse_pods = options_.webhook_refuse_pods;
    parts.clients_only = clients_only;
    parts.metrics = runtime_.metrics;
    parts.clock = runtime_.clock;
    return serve(std::move(serving), make_admission_handler(std::move(parts)), runtime_.view->webhook_port);
  }

  // `server`: "metrics" or "webhook", the label of the gauge of the certificate's end.
  [[nodiscard]] k8s::Result<TlsContexts> certificates(CertificateFiles::Paths paths, const std::string& server) {
    CertificateFiles::Events events;
    events.failed = [this, file = paths.certificate](const k8s::Error& error) {
      outages_.failed(kCertificateFailed, file, error);
    };
    events.loaded = [this, file = paths.certificate, server](k8s::WallTime end) {
      outages_.worked(kCertificateFailed, file);
      runtime_.metrics->set("gpusharing_certificate_expiration_timestamp_seconds", {{"server", server}},
                            std::chrono::duration<double>(end.time_since_epoch()).count());
      runtime_.log->info("Serving certificate loaded", {{"until", k8s::format_time(end)}});
    };
    CertificateFiles* const files =
        certificate_files_
            .emplace_back(std::make_unique<CertificateFiles>(runtime_.clock, std::move(paths), std::move(events)))
            .get();
    const k8s::Result<void> loaded = files->load();
    if (!loaded) return std::unexpected(loaded.error());
    return TlsContexts([files] { return files->current(); });
  }

  // A new connection looks at the files, too. Without this loop the gauge would show the end of a certificate that has
  // been renewed long ago, as long as nobody connects.
  asio::awaitable<void> keep_certificates() {
    while (true) {
      for (const auto& files : certificate_files_) std::ignore = files->current();
      co_await runtime_.clock->sleep_for(kCertificatePeriod);
    }
  }

  Runtime runtime_;
  Options options_;
  Manager* manager_;
  asio::any_io_executor executor_;
  k8s::ApiClient client_;
  ScrapeAccess scrape_access_;
  OutageLog outages_;
  std::vector<std::unique_ptr<CertificateFiles>> certificate_files_;
  std::vector<std::unique_ptr<HttpServer>> servers_;
  TaskGroup tasks_;
  TaskGroup background_;  // Reads certificates again; cancelled at the stop.
};

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
  if (runtime.seed == 0) runtime.seed = k8s::random_seed();
  if (options.identity.empty()) options.identity = fmt::format("gpu-sharing-operator_{:016x}", runtime.seed);
  if (runtime.instance.empty()) runtime.instance = options.identity;
  runtime.metrics->on_misuse([log = runtime.log](const std::string& what) {
    log->error("Metric dropped: its use differs from the catalog", {{"metric", what}});
  });
  runtime.metrics->set("gpusharing_build_info", {{"version", version()}, {"compiler", __VERSION__}}, 1);
}

}  // namespace

asio::awaitable<k8s::Result<void>> run_operator(Runtime runtime, Options options) {
  k8s::Result<void> valid = validate(options);
  if (!valid) co_return valid;
  complete(runtime, options);
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  k8s::Clock* clock = runtime.clock;
  Manager manager(runtime, options, executor);
  // The view outlives the operator. Goes before the manager.
  const k8s::AtEnd clears([view = runtime.view] {
    view->debug = nullptr;
    view->leading = false;
  });
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
  runtime.view->debug = [&manager](const HttpRequest& request) { return manager.debug(request); };
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
