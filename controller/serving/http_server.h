// The one HTTP server: HTTP/1.1 (Beast), plain or over TLS (OpenSSL), for probes, metrics, the webhook and /debug. What
// is answered is a handler's affair. Bounded: connections, header and body size, the bytes of all bodies and answers
// together, a deadline per request, and how long a connection is kept.
//
// A silent or slow client costs no other client an answer: each new one is accepted, and where no place is free an
// older one gives way (first_to_go()).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
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
  std::size_t max_connections = 256;
  std::size_t body_limit = 0;  // Bytes of a request's body; more is answered with 413.
  // Of a longer body only the first kHeadOfBody bytes are read; the client is answered at once, and for the last time.
  std::size_t body_kept = std::size_t{1} << 20;
  // Bytes of all bodies and answers that are held at once, apart from the first kBytesOfEach of each connection. A
  // request beyond them waits a second for its place, and is then answered with 503.
  std::size_t memory_budget = std::size_t{16} << 20;
  k8s::Duration header_timeout = std::chrono::seconds(5);    // To shake hands and to send the header of a request.
  k8s::Duration request_timeout = std::chrono::seconds(10);  // To send its body, to read its answer, to ask again.
  k8s::Duration answer_timeout = std::chrono::seconds(30);   // For the handler.
  // A kept-alive connection is closed after the first answer beyond this age, so that the certificates of both sides
  // are checked again.
  k8s::Duration connection_lifetime = std::chrono::minutes(5);
  // A handler has thrown `what`: a bug in the answer to one request. Its connection is closed, the others go on.
  std::function<void(const std::string& what)> request_failed = [](const std::string&) {};
};

class HttpServer {
 public:
  static constexpr std::size_t kHeadOfBody = std::size_t{64} << 10;
  static constexpr std::size_t kBytesOfEach = std::size_t{32} << 10;
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
  [[nodiscard]] std::size_t connections() const;  // Without those that have given way and end now.

 private:
  struct Connection;
  struct Asked;
  boost::asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  boost::asio::awaitable<void> serve_over_tls(std::shared_ptr<Connection> connection);
  // Requests and answers over one stream, until one side ends it.
  template <class Stream>
  boost::asio::awaitable<void> exchange(Stream* stream, std::shared_ptr<Connection> connection,
                                        std::optional<ClientSubject> client);
  template <class Stream>
  boost::asio::awaitable<Asked> read_request(Stream* stream, boost::beast::flat_buffer* buffer,
                                             std::shared_ptr<Connection> connection);
  // False: the connection has ended.
  template <class Stream>
  boost::asio::awaitable<bool> send(Stream* stream, std::shared_ptr<Connection> connection, HttpAnswer answer,
                                    bool keep, bool with_body);
  boost::asio::awaitable<void> drop_rest(std::shared_ptr<Connection> connection);
  // Until there is a place for one more connection, or the end.
  boost::asio::awaitable<void> make_room();
  [[nodiscard]] Connection* first_to_go(bool patient) const;
  // Bytes of the memory budget, for the connection's present request or answer. False: there are none for it.
  boost::asio::awaitable<bool> reserve(std::shared_ptr<Connection> connection, std::size_t bytes);
  void release(Connection* connection);
  void close_slowest_holder();
  boost::asio::awaitable<void> reap();

  boost::asio::any_io_executor executor_;
  k8s::Clock* clock_;
  HttpServerOptions options_;
  HttpHandler handler_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Connection>> open_;
  std::unique_ptr<k8s::Signal> wake_;
  std::unique_ptr<k8s::Signal> room_;  // A connection has ended, or can give way; or bytes of the budget are free.
  std::size_t in_use_ = 0;             // Of the memory budget.
  TaskGroup tasks_;
  bool stopping_ = false;
};

}  // namespace gso
