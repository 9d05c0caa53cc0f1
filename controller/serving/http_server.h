// The one HTTP server: HTTP/1.1 (Beast), plain or over TLS (OpenSSL), for probes, metrics and /debug. What is answered
// is a handler's affair. Bounded: connections, header and body size, a deadline per request, and how long a connection
// is kept.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "controller/runtime/task_group.h"
#include "controller/serving/http_message.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

// The TLS context of a connection that is accepted now: asked each time, so that a renewed certificate is in use at
// once. Null: there is no certificate yet, and the connection is closed.
using TlsContexts = std::function<std::shared_ptr<boost::asio::ssl::context>()>;

struct HttpServerOptions {
  std::string address;   // "host:port", ":port" (all addresses) or "[v6]:port".
  TlsContexts tls = {};  // Empty: plain HTTP.
  // Further clients wait: for one that has had its answer and is kept for its next request, which is closed, or for the
  // end of another one.
  std::size_t max_connections = 64;
  std::size_t body_limit = 0;                                // Bytes of a request's body; more is answered with 413.
  k8s::Duration request_timeout = std::chrono::seconds(10);  // To shake hands, to send a request, to read its answer.
  k8s::Duration answer_timeout = std::chrono::seconds(30);   // For the handler.
  // A kept-alive connection is closed after the first answer beyond this age, so that the certificates of both sides
  // are checked again.
  k8s::Duration connection_lifetime = std::chrono::minutes(5);
  // A handler has thrown `what`: a bug in the answer to one request. Its connection is closed, the others go on.
  std::function<void(const std::string& what)> request_failed = [](const std::string&) {};
};

class HttpServer {
 public:
  // `clock` must outlive the server and its tasks.
  HttpServer(boost::asio::any_io_executor executor, k8s::Clock* clock, HttpServerOptions options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and listens. Errors: `invalid` for an address that cannot be read, `unavailable` when it cannot be bound.
  [[nodiscard]] k8s::Result<void> listen();
  [[nodiscard]] int port() const;  // After listen().
  // Serves until stop(). Call once, after listen(). Throws if it cannot go on watching over its connections (a bug).
  boost::asio::awaitable<void> run();
  // Closes the listener and every connection. Idempotent.
  void stop();
  [[nodiscard]] std::size_t connections() const;

 private:
  struct Connection;
  boost::asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  boost::asio::awaitable<void> serve_over_tls(std::shared_ptr<Connection> connection);
  // Requests and answers over one stream, until one side ends it.
  template <class Stream>
  boost::asio::awaitable<void> exchange(Stream* stream, std::shared_ptr<Connection> connection,
                                        std::optional<ClientSubject> client);
  // Until there is room for one more connection, or the end.
  boost::asio::awaitable<void> make_room();
  void close_idlest();
  boost::asio::awaitable<void> reap();

  boost::asio::any_io_executor executor_;
  k8s::Clock* clock_;
  HttpServerOptions options_;
  HttpHandler handler_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Connection>> open_;
  std::unique_ptr<k8s::Signal> wake_;
  std::unique_ptr<k8s::Signal> room_;  // A connection has ended, or can give way.
  TaskGroup tasks_;
  bool stopping_ = false;
};

}  // namespace gso
