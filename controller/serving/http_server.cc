// The listener, its connections, and the one coroutine that closes those that are too slow.
#include "controller/serving/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "controller/serving/tls_context.h"

namespace gso {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::uint32_t kHeaderLimit = 16384;  // A token with many claims has some kilobytes.
constexpr std::size_t kFirstRead = 4096;       // Of a kept connection's next request.

using Answer = http::response<http::string_body>;

std::optional<Tcp::endpoint> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [rest, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (code != std::errc{} || rest != digits.data() + digits.size()) return std::nullopt;
  if (host.empty()) host = "::";
  if (host == "localhost") host = "127.0.0.1";
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code ec;
  const auto address = asio::ip::make_address(std::string(host), ec);
  if (ec) return std::nullopt;
  return Tcp::endpoint(address, port);
}

// What Beast has read, as a handler takes it. Texts are taken out of the message.
HttpRequest request_of(http::request<http::string_body> message, std::optional<ClientSubject> client) {
  const auto header = [&message](http::field name) {
    const auto value = message[name];
    return std::string(value.data(), value.size());
  };
  const std::string_view target(message.target().data(), message.target().size());
  const auto method = message.method_string();
  HttpRequest out;
  out.method.assign(method.data(), method.size());
  out.path = target.substr(0, target.find('?'));
  out.accept = header(http::field::accept);
  out.authorization = header(http::field::authorization);
  out.content_type = header(http::field::content_type);
  out.body = std::move(message.body());
  out.client = std::move(client);
  return out;
}

Answer answer_of(HttpAnswer from) {
  Answer answer(static_cast<http::status>(from.status), 11);
  answer.set(http::field::content_type, from.content_type);
  for (const auto& [name, value] : from.headers) answer.set(name, value);
  answer.body() = std::move(from.body);
  return answer;
}

HttpAnswer cannot_be_read(const boost::system::error_code& error) {
  return text_answer(error == http::error::body_limit ? 413 : 400, error.message() + "\n");
}

// Only a malformed request can be answered: otherwise the client has disconnected.
bool is_malformed(const boost::system::error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

}  // namespace

struct HttpServer::Connection {
  explicit Connection(Tcp::socket s) : socket(std::move(s)) {}
  void close() {
    boost::system::error_code ec;
    socket.shutdown(Tcp::socket::shutdown_both, ec);
    socket.close(ec);
  }
  Tcp::socket socket;
  k8s::MonoTime deadline;
  k8s::MonoTime close_after;                // With the first answer from then on.
  std::optional<k8s::MonoTime> idle_since;  // It has had an answer, and nothing of a next request has come.
  bool gives_way = false;                   // Closed for another client.
};

HttpServer::HttpServer(asio::any_io_executor executor, k8s::Clock* clock, HttpServerOptions options,
                       HttpHandler handler)
    : executor_(executor),
      clock_(clock),
      options_(std::move(options)),
      handler_(std::move(handler)),
      acceptor_(executor),
      wake_(clock->make_signal()),
      room_(clock->make_signal()),
      tasks_(clock) {
  tasks_.on_failure([this](const std::string&) { stop(); });  // run() throws it.
}

HttpServer::~HttpServer() = default;

k8s::Result<void> HttpServer::listen() {
  const std::optional<Tcp::endpoint> endpoint = parse_address(options_.address);
  if (!endpoint) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("'{}' is not a listen address; write it like :8080 or 127.0.0.1:0", options_.address));
  }
  boost::system::error_code ec;
  acceptor_.open(endpoint->protocol(), ec);
  if (!ec) acceptor_.set_option(Tcp::acceptor::reuse_address(true), ec);
  if (!ec && endpoint->protocol() == Tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false), ec);
  if (!ec) acceptor_.bind(*endpoint, ec);
  if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  if (ec && endpoint->address() == asio::ip::address(asio::ip::address_v6::any())) {
    // A kernel without IPv6: all IPv4 addresses are what ":port" can mean.
    const Tcp::endpoint v4(Tcp::v4(), endpoint->port());
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    ec.clear();
    acceptor_.open(Tcp::v4(), ec);
    if (!ec) acceptor_.set_option(Tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_.bind(v4, ec);
    if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  }
  if (ec) {
    return k8s::fail(k8s::Reason::unavailable, fmt::format("cannot listen on {}: {}", options_.address, ec.message()));
  }
  return {};
}

int HttpServer::port() const {
  boost::system::error_code ec;
  const auto endpoint = acceptor_.local_endpoint(ec);
  return ec ? 0 : endpoint.port();
}

std::size_t HttpServer::connections() const {
  return open_.size();
}

asio::awaitable<void> HttpServer::run() {
  tasks_.spawn(executor_, reap());
  while (!stopping_) {
    auto [ec, socket] = co_await acceptor_.async_accept(kAsTuple);
    if (stopping_ || ec == asio::error::operation_aborted) break;
    if (ec) {
      // Out of file descriptors or the like: the next try must not spin.
      co_await wake_->wait_until(clock_->monotonic() + std::chrono::seconds(1));
      continue;
    }
    co_await make_room();
    if (stopping_) break;
    auto connection = std::make_shared<Connection>(std::move(socket));
    connection->deadline = clock_->monotonic() + options_.request_timeout;
    connection->close_after = clock_->monotonic() + options_.connection_lifetime;
    open_.push_back(connection);
    tasks_.spawn(executor_, serve(connection));
  }
  stop();
  tasks_.cancel();
  co_await tasks_.join();
  if (!tasks_.failure().empty()) throw std::runtime_error(tasks_.failure());
}

void HttpServer::stop() {
  stopping_ = true;
  boost::system::error_code ec;
  acceptor_.close(ec);
  for (const auto& connection : open_) connection->close();
  wake_->notify();
  room_->notify();
}

asio::awaitable<void> HttpServer::make_room() {
  while (!stopping_ && open_.size() >= options_.max_connections) {
    close_idlest();
    (void)co_await room_->wait();
  }
}

// One at a time: its coroutine ends a moment later.
void HttpServer::close_idlest() {
  if (std::ranges::any_of(open_, [](const auto& connection) { return connection->gives_way; })) return;
  Connection* idlest = nullptr;
  for (const auto& connection : open_) {
    if (!connection->idle_since) continue;
    if (idlest == nullptr || *connection->idle_since < *idlest->idle_since) idlest = connection.get();
  }
  if (idlest == nullptr) return;
  idlest->gives_way = true;
  idlest->close();
}

asio::awaitable<void> HttpServer::serve(std::shared_ptr<Connection> connection) {
  try {
    if (options_.tls) {
      co_await serve_over_tls(connection);
    } else {
      co_await exchange(&connection->socket, connection, std::nullopt);
    }
  } catch (const std::exception& error) {
    if (!stopping_) options_.request_failed(error.what());  // Else it was cancelled.
  }
  // No guard does this: an io_context destroys suspended connections after their server.
  connection->close();
  std::erase(open_, connection);
  room_->notify();
}

asio::awaitable<void> HttpServer::serve_over_tls(std::shared_ptr<Connection> connection) {
  const std::shared_ptr<asio::ssl::context> context = options_.tls();
  if (context == nullptr) co_return;
  asio::ssl::stream<Tcp::socket&> stream(connection->socket, *context);
  const auto [handshake_error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kAsTuple);
  if (handshake_error) co_return;
  co_await exchange(&stream, connection, client_subject(stream.native_handle()));
  connection->deadline = clock_->monotonic() + options_.request_timeout;
  co_await stream.async_shutdown(kAsTuple);
}

template <class Stream>
asio::awaitable<void> HttpServer::exchange(Stream* stream, std::shared_ptr<Connection> connection,
                                           std::optional<ClientSubject> client) {
  boost::beast::flat_buffer buffer(kHeaderLimit + options_.body_limit);
  bool keep = true;
  for (bool first = true; keep && !stopping_; first = false) {
    connection->deadline = clock_->monotonic() + options_.request_timeout;
    if (!first && buffer.size() == 0) {
      connection->idle_since = clock_->monotonic();
      room_->notify();
      const auto [idle_error, begun] = co_await stream->async_read_some(buffer.prepare(kFirstRead), kAsTuple);
      connection->idle_since.reset();
      if (idle_error) break;
      buffer.commit(begun);
    }
    http::request_parser<http::string_body> parser;
    parser.header_limit(kHeaderLimit);
    parser.body_limit(options_.body_limit);
    const auto [read_error, bytes] = co_await http::async_read(*stream, buffer, parser, kAsTuple);
    if (read_error && !is_malformed(read_error)) break;
    keep = !read_error && parser.get().keep_alive() && clock_->monotonic() < connection->close_after;
    const bool body = read_error || parser.get().method() != http::verb::head;
    HttpAnswer answered;
    if (read_error) {
      answered = cannot_be_read(read_error);
    } else {
      connection->deadline = clock_->monotonic() + options_.answer_timeout;
      HttpRequest request = request_of(parser.release(), client);
      answered = co_await handler_(std::move(request));
    }
    Answer answer = answer_of(std::move(answered));
    answer.keep_alive(keep);
    answer.prepare_payload();
    if (!body) answer.body().clear();  // Content-Length stays as for GET.
    connection->deadline = clock_->monotonic() + options_.request_timeout;
    const auto [write_error, written] = co_await http::async_write(*stream, answer, kAsTuple);
    if (write_error) break;
  }
}

asio::awaitable<void> HttpServer::reap() {
  while (!stopping_) {
    co_await wake_->wait_until(clock_->monotonic() + options_.request_timeout / 2);
    const k8s::MonoTime now = clock_->monotonic();
    for (const auto& connection : open_) {
      if (connection->deadline <= now) connection->close();
    }
  }
}

}  // namespace gso
