// See servers.h.
#include "controller/runtime/servers.h"

#include <chrono>
#include <set>
#include <utility>

#include "controller/config/option_kinds.h"
#include "controller/serving/metrics.h"

namespace gso {
namespace {

namespace asio = boost::asio;

const std::string kCertificateFailed = "Serving certificate could not be loaded or renewed";

bool is_on(const std::string& address) {
  return !address.empty() && address != "0";
}

k8s::ClientOptions client_options(const Manager& manager) {
  k8s::ClientOptions out = manager.client_settings();
  out.most_reads = 1;
  out.most_writes = static_cast<int>(ScrapeAccessLimits{}.most_open) + 1;
  return out;
}

std::vector<std::string> server_names(const Options& options, const std::string& ns) {
  const std::set<std::string> names = option_kind::split_names(options.tls_server_names);
  if (names.empty()) return {"gpu-sharing-operator-metrics." + ns + ".svc"};
  return {names.begin(), names.end()};
}

}  // namespace

Servers::Servers(const Runtime& runtime, const Options& options, Manager* manager, asio::any_io_executor executor)
    : runtime_(runtime),
      options_(options),
      manager_(manager),
      executor_(std::move(executor)),
      client_(runtime.transport, runtime.clock, client_options(*manager)),
      outages_(runtime.clock, runtime.log),
      tasks_(runtime.clock),
      background_(runtime.clock) {}

Servers::~Servers() = default;

HttpServer* Servers::add(const std::string& address, Routes routes, TlsContexts tls) {
  HttpServerOptions serving;
  serving.address = address;
  serving.tls = std::move(tls);
  servers_.push_back(
      std::make_unique<HttpServer>(executor_, runtime_.clock, std::move(serving), make_handler(std::move(routes))));
  return servers_.back().get();
}

k8s::Result<void> Servers::listen() {
  // One server for both where both have the same address.
  const bool shared = options_.metrics_bind_address == options_.health_probe_bind_address &&
                      !options_.metrics_bind_address.ends_with(":0");
  RuntimeView& view = *runtime_.view;
  if (is_on(options_.health_probe_bind_address)) {
    Routes routes;
    routes.ready = [manager = manager_] { return manager->ready(); };
    routes.live = [manager = manager_] { return manager->live(); };
    if (shared) routes.metrics = runtime_.metrics;
    HttpServer* const server = add(options_.health_probe_bind_address, std::move(routes));
    k8s::Result<void> listening = server->listen();
    if (!listening) return listening;
    view.health_port = server->port();
    if (shared) view.metrics_port = view.health_port;
  }
  if (is_on(options_.metrics_bind_address) && !shared) {
    k8s::Result<void> listening = listen_for_metrics();
    if (!listening) return listening;
  }
  if (!is_on(options_.debug_bind_address)) return {};
  Routes routes;
  routes.debug = [manager = manager_](const DebugRequest& request) { return manager->debug(request); };
  HttpServer* const server = add(options_.debug_bind_address, std::move(routes));
  k8s::Result<void> listening = server->listen();
  if (listening) view.debug_port = server->port();
  return listening;
}

k8s::Result<void> Servers::listen_for_metrics() {
  Routes routes;
  routes.metrics = runtime_.metrics;
  TlsContexts tls;
  if (options_.metrics_secure) {
    k8s::Result<TlsContexts> certified = certificates();
    if (!certified) return std::unexpected(certified.error());
    tls = *std::move(certified);
    routes.metrics_access = access_check();
  }
  HttpServer* const server = add(options_.metrics_bind_address, std::move(routes), std::move(tls));
  k8s::Result<void> listening = server->listen();
  if (listening) runtime_.view->metrics_port = server->port();
  return listening;
}

AccessCheck Servers::access_check() {
  scrape_access_ = std::make_unique<ScrapeAccess>(&client_, runtime_.clock);
  return [access = scrape_access_.get()](HttpRequest request) { return access->check(std::move(request)); };
}

k8s::Result<TlsContexts> Servers::certificates() {
  if (options_.tls_cert_file.empty()) return own_certificate();
  CertificateFiles::Events events;
  events.failed = [this](const k8s::Error& error) {
    outages_.failed(kCertificateFailed, options_.tls_cert_file, error);
  };
  events.loaded = [this](k8s::WallTime end) {
    outages_.worked(kCertificateFailed, options_.tls_cert_file);
    note_certificate(end);
  };
  certificate_files_ = std::make_unique<CertificateFiles>(
      runtime_.clock,
      CertificateFiles::Paths{options_.tls_cert_file, options_.tls_private_key_file, options_.client_ca_file},
      std::move(events));
  const k8s::Result<void> loaded = certificate_files_->load();
  if (!loaded) return std::unexpected(loaded.error());
  return TlsContexts([files = certificate_files_.get()] { return files->current(); });
}

TlsContexts Servers::own_certificate() {
  const std::string ns = options_.planner_settings().operator_namespace;
  const std::string subject = "Secret " + ns + "/" + options_.tls_secret;
  CertificateSecret::Parts parts;
  parts.client = &client_;
  parts.clock = runtime_.clock;
  parts.secret = {ns, options_.tls_secret};
  parts.names = server_names(options_, ns);
  parts.client_ca_file = options_.client_ca_file;
  parts.may_write = [this]() -> k8s::Result<void> {
    if (options_.dry_run) return k8s::fail(k8s::Reason::cancelled, "dry-run writes nothing");
    return manager_->may_write();
  };
  parts.events.failed = [this, subject](const k8s::Error& error) {
    outages_.failed(kCertificateFailed, subject, error);
  };
  parts.events.worked = [this, subject] { outages_.worked(kCertificateFailed, subject); };
  parts.events.loaded = [this](k8s::WallTime end) { note_certificate(end); };
  certificate_secret_ = std::make_unique<CertificateSecret>(std::move(parts));
  return [secret = certificate_secret_.get()] { return secret->current(); };
}

void Servers::note_certificate(k8s::WallTime end) {
  runtime_.metrics->set("gpusharing_serving_certificate_expiration_timestamp_seconds", {},
                        std::chrono::duration<double>(end.time_since_epoch()).count());
  runtime_.log->info("Serving certificate loaded", {{"until", k8s::format_time(end)}});
}

void Servers::start() {
  if (certificate_secret_ != nullptr) background_.spawn(executor_, certificate_secret_->run());
  for (const auto& server : servers_) tasks_.spawn(executor_, server->run());
}

void Servers::stop() {
  for (const auto& server : servers_) server->stop();
  background_.cancel();
}

asio::awaitable<void> Servers::join() {
  co_await background_.join();
  co_await tasks_.join();
}

}  // namespace gso
