// Unary requests: sharing a connection, the line before it, limits and credentials.
#include <gmock/gmock.h>

#include <algorithm>
#include <string_view>

#include "tests/k8sclient/transport/scripted_tcp.h"
#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_unary_test {
namespace {

class UnaryTest : public TransportTest {
 protected:
  // Answers every request with its own path.
  void echo() {
    peer.on_request([](const H2StreamPtr& stream) { stream->respond(200, stream->path); });
  }
};

TEST_F(UnaryTest, ARequestArrivesAsGivenAndItsAnswerComesBackWhole) {
  peer.on_request([](const H2StreamPtr& stream) {
    stream->respond(201, R"({"kind":"Status"})", {{"x-kubernetes-pf-flowschema-uid", "abc"}, {"retry-after", "3"}});
  });
  auto connection = connection_to(peer.url() + "/prefix/");
  connection.credentials = std::make_shared<FakeCredentials>();
  connect(connection);
  HttpRequest request = write(Method::patch, "/api/v1/nodes/a?fieldManager=x%20y", R"({"a":1})");
  request.content_type = "application/merge-patch+json";
  auto response = send(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, R"({"kind":"Status"})");
  EXPECT_EQ(response->header("retry-after"), "3");
  EXPECT_EQ(response->header("absent"), "");
  const H2Stream& seen = *peer.requests().at(0);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.path, "/prefix/api/v1/nodes/a?fieldManager=x%20y");
  EXPECT_EQ(seen.body, R"({"a":1})");
  EXPECT_EQ(seen.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(seen.headers.at("accept"), "application/json");
  EXPECT_EQ(seen.headers.at("accept-encoding"), "gzip");
  EXPECT_EQ(seen.headers.at("user-agent"), "transport-tests");
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer token-1");
  EXPECT_EQ(seen.headers.at(":authority"), "127.0.0.1:" + std::to_string(peer.port()));
}

TEST_F(UnaryTest, EveryMethodTravelsWithAndWithoutABody) {
  echo();
  connect();
  for (const Method method : {Method::get, Method::post, Method::put, Method::patch, Method::del}) {
    for (const std::string& body : {std::string(), std::string("{}"), std::string("a\0b", 3)}) {
      if (method == Method::get && !body.empty()) continue;
      auto response = send(write(method, "/x", body));
      ASSERT_TRUE(response) << response.error().message;
      EXPECT_EQ(peer.requests().back()->method, to_string(method));
      EXPECT_EQ(peer.requests().back()->body, body);
    }
  }
}

TEST_F(UnaryTest, SevenRequestsAtOnceShareOneConnection) {
  echo();
  connect();
  std::vector<Pending<Response>> pending;
  for (int i = 0; i < 7; ++i) pending.push_back(start(transport->send(get("/" + std::to_string(i)))));
  for (int i = 0; i < 7; ++i) {
    auto response = wait(pending[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "/" + std::to_string(i));
  }
  EXPECT_EQ(peer.connections().size(), 1U);
  EXPECT_EQ(stats->connections_opened, 1U);
}

TEST_F(UnaryTest, TheLeaseHasAConnectionOfItsOwn) {
  peer.on_request([](const H2StreamPtr& stream) {
    if (stream->path == "/lease") stream->respond(200, "renewed");
  });
  connect(connection_to(peer.url()));
  std::vector<Pending<Response>> stuck;
  for (int i = 0; i < 5; ++i) stuck.push_back(start(transport->send(get("/stuck"))));
  HttpRequest renew = write(Method::put, "/lease", "{}");
  renew.channel = Channel::lease;
  auto response = send(renew);
  ASSERT_TRUE(response) << response.error().message;
  run_until([&] { return peer.requests().size() == 6; });
  EXPECT_EQ(peer.connections().size(), 2U);
}

TEST_F(UnaryTest, AServerWithFewStreamsAConnectionIsStillServed) {
  H2Peer small(io, {.identity = peer_identity(), .client_ca_pem = {}, .max_streams = 2});
  small.on_request([](const H2StreamPtr& stream) { stream->respond(200, stream->path); });
  connect(connection_to(small.url()));
  std::vector<Pending<Response>> pending;
  for (int i = 0; i < 5; ++i) pending.push_back(start(transport->send(get("/" + std::to_string(i)))));
  for (auto& one : pending) EXPECT_TRUE(wait(one));
}

TEST_F(UnaryTest, LargeBodiesTravelBothWaysAtOnce) {
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200, stream->body); });
  connect();
  std::vector<Pending<Response>> pending;
  const auto body_of = [](int i) { return std::string(3U << 20U, static_cast<char>('a' + i)); };
  for (int i = 0; i < 6; ++i) pending.push_back(start(transport->send(write(Method::put, "/x", body_of(i)))));
  for (int i = 0; i < 6; ++i) {
    auto response = wait(pending[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_TRUE(response->body == body_of(i)) << "body " << i << " has " << response->body.size() << " bytes";
  }
  EXPECT_EQ(peer.connections().size(), 1U);
}

TEST_F(UnaryTest, APackedAnswerIsUnpackedAndItsLimitCountsUnpackedBytes) {
  // gzip of 5000 times 'x'.
  static constexpr char kBytes[] =
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xda\x8b\x6f\x0a\x3f\xa0\x00"
      "\x00\x00\x00\x80\xb7\x01\x26\xf0\xdb\x00\x88\x13\x00\x00";
  static constexpr std::string_view kPacked(kBytes, sizeof kBytes - 1);
  peer.on_request(
      [](const H2StreamPtr& stream) { stream->respond(200, std::string(kPacked), {{"content-encoding", "gzip"}}); });
  connect();
  auto response = send(get("/x"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, std::string(5000, 'x'));
  connect(connection_to(peer.url()), {.max_body_bytes = 4999});
  EXPECT_FAILS(send(get("/x")), Reason::too_large, "larger than 4999 bytes");
}

TEST_F(UnaryTest, InterimAnswersAreNotTheAnswer) {
  TcpServer server(io, [](const TcpConnectionPtr& client) {
    client->on_data = [](TcpConnection& from) {
      if (take_request_head(from).empty()) return;
      from.write("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    };
  });
  connect(connection_to("http://127.0.0.1:" + std::to_string(server.port())));
  auto response = send(get("/x"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->header("link"), "");
}

TEST_F(UnaryTest, ABodyThatDripsInByteByByteArrivesWhole) {
  const std::string text(300, 'x');
  connect();
  auto pending = start(transport->send(get("/drip")));
  run_until([&] { return peer.requests().size() == 1; });
  peer.requests()[0]->start(200);
  for (const char c : text) {
    peer.requests()[0]->send(std::string(1, c));
    settle();
  }
  peer.requests()[0]->end();
  auto response = wait(pending);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, text);
}

TEST_F(UnaryTest, TooLargeAnAnswerIsRefusedAndTheNextOneComes) {
  connect(connection_to(peer.url()), {.max_header_bytes = 4096, .max_body_bytes = 1000});
  peer.on_request([](const H2StreamPtr& stream) {
    if (stream->path == "/body") stream->respond(200, std::string(1001, 'x'));
    if (stream->path == "/headers") stream->respond(200, "", {{"x-long", std::string(5000, 'x')}});
    if (stream->path == "/fits") stream->respond(200, std::string(1000, 'x'));
  });
  EXPECT_FAILS(send(get("/body")), Reason::too_large, "larger than 1000 bytes");
  EXPECT_FAILS(send(get("/headers")), Reason::decode, "headers are larger than 4096 bytes");
  EXPECT_TRUE(send(get("/fits")));
}

TEST_F(UnaryTest, A401ReadsTheTokenAgainOnceAndOnlyOnce) {
  auto credentials = std::make_shared<FakeCredentials>();
  auto connection = connection_to(peer.url());
  connection.credentials = credentials;
  connect(connection);
  peer.on_request([](const H2StreamPtr& stream) {
    stream->respond(stream->headers.at("authorization") == "Bearer token-2" ? 200 : 401, stream->body);
  });
  auto response = send(write(Method::post, "/x", "again"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "again");
  EXPECT_EQ(credentials->invalidated, 1);
  EXPECT_EQ(stats->retries, 1U);

  credentials->current = credentials->next = "token-3";  // Revoked for good.
  response = send(get("/y"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 401);
  EXPECT_EQ(peer.requests().size(), 4U);
}

TEST_F(UnaryTest, ManyRequestsRefusedAtOnceInvalidateTheTokenOnce) {
  auto credentials = std::make_shared<FakeCredentials>();
  auto connection = connection_to(peer.url());
  connection.credentials = credentials;
  connect(connection);
  std::vector<Pending<Response>> pending;
  for (int i = 0; i < 8; ++i) pending.push_back(start(transport->send(get("/x"))));
  run_until([&] { return peer.requests().size() == 8; });
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200); });
  for (int i = 0; i < 8; ++i) peer.requests()[static_cast<std::size_t>(i)]->respond(401);
  for (auto& one : pending) EXPECT_EQ(wait(one)->status, 200);
  EXPECT_EQ(credentials->invalidated, 1);
}

TEST_F(UnaryTest, HeadersOfTheConnectionGoWithEveryRequest) {
  auto connection = connection_to(peer.url());
  connection.headers = {{"Impersonate-User", "jane"}, {"Impersonate-Extra-reason", ""}};
  connect(std::move(connection));
  echo();
  for (const Method method : {Method::get, Method::patch}) {
    ASSERT_TRUE(send(write(method, "/x", method == Method::get ? "" : "{}")));
    EXPECT_EQ(peer.requests().back()->headers.at("impersonate-user"), "jane");
    EXPECT_EQ(peer.requests().back()->headers.at("impersonate-extra-reason"), "");
  }
}

TEST_F(UnaryTest, WithoutCredentialsA401IsReturnedAsItIs) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(401, "no"); });
  auto response = send(get("/x"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 401);
  EXPECT_EQ(peer.requests().size(), 1U);
  EXPECT_FALSE(peer.requests()[0]->headers.contains("authorization"));
}

TEST_F(UnaryTest, ACredentialThatFailsOrHasALineBreakSendsNothing) {
  auto credentials = std::make_shared<FakeCredentials>();
  auto connection = connection_to(peer.url());
  connection.credentials = credentials;
  connect(connection);
  credentials->current = fail(Reason::unauthorized, "exec plugin 'aws' exited with 255");
  EXPECT_FAILS(send(get("/x")), Reason::unauthorized, "exited with 255");
  credentials->current = std::string("secret\r\nX-Injected: 1");
  const auto refused = send(get("/x"));
  EXPECT_FAILS(refused, Reason::invalid, "line break");
  EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  EXPECT_TRUE(peer.requests().empty());
}

// Never has a token: what waits for it ends with the caller's deadline.
class StuckCredentials final : public CredentialSource {
 public:
  explicit StuckCredentials(Clock* clock) : never_(clock->make_signal()) {}
  boost::asio::awaitable<Result<std::string>> token(MonoTime deadline) override {
    co_await never_->wait_until(deadline);
    co_return fail(Reason::timeout, "credential plugin aws is still running");
  }
  void invalidate() override {}

 private:
  std::unique_ptr<Signal> never_;
};

TEST_F(UnaryTest, ACredentialThatDoesNotComeCostsNoMoreThanTheRequestsOwnDeadline) {
  auto connection = connection_to(peer.url());
  connection.credentials = std::make_shared<StuckCredentials>(clock.get());
  connect(connection);
  for (const Channel channel : {Channel::unary, Channel::lease}) {
    HttpRequest request = get("/x", milliseconds(5));
    request.channel = channel;
    const auto overdue = send(request);
    EXPECT_FAILS(overdue, Reason::timeout, "GET /x on 127.0.0.1:");
    EXPECT_FAILS(overdue, Reason::timeout, "no credential within 5ms: credential plugin aws is still running");
    EXPECT_TRUE(overdue.error().never_sent);
  }
}

TEST_F(UnaryTest, A429PassesThroughWithItsHeader) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(429, "{}", {{"Retry-After", "7"}}); });
  auto response = send(get("/x"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 429);
  EXPECT_EQ(response->header("retry-after"), "7");
}

TEST_F(UnaryTest, ARedirectIsNotFollowed) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(302, "", {{"location", "https://127.0.0.1:1/"}}); });
  auto response = send(get("/x"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(peer.requests().size(), 1U);
}

TEST_F(UnaryTest, APathThatIsNotEncodedIsRefusedBeforeItIsSent) {
  connect();
  EXPECT_FAILS(send(get("/a b")), Reason::invalid, "percent-encoded");
  EXPECT_FAILS(send(get("api")), Reason::invalid, "begin with /");
  EXPECT_FAILS(send(get("/a\r\nHost: evil")), Reason::invalid, "percent-encoded");
}

}  // namespace
}  // namespace k8s::test::curl_transport_unary_test
