// Connections: one coroutine each, and one more for each watch that notices when its client goes away.
#include "tests/sim/apiserver/http_frontend.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <set>
#include <sstream>

namespace gso::sim {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

constexpr std::uint64_t kMostBodyBytes = 8 * 1024 * 1024;  // The API server itself refuses from 3 MiB on.

struct Connection {
  explicit Connection(tcp::socket s) : socket(std::move(s)) {}
  tcp::socket socket;
  boost::beast::flat_buffer buffer;
};

std::optional<k8s::Method> method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
    case http::verb::head:
      return k8s::Method::get;
    case http::verb::post:
      return k8s::Method::post;
    case http::verb::put:
      return k8s::Method::put;
    case http::verb::patch:
      return k8s::Method::patch;
    case http::verb::delete_:
      return k8s::Method::del;
    default:
      return std::nullopt;
  }
}

k8s::HttpRequest convert(const http::request<http::string_body>& in) {
  k8s::HttpRequest request;
  request.method = method_of(in.method()).value_or(k8s::Method::get);
  request.path = std::string(in.target());
  request.body = in.body();
  request.content_type = std::string(in[http::field::content_type]);
  request.accept = std::string(in[http::field::accept]);
  return request;
}

RequestContext context_of(const http::request<http::string_body>& in) {
  RequestContext context;
  if (const auto agent = in[http::field::user_agent]; !agent.empty()) context.user_agent = std::string(agent);
  const std::string_view authorization(in[http::field::authorization].data(), in[http::field::authorization].size());
  if (authorization.starts_with("Bearer ")) context.user = authorization.substr(7);
  return context;
}

http::response<http::string_body> convert(k8s::HttpResponse answer, const http::request<http::string_body>& in) {
  http::response<http::string_body> out(static_cast<http::status>(answer.status), in.version());
  for (const auto& [name, value] : answer.headers) out.set(name, value);
  out.set(http::field::cache_control, "no-cache, private");
  out.keep_alive(in.keep_alive());
  out.body() = std::move(answer.body);
  out.prepare_payload();
  return out;
}

// A client of a watch sends nothing more: the end of its bytes is the end of the watch.
asio::awaitable<void> notice_departure(std::shared_ptr<Connection> connection, std::weak_ptr<WatchStream> watch) {
  char byte = 0;
  auto [error, size] = co_await connection->socket.async_read_some(asio::buffer(&byte, 1), kAsTuple);
  (void)error;
  (void)size;
  if (auto stream = watch.lock()) stream->reset();
}

asio::awaitable<void> serve_watch(std::shared_ptr<Connection> connection, ApiServer* server,
                                  std::shared_ptr<WatchStream> watch) {
  k8s::Clock& clock = server->clock();
  const std::shared_ptr<k8s::Signal> signal = clock.make_signal();
  watch->set_wakeup([signal] { signal->notify(); });
  http::response<http::empty_body> head(http::status::ok, 11);
  head.set(http::field::content_type, "application/json");
  head.set(http::field::cache_control, "no-cache, private");
  head.chunked(true);
  http::response_serializer<http::empty_body> serializer(head);
  auto [head_error, head_size] = co_await http::async_write_header(connection->socket, serializer, kAsTuple);
  (void)head_size;
  if (head_error) co_return;
  asio::co_spawn(connection->socket.get_executor(), notice_departure(connection, watch), asio::detached);
  for (;;) {
    const std::string bytes = watch->take();
    if (!bytes.empty()) {
      auto [error, size] =
          co_await asio::async_write(connection->socket, http::make_chunk(asio::buffer(bytes)), kAsTuple);
      (void)size;
      if (error) break;
      continue;
    }
    if (watch->ended()) {
      if (watch->was_reset()) break;
      auto [error, size] = co_await asio::async_write(connection->socket, http::make_chunk_last(), kAsTuple);
      (void)error;
      (void)size;
      break;
    }
    const bool woken = co_await signal->wait_until(watch->next_timer());
    if (!woken) watch->on_timer(server->revision());
  }
  watch->set_wakeup(nullptr);
  watch->reset();
  boost::system::error_code ignored;
  connection->socket.shutdown(tcp::socket::shutdown_both, ignored);
  connection->socket.close(ignored);
}

// What a Host header has: a name or an address, and a port.
constexpr std::string_view kOfHost = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_[]";

std::string kubeconfig_for(std::string_view url, std::string_view user) {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: sim\nclusters:\n- name: sim\n  cluster: {{server: \"{}\"}}\n"
      "users:\n- name: sim\n  user: {{token: \"{}\"}}\ncontexts:\n- name: sim\n  context: {{cluster: sim, user: "
      "sim}}\n",
      url, user);
}

// Answers one request; false when the connection is done for.
asio::awaitable<bool> serve_one(std::shared_ptr<Connection> connection, ApiServer* server) {
  http::request_parser<http::string_body> parser;
  parser.body_limit(kMostBodyBytes);
  auto [read_error, read_size] = co_await http::async_read(connection->socket, connection->buffer, parser, kAsTuple);
  (void)read_size;
  if (read_error) co_return false;
  const http::request<http::string_body> in = parser.release();
  const k8s::HttpRequest request = convert(in);
  const RequestContext context = context_of(in);
  k8s::HttpResponse answer;
  if (in.target() == "/kubeconfig") {
    const std::string_view host = in[http::field::host];
    const bool named = !host.empty() && host.find_first_not_of(kOfHost) == std::string_view::npos;
    answer.status = named ? 200 : 400;
    answer.body =
        named ? kubeconfig_for(fmt::format("http://{}", host), "system:admin") : "the Host header names no host";
  } else if (ApiServer::is_watch(request)) {
    auto watch = server->watch(request, context);
    if (auto* stream = std::get_if<std::shared_ptr<WatchStream>>(&watch)) {
      std::shared_ptr<WatchStream> open = *stream;
      co_await serve_watch(connection, server, open);
      co_return false;
    }
    answer = std::get<k8s::HttpResponse>(std::move(watch));
  } else {
    answer = server->handle(request, context);
  }
  const http::response<http::string_body> out = convert(std::move(answer), in);
  auto [write_error, write_size] = co_await http::async_write(connection->socket, out, kAsTuple);
  (void)write_size;
  co_return !write_error && in.keep_alive();
}

}  // namespace

struct HttpFrontend::State {
  State(asio::any_io_executor e, ApiServer& s, tcp::endpoint endpoint)
      : executor(std::move(e)), server(s), acceptor(executor, endpoint) {}
  asio::any_io_executor executor;
  ApiServer& server;
  tcp::acceptor acceptor;
  std::set<std::shared_ptr<Connection>> connections;
  bool stopped = false;

  static asio::awaitable<void> serve(std::shared_ptr<State> self, std::shared_ptr<Connection> connection) {
    bool more = true;
    while (more && !self->stopped) more = co_await serve_one(connection, &self->server);
    self->connections.erase(connection);
  }

  static asio::awaitable<void> accept(std::shared_ptr<State> self) {
    while (!self->stopped) {
      auto [error, socket] = co_await self->acceptor.async_accept(kAsTuple);
      if (error) {
        if (self->stopped || error == asio::error::operation_aborted) co_return;
        continue;
      }
      boost::system::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      auto connection = std::make_shared<Connection>(std::move(socket));
      self->connections.insert(connection);
      asio::co_spawn(self->executor, serve(self, connection), asio::detached);
    }
  }
};

HttpFrontend::HttpFrontend(asio::any_io_executor executor, ApiServer& server, std::uint16_t port,
                           const std::string& address)
    : state_(
          std::make_shared<State>(std::move(executor), server, tcp::endpoint(asio::ip::make_address(address), port))) {
  asio::co_spawn(state_->executor, State::accept(state_), asio::detached);
}

HttpFrontend::~HttpFrontend() {
  stop();
}

std::uint16_t HttpFrontend::port() const {
  return state_->acceptor.local_endpoint().port();
}
std::string HttpFrontend::url() const {
  const tcp::endpoint at = state_->acceptor.local_endpoint();
  if (at.address().is_unspecified()) return fmt::format("http://127.0.0.1:{}", at.port());
  std::ostringstream out;  // Brackets an IPv6 address.
  out << "http://" << at;
  return out.str();
}

std::string HttpFrontend::kubeconfig(const std::string& user) const {
  return kubeconfig_for(url(), user);
}

void HttpFrontend::stop() {
  if (std::exchange(state_->stopped, true)) return;
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  for (const auto& connection : state_->connections) connection->socket.close(ignored);
}

}  // namespace gso::sim
