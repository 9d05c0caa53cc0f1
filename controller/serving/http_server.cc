// The listener, what is said over one connection, and who gives way to whom.
#include "controller/serving/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <exception>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/serving/tls_context.h"

namespace gso {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::uint32_t kHeaderLimit = 16384;  // A token with many claims has some kilobytes.
constexpr std::size_t kFirstRead = 4096;       // Of a kept connection's next request.
constexpr std::size_t kPieceOfBody = 16384;    // What is read of a body, or dropped, at once.

// Within this time a client that has just connected sends its request, unless it means not to: it does not give way
// before.
constexpr k8s::Duration kTimeToAsk = std::chrono::milliseconds(50);
// The same for a body, or for an answer that is read.
constexpr k8s::Duration kTimeToSend = std::chrono::milliseconds(250);
constexpr k8s::Duration kLongestWait = std::chrono::seconds(1);  // For bytes of the budget.

using Answer = http::response<http::string_body>;
using RequestParser = http::request_parser<http::buffer_body>;

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

boost::system::error_code listen_at(Tcp::acceptor& acceptor, const Tcp::endpoint& endpoint) {
  boost::system::error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(Tcp::acceptor::reuse_address(true), ec);
  if (!ec && endpoint.protocol() == Tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  return ec;
}

// What Beast has read, as a handler takes it.
HttpRequest request_of(const RequestParser::value_type& message, std::string body) {
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
  out.body = std::move(body);
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

// One connection: what it is doing, since when, and whether it can give way to another one.
struct HttpServer::Connection {
  // In the order in which connections give way. One whose request is being answered never does.
  enum class Stage { asks, reads, idle, is_answered };
  Connection(Tcp::socket s, k8s::MonoTime now) : socket(std::move(s)), since(now) {
    boost::system::error_code ec;
    const Tcp::endpoint other = socket.remote_endpoint(ec);
    if (!ec) client = other.address();
  }
  void enter(Stage next, k8s::MonoTime now, k8s::Duration allowed) {
    stage = next;
    since = now;
    deadline = now + allowed;
  }
  void close() {
    boost::system::error_code ec;
    socket.shutdown(Tcp::socket::shutdown_both, ec);
    socket.close(ec);
  }
  // Whether it can be closed for another client: nothing that it has sent is unread, and it had time to send more.
  [[nodiscard]] bool is_slow(k8s::MonoTime now, k8s::Duration allowed) const {
    if (stage == Stage::idle) return true;
    if (stage == Stage::is_answered || now - since < allowed) return false;
    boost::system::error_code ec;
    return stage == Stage::reads || socket.available(ec) == 0 || ec;
  }
  Tcp::socket socket;
  asio::ip::address client;
  Stage stage = Stage::asks;
  k8s::MonoTime since;  // Of the stage.
  k8s::MonoTime deadline;
  k8s::MonoTime close_after;  // With the first answer from then on.
  std::size_t reserved = 0;   // Bytes of the memory budget.
  bool gives_way = false;     // Closed for another client.
};

// What has come of one request.
struct HttpServer::Asked {
  Asked() = default;  // No aggregate: see k8sclient/value/object.h.
  void refuse(HttpAnswer answer) {
    gone = false;
    refusal = std::move(answer);
  }
  bool gone = true;                    // Nobody reads an answer.
  std::optional<HttpRequest> request;  // Empty: `refusal` is the answer, and the last one.
  HttpAnswer refusal;
  bool keep = false;      // The client can ask again.
  bool unread = false;    // A part of the body.
  bool with_body = true;  // False: it asks for the header of the answer only.
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
  boost::system::error_code ec = listen_at(acceptor_, *endpoint);
  if (ec && endpoint->address() == asio::ip::address(asio::ip::address_v6::any())) {
    // A kernel without IPv6: all IPv4 addresses are what ":port" can mean.
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    ec = listen_at(acceptor_, Tcp::endpoint(Tcp::v4(), endpoint->port()));
  }
  if (ec)
    return k8s::fail(k8s::Reason::unavailable, fmt::format("cannot listen on {}: {}", options_.address, ec.message()));
  return {};
}

int HttpServer::port() const {
  boost::system::error_code ec;
  const auto endpoint = acceptor_.local_endpoint(ec);
  return ec ? 0 : endpoint.port();
}

std::size_t HttpServer::connections() const {
  return static_cast<std::size_t>(std::ranges::count_if(open_, [](const auto& each) { return !each->gives_way; }));
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
    const k8s::MonoTime now = clock_->monotonic();
    auto connection = std::make_shared<Connection>(std::move(socket), now);
    connection->enter(Connection::Stage::asks, now, options_.header_timeout);
    connection->close_after = now + options_.connection_lifetime;
    open_.push_back(connection);
    wake_->notify();
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

asio::awaitable<void> HttpServer::serve(std::shared_ptr<Connection> connection) {
  try {
    if (options_.tls)
      co_await serve_over_tls(connection);
    else
      co_await exchange(&connection->socket, connection, std::nullopt);
  } catch (const std::exception& error) {
    if (!stopping_) options_.request_failed(error.what());  // Else it was cancelled.
  }
  // No guard does this: an io_context destroys suspended connections after their server.
  connection->close();
  std::erase(open_, connection);
  release(connection.get());
}

asio::awaitable<void> HttpServer::serve_over_tls(std::shared_ptr<Connection> connection) {
  // A silent client costs no buffers of TLS.
  const auto [never_spoke] = co_await connection->socket.async_wait(Tcp::socket::wait_read, kAsTuple);
  if (never_spoke) co_return;
  const std::shared_ptr<asio::ssl::context> context = options_.tls();
  if (context == nullptr) co_return;
  asio::ssl::stream<Tcp::socket&> stream(connection->socket, *context);
  const auto [handshake_error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kAsTuple);
  if (handshake_error) co_return;
  co_await exchange(&stream, connection, client_subject(stream.native_handle()));
  connection->enter(Connection::Stage::idle, clock_->monotonic(), options_.header_timeout);
  room_->notify();
  co_await stream.async_shutdown(kAsTuple);
}

template <class Stream>
asio::awaitable<void> HttpServer::exchange(Stream* stream, std::shared_ptr<Connection> connection,
                                           std::optional<ClientSubject> client) {
  boost::beast::flat_buffer buffer(kHeaderLimit + options_.body_limit);
  bool keep = true;
  for (bool first = true; keep && !stopping_; first = false) {
    if (!first && buffer.size() == 0) {
      connection->enter(Connection::Stage::idle, clock_->monotonic(), options_.request_timeout);
      room_->notify();
      const auto [idle_error, begun] = co_await stream->async_read_some(buffer.prepare(kFirstRead), kAsTuple);
      if (idle_error) break;
      buffer.commit(begun);
    }
    if (!first) connection->enter(Connection::Stage::asks, clock_->monotonic(), options_.header_timeout);
    Asked asked = co_await read_request(stream, &buffer, connection);
    if (asked.gone) break;
    keep = asked.keep && clock_->monotonic() < connection->close_after;
    HttpAnswer answer = std::move(asked.refusal);
    if (asked.request) {
      connection->enter(Connection::Stage::is_answered, clock_->monotonic(), options_.answer_timeout);
      asked.request->client = client;
      answer = co_await handler_(*std::move(asked.request));
    }
    release(connection.get());
    const bool sent = co_await send(stream, connection, std::move(answer), keep, asked.with_body);
    release(connection.get());
    if (sent && asked.unread) co_await drop_rest(connection);
    if (!sent || asked.unread) break;
  }
}

// A client that was cut off while it sends might not read its answer. What still comes is not even decrypted.
asio::awaitable<void> HttpServer::drop_rest(std::shared_ptr<Connection> connection) {
  connection->enter(Connection::Stage::reads, clock_->monotonic(), options_.header_timeout);
  boost::system::error_code ec;
  connection->socket.shutdown(Tcp::socket::shutdown_send, ec);
  std::vector<char> dropped(kPieceOfBody);
  while (!stopping_ && !ec) {
    const auto [error, bytes] = co_await connection->socket.async_read_some(asio::buffer(dropped), kAsTuple);
    ec = error;
  }
  connection->close();
}

template <class Stream>
asio::awaitable<HttpServer::Asked> HttpServer::read_request(Stream* stream, boost::beast::flat_buffer* buffer,
                                                            std::shared_ptr<Connection> connection) {
  Asked out;
  RequestParser parser;
  parser.header_limit(kHeaderLimit);
  parser.body_limit(options_.body_limit);
  const auto [header_error, header_bytes] = co_await http::async_read_header(*stream, *buffer, parser, kAsTuple);
  if (header_error) {
    if (is_malformed(header_error)) out.refuse(cannot_be_read(header_error));
    out.unread = header_error == http::error::body_limit;
    co_return out;
  }
  connection->deadline = clock_->monotonic() + options_.request_timeout;
  if (parser.chunked() && options_.body_limit > 0) {
    out.refuse(text_answer(411, "send the length of the body, in Content-Length\n"));
    out.unread = true;
    co_return out;
  }
  const std::uint64_t length = parser.content_length().value_or(0);
  out.unread = length > options_.body_kept;
  const std::size_t kept = out.unread ? kHeadOfBody : static_cast<std::size_t>(length);
  const bool fits = co_await reserve(connection, kept);
  if (!fits) {
    out.refuse(text_answer(503, "too many large requests at once; try again\n"));
    out.unread = true;
    co_return out;
  }
  connection->since = clock_->monotonic();  // The wait was not its fault.
  std::string body;
  body.reserve(kept);
  boost::system::error_code body_error;
  while (!body_error && !parser.is_done() && !(out.unread && body.size() == kept)) {
    const std::size_t before = body.size();
    body.resize(std::min(kept, before + kPieceOfBody));
    parser.get().body().data = body.data() + before;
    parser.get().body().size = body.size() - before;
    const auto [error, bytes] = co_await http::async_read_some(*stream, *buffer, parser, kAsTuple);
    body.resize(body.size() - parser.get().body().size);
    if (error != http::error::need_buffer) body_error = error;
  }
  if (body_error) {
    if (is_malformed(body_error)) out.refuse(cannot_be_read(body_error));
    co_return out;
  }
  out.gone = false;
  out.keep = parser.get().keep_alive() && !out.unread;
  out.with_body = parser.get().method() != http::verb::head;
  out.request = request_of(parser.get(), std::move(body));
  out.request->body_size = length;
  co_return out;
}

template <class Stream>
asio::awaitable<bool> HttpServer::send(Stream* stream, std::shared_ptr<Connection> connection, HttpAnswer answer,
                                       bool keep, bool with_body) {
  connection->enter(Connection::Stage::reads, clock_->monotonic(), options_.request_timeout);
  const bool fits = co_await reserve(connection, answer.body.size());
  if (!fits) answer = text_answer(503, "too many large answers at once; try again\n");
  Answer message = answer_of(std::move(answer));
  message.keep_alive(keep);
  message.prepare_payload();
  if (!with_body) message.body().clear();  // Content-Length stays as for GET.
  connection->since = clock_->monotonic();
  const auto [write_error, written] = co_await http::async_write(*stream, message, kAsTuple);
  co_return !write_error;
}

// --- Who may hold a connection, or bytes of the memory, and who gives way: rules of http_server.h.

// Each turn closes one connection or waits until one can be closed: a new client is accepted after kTimeToAsk at the
// latest, unless each of the others is being answered.
asio::awaitable<void> HttpServer::make_room() {
  for (bool patient = true; !stopping_ && connections() >= options_.max_connections;) {
    if (Connection* const first = first_to_go(patient)) {
      first->gives_way = true;
      first->close();  // Its coroutine ends a moment later.
    } else {
      patient = co_await room_->wait_until(clock_->monotonic() + kTimeToAsk);
    }
  }
}

// Those without a complete request come first, then those that do not read their answer, then those that are kept for a
// next request. Among these it is the oldest one of the address that has the most: whoever opens many connections
// closes his own.
HttpServer::Connection* HttpServer::first_to_go(bool patient) const {
  const k8s::MonoTime now = clock_->monotonic();
  const auto can_go = [&](const Connection& each) {
    return !each.gives_way && (patient ? each.is_slow(now, kTimeToAsk) : each.stage != Connection::Stage::is_answered);
  };
  std::map<asio::ip::address, std::size_t> of_address;
  for (const auto& each : open_) ++of_address[each->client];
  const auto rank = [&](const Connection& each) {
    return std::tuple(each.stage, open_.size() - of_address[each.client], each.since);
  };
  Connection* first = nullptr;
  for (const auto& each : open_)
    if (can_go(*each) && (first == nullptr || rank(*each) < rank(*first))) first = each.get();
  return first;
}

asio::awaitable<bool> HttpServer::reserve(std::shared_ptr<Connection> connection, std::size_t bytes) {
  // Whatever is larger than the whole budget goes alone.
  bytes = std::min(bytes - std::min(bytes, kBytesOfEach), options_.memory_budget);
  const k8s::MonoTime until = clock_->monotonic() + kLongestWait;
  while (in_use_ + bytes > options_.memory_budget) {
    if (stopping_ || connection->gives_way || clock_->monotonic() >= until) co_return false;
    close_slowest_holder();
    (void)co_await room_->wait_until(std::min(until, clock_->monotonic() + kTimeToSend));
  }
  connection->reserved += bytes;
  in_use_ += bytes;
  co_return true;
}

void HttpServer::release(Connection* connection) {
  in_use_ -= std::exchange(connection->reserved, 0);
  room_->notify();
}

// One at a time, as its bytes are free only when its coroutine has ended.
void HttpServer::close_slowest_holder() {
  const k8s::MonoTime now = clock_->monotonic();
  Connection* slowest = nullptr;
  for (const auto& each : open_) {
    if (each->reserved == 0 || each->stage == Connection::Stage::is_answered) continue;
    if (each->gives_way) return;
    if (now - each->since >= kTimeToSend && (slowest == nullptr || each->since < slowest->since)) slowest = each.get();
  }
  if (slowest == nullptr) return;
  slowest->gives_way = true;
  slowest->close();
}

asio::awaitable<void> HttpServer::reap() {
  while (!stopping_) {
    if (open_.empty()) {
      (void)co_await wake_->wait();
      continue;
    }
    co_await wake_->wait_until(clock_->monotonic() + std::min(options_.header_timeout, options_.request_timeout) / 2);
    const k8s::MonoTime now = clock_->monotonic();
    for (const auto& connection : open_)
      if (connection->deadline <= now) connection->close();
  }
}

}  // namespace gso
