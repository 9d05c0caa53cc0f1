// Unary requests: sharing a connection, the line before it, limits and credentials.

#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_unary_test {
namespace {

class UnaryTest : public TransportTest {};

TEST_F(UnaryTest, ARequestArrivesAsGivenAndItsAnswerComesBackWhole) {
  peer.on_request = [](const H2StreamPtr& stream) {
    stream->respond(201, R"({"kind":"Status"})", {{"x-kubernetes-pf-flowschema-uid", "abc"}, {"retry-after", "3"}});
  };
  auto connection = connection_to(peer.url() + "/prefix/");
  connection.credentials = std::make_shared<FakeCredentials>();
  connect(connection);
  HttpRequest request = write(Method::patch, "/api/v1/nodes/a?fieldManager=x%20y", R"({"a":1})");
  request.content_type = "application/merge-patch+json";
  const HttpResponse response = answer_to(request);
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, R"({"kind":"Status"})");
  EXPECT_EQ(response.header("retry-after"), "3");
  EXPECT_EQ(response.header("absent"), "");
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

TEST_F(UnaryTest, EveryMethodTravelsWithAndWithoutABodyAndWithTheHeadersOfTheConnection) {
  peer.on_request = echo;
  auto connection = connection_to(peer.url());
  connection.headers = {{"Impersonate-User", "jane"}, {"Impersonate-Extra-reason", ""}};
  connect(std::move(connection));
  for (const Method method : {Method::get, Method::post, Method::put, Method::patch, Method::del}) {
    for (const std::string& body : {std::string(), std::string("{}"), std::string("a\0b", 3)}) {
      if (method == Method::get && !body.empty()) continue;
      answer_to(write(method, "/x", body));
      const H2Stream& seen = *peer.requests().back();
      EXPECT_EQ(seen.method, to_string(method));
      EXPECT_EQ(seen.body, body);
      EXPECT_EQ(seen.headers.at("impersonate-user"), "jane");
      EXPECT_EQ(seen.headers.at("impersonate-extra-reason"), "");
    }
  }
}

TEST_F(UnaryTest, TheLeaseHasAConnectionOfItsOwn) {
  peer.on_request = [](const H2StreamPtr& stream) {
    if (stream->path == "/lease") stream->respond(200, "renewed");
  };
  connect();
  const auto stuck = start_many(5, get("/stuck"));
  HttpRequest renew = write(Method::put, "/lease", "{}");
  renew.channel = Channel::lease;
  answer_to(renew);
  wait_for_requests(6);
  EXPECT_EQ(peer.connections().size(), 2U);
}

TEST_F(UnaryTest, AServerWithFewStreamsAConnectionIsStillServed) {
  H2Peer small(io, {.identity = peer_identity(), .max_streams = 2});
  small.on_request = echo;
  connect(connection_to(small.url()));
  for (auto& one : start_many(5, get("/x"))) EXPECT_TRUE(wait(one));
}

TEST_F(UnaryTest, LargeBodiesTravelBothWaysAtOnceOnOneConnection) {
  peer.on_request = [](const H2StreamPtr& stream) { stream->respond(200, stream->body); };
  connect();
  std::vector<Pending<Response>> pending;
  const auto body_of = [](int i) { return std::string(3U << 20U, static_cast<char>('a' + i)); };
  for (int i = 0; i < 6; ++i) pending.push_back(start(transport->send(write(Method::put, "/x", body_of(i)))));
  for (int i = 0; i < 6; ++i) {
    const std::string body = answer_of(wait(pending[static_cast<std::size_t>(i)])).body;
    EXPECT_TRUE(body == body_of(i)) << "body " << i << " has " << body.size() << " bytes";
  }
  EXPECT_EQ(peer.connections().size(), 1U);
}

TEST_F(UnaryTest, APackedAnswerIsUnpackedAndItsLimitCountsUnpackedBytes) {
  // gzip of 5000 times 'x'.
  static constexpr char kBytes[] =
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xda\x8b\x6f\x0a\x3f\xa0\x00"
      "\x00\x00\x00\x80\xb7\x01\x26\xf0\xdb\x00\x88\x13\x00\x00";
  peer.on_request = [](const H2StreamPtr& stream) {
    stream->respond(200, std::string(kBytes, sizeof kBytes - 1), {{"content-encoding", "gzip"}});
  };
  connect();
  EXPECT_EQ(answer_to(get("/x")).body, std::string(5000, 'x'));
  connect(connection_to(peer.url()), {.max_body_bytes = 4999});
  EXPECT_FAILS(send(get("/x")), Reason::too_large, "larger than 4999 bytes");
}

TEST_F(UnaryTest, InterimAnswersAreNotTheAnswer) {
  TcpServer server(io, [](TcpConnection& from) {
    if (take_request_head(from).empty()) return;
    from.write("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  });
  connect(connection_to(local("http", server.port())));
  const HttpResponse response = answer_to(get("/x"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("link"), "");
}

TEST_F(UnaryTest, ABodyThatDripsInByteByByteArrivesWhole) {
  const std::string text(300, 'x');
  connect();
  auto pending = start(transport->send(get("/drip")));
  wait_for_requests(1);
  peer.requests()[0]->start(200);
  for (const char c : text) {
    peer.requests()[0]->send(std::string(1, c));
    settle();
  }
  peer.requests()[0]->end();
  EXPECT_EQ(answer_of(wait(pending)).body, text);
}

TEST_F(UnaryTest, TooLargeAnAnswerIsRefusedAndTheNextOneComes) {
  connect(connection_to(peer.url()), {.max_header_bytes = 4096, .max_body_bytes = 1000});
  peer.on_request = [](const H2StreamPtr& stream) {
    if (stream->path == "/body") stream->respond(200, std::string(1001, 'x'));
    if (stream->path == "/headers") stream->respond(200, "", {{"x-long", std::string(5000, 'x')}});
    if (stream->path == "/fits") stream->respond(200, std::string(1000, 'x'));
  };
  EXPECT_FAILS(send(get("/body")), Reason::too_large, "larger than 1000 bytes");
  EXPECT_FAILS(send(get("/headers")), Reason::decode, "headers are larger than 4096 bytes");
  EXPECT_TRUE(send(get("/fits")));
}

TEST_F(UnaryTest, A401ReadsTheTokenAgainOnceAndOnlyOnce) {
  const auto credentials = std::make_shared<FakeCredentials>();
  connect(credentials);
  peer.on_request = [](const H2StreamPtr& stream) {
    stream->respond(stream->headers.at("authorization") == "Bearer token-2" ? 200 : 401, stream->body);
  };
  const HttpResponse response = answer_to(write(Method::post, "/x", "again"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "again");
  EXPECT_EQ(credentials->invalidated, 1);
  EXPECT_EQ(stats->retries, 1U);

  credentials->current = credentials->next = "token-3";  // Revoked for good.
  EXPECT_EQ(answer_to(get("/y")).status, 401);
  EXPECT_EQ(peer.requests().size(), 4U);
}

TEST_F(UnaryTest, ManyRequestsRefusedAtOnceInvalidateTheTokenOnce) {
  const auto credentials = std::make_shared<FakeCredentials>();
  connect(credentials);
  auto pending = start_many(8, get("/x"));
  wait_for_requests(8);
  peer.on_request = echo;
  for (std::size_t i = 0; i < 8; ++i) peer.requests()[i]->respond(401);
  for (auto& one : pending) EXPECT_EQ(wait(one)->status, 200);
  EXPECT_EQ(credentials->invalidated, 1);
}

TEST_F(UnaryTest, AnswersThatNothingIsToBeDoneAboutAreReturnedAsTheyAre) {
  connect();
  const std::pair<int, H2Stream::Headers> answers[] = {
      {401, {}},  // Without credentials.
      {429, {{"Retry-After", "7"}}},
      {302, {{"location", "https://127.0.0.1:1/"}}},
  };
  for (const auto& [status, headers] : answers) {
    SCOPED_TRACE(status);
    peer.forget_history();
    peer.on_request = [&](const H2StreamPtr& stream) { stream->respond(status, "no", headers); };
    const HttpResponse response = answer_to(get("/x"));
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.header("retry-after"), status == 429 ? "7" : "");
    EXPECT_EQ(peer.requests().size(), 1U);
    EXPECT_FALSE(peer.requests()[0]->headers.contains("authorization"));
  }
}

TEST_F(UnaryTest, ACredentialThatFailsOrHasALineBreakSendsNothing) {
  const auto credentials = std::make_shared<FakeCredentials>();
  connect(credentials);
  credentials->current = fail(Reason::unauthorized, "exec plugin 'aws' exited with 255");
  EXPECT_FAILS(send(get("/x")), Reason::unauthorized, "exited with 255");
  credentials->current = std::string("secret\r\nX-Injected: 1");
  const auto refused = send(get("/x"));
  EXPECT_FAILS(refused, Reason::invalid, "line break");
  EXPECT_FALSE(refused.error().message.contains("secret"));
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
  connect(std::make_shared<StuckCredentials>(clock.get()));
  for (const Channel channel : {Channel::unary, Channel::lease}) {
    HttpRequest request = get("/x", milliseconds(5));
    request.channel = channel;
    const auto overdue = send(request);
    EXPECT_FAILS(overdue, Reason::timeout, "GET /x on 127.0.0.1:");
    EXPECT_FAILS(overdue, Reason::timeout, "no credential within 5ms: credential plugin aws is still running");
    EXPECT_TRUE(overdue.error().never_sent);
  }
}

TEST_F(UnaryTest, APathThatIsNotEncodedIsRefusedBeforeItIsSent) {
  connect();
  EXPECT_FAILS(send(get("/a b")), Reason::invalid, "percent-encoded");
  EXPECT_FAILS(send(get("api")), Reason::invalid, "begin with /");
  EXPECT_FAILS(send(get("/a\r\nHost: evil")), Reason::invalid, "percent-encoded");
}

}  // namespace
}  // namespace k8s::test::curl_transport_unary_test
