// The listener, its connections, and the one coroutine that closes those that are too slow.
#include "controller/serving/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <optional>
#include <utility>

namespace gso {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::uint32_t kHeaderLimit = 8192;

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

Answer text_answer(http::status status, std::string body) {
  Answer answer(status, 11);
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  answer.body() = std::move(body);
  return answer;
}

Answer probe_answer(const ProbeAnswer& probe) {
  return text_answer(probe.ok ? http::status::ok : http::status::internal_server_error, probe.text + "\n");
}

Answer metrics_answer(Metrics& metrics, std::string_view accept) {
  const auto format = accept.find("application/openmetrics-text") != std::string_view::npos
                          ? Metrics::Format::openmetrics
                          : Metrics::Format::prometheus;
  Answer answer = text_answer(http::status::ok, metrics.render(format));
  answer.set(http::field::content_type, std::string(Metrics::content_type(format)));
  return answer;
}

Answer debug_answer(const HealthRoutes& routes, std::string_view path, bool put) {
  DebugAnswer debug = routes.debug({path, put});
  Answer answer(static_cast<http::status>(debug.status), 11);
  answer.set(http::field::content_type, "application/json");
  answer.body() = std::move(debug.json);
  return answer;
}

Answer route(const HealthRoutes& routes, const http::request<http::empty_body>& request) {
  const std::string_view target(request.target().data(), request.target().size());
  const std::string_view path = target.substr(0, target.find('?'));
  const bool puts = request.method() == http::verb::put;
  const bool gets = request.method() == http::verb::get || request.method() == http::verb::head;
  if (routes.debug && path.starts_with("/debug/") && (gets || puts)) return debug_answer(routes, path, puts);
  if (!gets) {
    Answer answer = text_answer(http::status::method_not_allowed, "only GET and HEAD\n");
    answer.set(http::field::allow, "GET, HEAD");
    return answer;
  }
  if (routes.probes && (path == "/healthz" || path == "/livez")) return probe_answer(routes.live());
  if (routes.probes && path == "/readyz") return probe_answer(routes.ready());
  if (routes.metrics != nullptr && path == "/metrics") {
    const auto accept = request[http::field::accept];
    return metrics_answer(*routes.metrics, {accept.data(), accept.size()});
  }
  std::string known = routes.probes ? "/healthz, /livez, /readyz" : "";
  if (routes.metrics != nullptr) known += (known.empty() ? "" : ", ") + std::string("/metrics");
  if (routes.debug)
    known += (known.empty() ? "" : ", ") + std::string("/debug/cache, …/queue, …/nodes/NAME, …/log-level");
  return text_answer(http::status::not_found, "not found; available: " + known + "\n");
}

}  // namespace

struct HealthServer::Connection {
  explicit Connection(Tcp::socket s) : socket(std::move(s)) {}
  void close() {
    boost::system::error_code ec;
    socket.shutdown(Tcp::socket::shutdown_both, ec);
    socket.close(ec);
  }
  Tcp::socket socket;
  k8s::MonoTime deadline;
};

HealthServer::HealthServer(asio::any_io_executor executor, k8s::Clock* clock, HealthServerOptions options,
                           HealthRoutes routes)
    : executor_(executor),
      clock_(clock),
      options_(std::move(options)),
      routes_(std::move(routes)),
      acceptor_(executor),
      wake_(clock->make_signal()),
      tasks_(clock) {}

HealthServer::~HealthServer() = default;

k8s::Result<void> HealthServer::listen() {
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

int HealthServer::port() const {
  boost::system::error_code ec;
  const auto endpoint = acceptor_.local_endpoint(ec);
  return ec ? 0 : endpoint.port();
}

std::size_t HealthServer::connections() const {
  return open_.size();
}

asio::awaitable<void> HealthServer::run() {
  tasks_.spawn(executor_, reap());
  while (!stopping_) {
    auto [ec, socket] = co_await acceptor_.async_accept(kAsTuple);
    if (stopping_ || ec == asio::error::operation_aborted) break;
    if (ec) {
      // Out of file descriptors or the like: the next try must not spin.
      co_await wake_->wait_until(clock_->monotonic() + std::chrono::seconds(1));
      continue;
    }
    if (open_.size() >= options_.max_connections) continue;  // Closes it.
    auto connection = std::make_shared<Connection>(std::move(socket));
    connection->deadline = clock_->monotonic() + options_.request_timeout;
    open_.push_back(connection);
    tasks_.spawn(executor_, serve(connection));
  }
  stop();
  tasks_.cancel();
  co_await tasks_.join();
}

void HealthServer::stop() {
  stopping_ = true;
  boost::system::error_code ec;
  acceptor_.close(ec);
  for (const auto& connection : open_) connection->close();
  wake_->notify();
}

asio::awaitable<void> HealthServer::serve(std::shared_ptr<Connection> connection) {
  boost::beast::flat_buffer buffer(kHeaderLimit);
  bool keep = true;
  while (keep && !stopping_) {
    connection->deadline = clock_->monotonic() + options_.request_timeout;
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kHeaderLimit);
    parser.body_limit(0);
    auto [read_error, bytes] = co_await http::async_read(connection->socket, buffer, parser, kAsTuple);
    // Except for a malformed request, the client has disconnected and no answer can be sent.
    const bool gone = read_error == http::error::end_of_stream || read_error == asio::error::eof ||
                      (read_error && read_error.category() == asio::error::get_system_category());
    if (gone) break;
    Answer answer =
        read_error ? text_answer(http::status::bad_request, read_error.message() + "\n") : route(routes_, parser.get());
    keep = !read_error && parser.get().keep_alive();
    answer.keep_alive(keep);
    answer.prepare_payload();
    if (!read_error && parser.get().method() == http::verb::head) {
      answer.body().clear();  // Content-Length stays as for GET.
    }
    auto [write_error, written] = co_await http::async_write(connection->socket, answer, kAsTuple);
    if (write_error) break;
  }
  connection->close();
  std::erase(open_, connection);
}

asio::awaitable<void> HealthServer::reap() {
  while (!stopping_) {
    co_await wake_->wait_until(clock_->monotonic() + options_.request_timeout / 2);
    const k8s::MonoTime now = clock_->monotonic();
    for (const auto& connection : open_) {
      if (connection->deadline <= now) connection->close();
    }
  }
}

}  // namespace gso
