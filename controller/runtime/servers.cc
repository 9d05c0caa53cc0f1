// See servers.h.
#include "controller/runtime/servers.h"

#include <chrono>
#include <set>
#include <utility>

#include "controller/config/option_kinds.h"
#include "controller/serving/admission_review.h"
#include "controller/serving/metrics.h"

namespace gso {
namespace {

namespace asio = boost::asio;

const std::string kRequestFailed = "HTTP request ended by an internal error";
const std::string kBundleFailed = "Certificate authority could not be published";
// Each can hold a request of kMostAdmissionBytes. The API server opens one for each review that is not answered yet, as
// many at once as a controller creates pods: those beyond wait for the few milliseconds that an answer takes.
constexpr std::size_t kMostAdmissionConnections = 32;
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

// `service`: of the chart, where no name is set.
std::vector<std::string> server_names(const std::string& names_set, const std::string& service, const std::string& ns) {
  const std::set<std::string> names = option_kind::split_names(names_set);
  if (names.empty()) return {service + "." + ns + ".svc"};
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
      background_(runtime.clock) {
  tasks_.on_failure([manager](const std::string& what) { manager->task_failed("HTTP server: " + what); });
  background_.on_failure([manager](const std::string& what) { manager->task_failed("serving certificate: " + what); });
}

Servers::~Servers() = default;

HttpServer* Servers::add(HttpServerOptions serving, HttpHandler handler) {
  serving.request_failed = [this, address = serving.address](const std::string& what) {
    outages_.failed(kRequestFailed, address, {k8s::Reason::unavailable, 0, what});
  };
  servers_.push_back(std::make_unique<HttpServer>(executor_, runtime_.clock, std::move(serving), std::move(handler)));
  return servers_.back().get();
}

HttpServer* Servers::add(const std::string& address, Routes routes, TlsContexts tls) {
  HttpServerOptions serving;
  serving.address = address;
  serving.tls = std::move(tls);
  return add(std::move(serving), make_handler(std::move(routes)));
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
  if (is_on(options_.webhook_bind_address)) {
    k8s::Result<void> listening = listen_for_admission();
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
    const std::string ns = options_.planner_settings().operator_namespace;
    k8s::Result<TlsContexts> certified =
        certificates({.files = {options_.tls_cert_file, options_.tls_private_key_file, options_.client_ca_file},
                      .secret = options_.tls_secret,
                      .names = server_names(options_.tls_server_names, "gpu-sharing-operator-metrics", ns),
                      .chart_value = "metrics.secure.enabled",
                      .metric = "gpusharing_serving_certificate_expiration_timestamp_seconds"});
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

// Every replica answers: reviews read its stores, which a standby keeps as well.
k8s::Result<void> Servers::listen_for_admission() {
  const std::string ns = options_.planner_settings().operator_namespace;
  k8s::Result<TlsContexts> certified =
      certificates({.files = {options_.webhook_cert_file, options_.webhook_private_key_file, ""},
                    .secret = options_.webhook_secret,
                    .names = server_names(options_.webhook_server_names, "gpu-sharing-operator-webhook", ns),
                    .chart_value = "admissionWebhook.enabled",
                    .metric = "gpusharing_webhook_certificate_expiration_timestamp_seconds"});
  if (!certified) return std::unexpected(certified.error());
  HttpServerOptions serving;
  serving.address = options_.webhook_bind_address;
  serving.tls = *std::move(certified);
  serving.body_limit = kMostAdmissionBytes;
  serving.max_connections = kMostAdmissionConnections;
  AdmissionParts parts;
  parts.holds_profiles = [manager = manager_](const k8s::ObjectKey& key) { return manager->holds_profiles(key); };
  parts.key_users = [manager = manager_](const k8s::ObjectKey& config_map) { return manager->key_users(config_map); };
  parts.kai = [manager = manager_] { return manager->kai_pod_rules(); };
  parts.refuse_pods = options_.webhook_refuse_pods;
  parts.metrics = runtime_.metrics;
  HttpServer* const server = add(std::move(serving), make_admission_handler(std::move(parts)));
  k8s::Result<void> listening = server->listen();
  if (listening) runtime_.view->webhook_port = server->port();
  return listening;
}

k8s::Result<TlsContexts> Servers::certificates(const CertificateSource& source) {
  if (source.files.certificate.empty()) {
    CertificateSecret* const secret = own_certificate(source);
    if (source.secret == options_.webhook_secret && !options_.webhook_configuration.empty()) keep_authority(secret);
    return TlsContexts([secret] { return secret->current(); });
  }
  CertificateFiles::Events events;
  events.failed = [this, file = source.files.certificate](const k8s::Error& error) {
    outages_.failed(kCertificateFailed, file, error);
  };
  events.loaded = [this, file = source.files.certificate, metric = source.metric](k8s::WallTime end) {
    outages_.worked(kCertificateFailed, file);
    note_certificate(metric, end);
  };
  certificate_files_.push_back(std::make_unique<CertificateFiles>(runtime_.clock, source.files, std::move(events)));
  CertificateFiles* const files = certificate_files_.back().get();
  const k8s::Result<void> loaded = files->load();
  if (!loaded) return std::unexpected(loaded.error());
  return TlsContexts([files] { return files->current(); });
}

CertificateSecret* Servers::own_certificate(const CertificateSource& source) {
  const std::string ns = options_.planner_settings().operator_namespace;
  const std::string subject = "Secret " + ns + "/" + source.secret;
  CertificateSecret::Parts parts;
  parts.reader = &client_;
  parts.writer = manager_->writer(&client_);
  parts.clock = runtime_.clock;
  parts.secret = {ns, source.secret};
  parts.names = source.names;
  parts.chart_value = source.chart_value;
  parts.client_ca_file = source.files.client_ca;
  parts.may_write = [this] { return manager_->may_write(); };
  parts.events.failed = [this, subject](const k8s::Error& error) {
    outages_.failed(kCertificateFailed, subject, error);
  };
  parts.events.worked = [this, subject] { outages_.worked(kCertificateFailed, subject); };
  parts.events.loaded = [this, metric = source.metric](k8s::WallTime end) { note_certificate(metric, end); };
  certificate_secrets_.push_back(std::make_unique<CertificateSecret>(std::move(parts)));
  return certificate_secrets_.back().get();
}

void Servers::keep_authority(CertificateSecret* certificate) {
  const std::string subject = "ValidatingWebhookConfiguration " + options_.webhook_configuration;
  WebhookAuthority::Parts parts;
  parts.reader = &client_;
  parts.writer = manager_->writer(&client_);
  parts.clock = runtime_.clock;
  parts.configuration = options_.webhook_configuration;
  parts.authorities = [certificate] { return certificate->authorities(); };
  parts.may_write = [this] { return manager_->may_write(); };
  parts.events.failed = [this, subject](const k8s::Error& error) { outages_.failed(kBundleFailed, subject, error); };
  parts.events.worked = [this, subject] { outages_.worked(kBundleFailed, subject); };
  parts.events.written = [this, name = options_.webhook_configuration] {
    runtime_.log->info("Certificate authority published", {{"validatingWebhookConfiguration", name}});
  };
  webhook_authority_ = std::make_unique<WebhookAuthority>(std::move(parts));
}

void Servers::note_certificate(const std::string& metric, k8s::WallTime end) {
  runtime_.metrics->set(metric, {}, std::chrono::duration<double>(end.time_since_epoch()).count());
  runtime_.log->info("Serving certificate loaded", {{"until", k8s::format_time(end)}});
}

void Servers::start() {
  for (const auto& secret : certificate_secrets_) background_.spawn(executor_, secret->run());
  if (webhook_authority_ != nullptr) background_.spawn(executor_, webhook_authority_->run());
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
