// Latency of the validating webhook at 500 AdmissionReviews a second: over TLS on loopback, server and clients in one
// thread, so that both share one core. Fails from a p99 of 5 ms on.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "controller/serving/admission_review.h"
#include "controller/serving/http_server.h"
#include "controller/serving/tls_context.h"
#include "k8sclient/clock.h"
#include "tests/k8sclient/transport/test_certificates.h"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kConnections = 10;
constexpr int kSeconds = 10;
constexpr auto kBetween = 2ms;  // 500 a second.
constexpr auto kMost = 5ms;

// A ConfigMap of three keys; one is wrong.
std::string review() {
  const auto profile = [](int replicas) {
    return fmt::format(
        "version: v1\nflags:\n  migStrategy: none\nsharing:\n  mps:\n    renameByDefault: false\n    resources:\n    - "
        "name: nvidia.com/gpu\n      replicas: {}\n",
        replicas);
  };
  const nlohmann::json object{{"apiVersion", "v1"},
                              {"kind", "ConfigMap"},
                              {"metadata", {{"name", "mps-config"}, {"namespace", "gpu-operator"}}},
                              {"data", {{"any", profile(4)}, {"a100", profile(8)}, {"t4", profile(1)}}}};
  return nlohmann::json{{"apiVersion", "admission.k8s.io/v1"},
                        {"kind", "AdmissionReview"},
                        {"request", {{"uid", "u"}, {"operation", "CREATE"}, {"object", object}}}}
      .dump();
}

struct Load {
  int port = 0;
  std::string body = review();
  Clock::time_point begin;
  std::vector<Clock::duration> took;
  int failed = 0;
  int running = kConnections;
};

// Every kConnections-th request. Latency counts from when the request was due: a late answer delays those behind it.
asio::awaitable<void> ask(Load* load, int first, asio::ssl::context* context) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ssl::stream<Tcp::socket> stream(executor, *context);
  const Tcp::endpoint server(asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(load->port));
  co_await stream.next_layer().async_connect(server, asio::use_awaitable);
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
  boost::beast::flat_buffer buffer;
  asio::steady_timer timer(executor);
  for (int i = first; i * kBetween < std::chrono::seconds(kSeconds); i += kConnections) {
    const Clock::time_point due = load->begin + i * kBetween;
    timer.expires_at(due);
    co_await timer.async_wait(asio::use_awaitable);
    http::request<http::string_body> request(http::verb::post, gso::kAdmissionPath, 11);
    request.set(http::field::host, "webhook");
    request.set(http::field::content_type, "application/json");
    request.body() = load->body;
    request.prepare_payload();
    co_await http::async_write(stream, request, asio::use_awaitable);
    http::response<http::string_body> response;
    co_await http::async_read(stream, buffer, response, asio::use_awaitable);
    load->took.push_back(Clock::now() - due);
    if (response.result_int() != 200 || response.body().find("\"code\":422") == std::string::npos) ++load->failed;
  }
  --load->running;
}

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

int main() {
  asio::io_context io;
  const auto clock = k8s::make_real_clock(io.get_executor());
  const k8s::test::Identity certificate = k8s::test::TestAuthority("authority").issue({.common_name = "webhook"});
  const auto context = gso::make_server_context({certificate.cert_pem, certificate.key_pem, ""});
  if (!context) return 1;
  gso::HttpServerOptions options;
  options.address = "127.0.0.1:0";
  options.tls = [&] { return *context; };
  options.body_limit = gso::kMostAdmissionBytes;
  gso::AdmissionParts parts;
  parts.holds_profiles = [](const k8s::ObjectKey&) { return true; };
  parts.pod_rules = [] { return gso::PodRules(); };
  gso::HttpServer server(io.get_executor(), clock.get(), options, gso::make_admission_handler(std::move(parts)));
  if (!server.listen()) return 1;
  asio::co_spawn(io, server.run(), asio::detached);

  Load load;
  load.port = server.port();
  load.begin = Clock::now() + 1s;
  asio::ssl::context of_clients(asio::ssl::context::tls_client);
  for (int i = 0; i < kConnections; ++i) {
    asio::co_spawn(io, ask(&load, i, &of_clients), [](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
    });
  }
  while (load.running > 0) io.run_one();
  server.stop();
  io.run_for(1s);
  std::ranges::sort(load.took);
  const auto at = [&](double share) {
    return milliseconds(load.took[static_cast<std::size_t>(share * static_cast<double>(load.took.size() - 1))]);
  };
  std::printf("admission: %zu reviews, %d a second, %d connections: p50 %.2f ms, p99 %.2f ms, most %.2f ms\n",
              load.took.size(), static_cast<int>(1s / kBetween), kConnections, at(0.5), at(0.99), at(1));
  if (load.failed > 0) std::printf("admission: %d wrong answers\n", load.failed);
  return load.failed > 0 || at(0.99) >= milliseconds(kMost) ? 1 : 0;
}
