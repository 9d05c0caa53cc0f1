// The simulated API server over loopback HTTP/1.1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "tests/sim/apiserver/http_frontend.h"
#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test_http {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;
using testing::StartsWith;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

// A client of few manners: writes a text, collects what comes until it has `enough` or the connection ends.
struct Client {
  asio::ip::tcp::socket socket;
  std::string received;
  bool closed = false;
};

asio::awaitable<void> converse(std::shared_ptr<Client> client, std::uint16_t port, std::string text) {
  auto [connect_error] = co_await client->socket.async_connect({asio::ip::address_v4::loopback(), port}, kAsTuple);
  if (connect_error) co_return;
  auto [write_error, written] = co_await asio::async_write(client->socket, asio::buffer(text), kAsTuple);
  (void)written;
  if (write_error) co_return;
  std::array<char, 4096> bytes{};
  for (;;) {
    auto [error, size] = co_await client->socket.async_read_some(asio::buffer(bytes), kAsTuple);
    if (error) break;
    client->received.append(bytes.data(), size);
  }
  client->closed = true;
}

struct Http : testing::Test {
  asio::io_context io{1};
  std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  ApiServer server{io.get_executor(), *clock};
  HttpFrontend frontend{io.get_executor(), server};

  std::shared_ptr<Client> start(std::string text) {
    auto client = std::make_shared<Client>(Client{asio::ip::tcp::socket(io), "", false});
    asio::co_spawn(io, converse(client, frontend.port(), std::move(text)), asio::detached);
    return client;
  }
  // Runs until the condition holds; a broken server is ended by the test's time limit.
  template <class Condition>
  void run_until(Condition condition) {
    while (!condition()) io.run_one();
  }
  std::string exchange(std::string text) {
    auto client = start(std::move(text));
    run_until([&] { return client->closed; });
    return client->received;
  }
};

TEST_F(Http, answers_requests_on_a_connection_that_stays_open) {
  const std::string twice = exchange(
      "POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "25\r\n\r\n{\"metadata\":{\"name\":\"n\"}}"
      "GET /api/v1/nodes/n HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(twice, StartsWith("HTTP/1.1 201 Created"));
  EXPECT_THAT(twice, HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(exchange("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), HasSubstr("\r\n\r\nok"));
}

TEST_F(Http, takes_the_bearer_token_for_the_user) {
  std::string user;
  server.add_audit_listener([&](const AuditEntry& e) { user = e.user + " " + e.user_agent; });
  (void)exchange(
      "DELETE /api/v1/nodes/n HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bob\r\nUser-Agent: t/1\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_EQ(user, "bob t/1");
}

TEST_F(Http, streams_watches_in_chunks_and_notices_when_the_client_goes) {
  auto client = start("GET /api/v1/nodes?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  run_until([&] { return client->received.find("\r\n\r\n") != std::string::npos; });
  EXPECT_THAT(client->received, HasSubstr("Transfer-Encoding: chunked"));
  k8s::HttpRequest create;
  create.method = k8s::Method::post;
  create.path = "/api/v1/nodes";
  create.content_type = "application/json";
  create.body = R"({"metadata":{"name":"n"}})";
  EXPECT_EQ(server.handle(create, {}).status, 201);
  run_until([&] { return client->received.find("ADDED") != std::string::npos; });
  EXPECT_EQ(server.open_watches(), 1U);
  client->socket.close();
  run_until([&] { return server.open_watches() == 0; });
}

TEST_F(Http, a_watch_ends_with_its_time) {
  const std::string all =
      exchange("GET /api/v1/nodes?watch=1&resourceVersion=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(all, testing::EndsWith("0\r\n\r\n"));
}

TEST_F(Http, stopping_closes_what_is_open) {
  auto client = start("GET /api/v1/nodes?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  run_until([&] { return !client->received.empty(); });
  frontend.stop();
  run_until([&] { return client->closed; });
}

}  // namespace
}  // namespace gso::sim::apiserver_test_http
