// The HTTP servers of the operator: which address serves what, plain or over TLS, and who may read it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "controller/config/options.h"
#include "controller/runtime/manager.h"
#include "controller/runtime/outage_log.h"
#include "controller/runtime/run_operator.h"
#include "controller/runtime/task_group.h"
#include "controller/serving/certificate_files.h"
#include "controller/serving/http_server.h"
#include "controller/serving/scrape_access.h"
#include "k8sclient/api/client.h"
#include "k8sclient/value/error.h"

namespace gso {

class Servers {
 public:
  // `runtime` has its optional parts filled in; `options` are valid. `manager` must outlive the servers.
  Servers(const Runtime& runtime, const Options& options, Manager* manager, boost::asio::any_io_executor executor);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // All of them; writes the ports into the RuntimeView. Errors name the address, or the certificate's file.
  [[nodiscard]] k8s::Result<void> listen();
  void start();
  // Closes everything. join() returns when it has.
  void stop();
  boost::asio::awaitable<void> join();

 private:
  HttpServer* add(HttpServerOptions serving, HttpHandler handler);
  HttpServer* add(const std::string& address, Routes routes, TlsContexts tls = {});
  [[nodiscard]] k8s::Result<void> listen_for_metrics();
  [[nodiscard]] k8s::Result<void> listen_for_admission();
  // `server`: "metrics" or "webhook", the label of the gauge of the certificate's end.
  [[nodiscard]] k8s::Result<TlsContexts> certificates(CertificateFiles::Paths paths, const std::string& server);
  boost::asio::awaitable<void> keep_certificates();
  [[nodiscard]] AccessCheck access_check();

  Runtime runtime_;
  Options options_;
  Manager* manager_;
  boost::asio::any_io_executor executor_;
  // Questions about scrapers go apart from the operator's own requests.
  k8s::ApiClient client_;
  OutageLog outages_;
  std::vector<std::unique_ptr<CertificateFiles>> certificate_files_;
  std::unique_ptr<ScrapeAccess> scrape_access_;
  std::vector<std::unique_ptr<HttpServer>> servers_;
  TaskGroup tasks_;
  TaskGroup background_;  // Reads certificates again; cancelled at the stop.
};

}  // namespace gso
