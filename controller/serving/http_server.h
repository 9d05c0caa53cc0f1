// /healthz, /livez, /readyz, /metrics and /debug over HTTP/1.1 (Beast). Answers come from functions that read memory
// only, so a probe never waits for reconciliation. Bounded: connections, header size, and a deadline per request.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "controller/runtime/task_group.h"
#include "controller/serving/debug_answer.h"
#include "controller/serving/metrics.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

// One probe's answer: `ok` gives 200, else 500. The text names what is missing.
struct ProbeAnswer {
  bool ok = true;
  std::string text = "ok";
};

struct HealthRoutes {
  std::function<ProbeAnswer()> ready;
  std::function<ProbeAnswer()> live;
  std::shared_ptr<Metrics> metrics;                                 // Null: no /metrics here.
  bool probes = true;                                               // False: no probes here.
  std::function<DebugAnswer(const DebugRequest&)> debug = nullptr;  // Null: no /debug here.
};

struct HealthServerOptions {
  std::string address;                                       // "host:port", ":port" (all addresses) or "[v6]:port".
  std::size_t max_connections = 64;                          // More are closed at once.
  k8s::Duration request_timeout = std::chrono::seconds(10);  // To send a request; a kept-alive connection too.
};

class HealthServer {
 public:
  // `clock` must outlive the server and its tasks.
  HealthServer(boost::asio::any_io_executor executor, k8s::Clock* clock, HealthServerOptions options,
               HealthRoutes routes);
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  // Binds and listens. Errors: `invalid` for an address that cannot be read, `unavailable` when it cannot be bound.
  [[nodiscard]] k8s::Result<void> listen();
  [[nodiscard]] int port() const;  // After listen().
  // Serves until stop(). Call once, after listen().
  boost::asio::awaitable<void> run();
  // Closes the listener and every connection. Idempotent.
  void stop();
  [[nodiscard]] std::size_t connections() const;

 private:
  struct Connection;
  boost::asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  boost::asio::awaitable<void> reap();

  boost::asio::any_io_executor executor_;
  k8s::Clock* clock_;
  HealthServerOptions options_;
  HealthRoutes routes_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Connection>> open_;
  std::unique_ptr<k8s::Signal> wake_;
  TaskGroup tasks_;
  bool stopping_ = false;
};

}  // namespace gso
