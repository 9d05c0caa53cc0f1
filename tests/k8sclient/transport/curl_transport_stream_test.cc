// Streams (watches): each on its own connection, every way in which one can end, and closing it early.

#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_stream_test {
namespace {

class StreamTest : public TransportTest {
 protected:
  // Opens a stream whose server side is the newest request.
  std::unique_ptr<ByteStream> open_and_answer(const std::string& path) {
    const std::size_t before = peer.requests().size();
    auto pending = start(transport->open(get(path)));
    wait_for_requests(before + 1);
    server = peer.requests().back();
    server->start(200, {{"x-kind", "watch"}});
    auto opened = wait(pending);
    if (!opened) throw std::runtime_error(opened.error().message);
    return *std::move(opened);
  }
  H2ConnectionPtr server_connection() const { return server->connection.lock(); }
  H2StreamPtr server;
};

TEST_F(StreamTest, OpeningReturnsWithTheHeadersAndReadingYieldsBytesAsTheyCome) {
  connect();
  const auto stream = open_and_answer("/watch");
  EXPECT_EQ(stream->status(), 200);
  EXPECT_EQ(stream->header("x-kind"), "watch");
  EXPECT_FALSE(server->headers.contains("accept-encoding"));
  auto pending = start(stream->read(milliseconds(20'000)));
  settle();
  EXPECT_FALSE(pending->has_value());
  server->send("first\n");
  EXPECT_EQ(*wait(pending), "first\n");
  for (const char c : std::string("second\n")) {
    server->send(std::string(1, c));
    EXPECT_EQ(*read(*stream), std::string(1, c));
  }
}

TEST_F(StreamTest, AnErrorStatusIsAnOpenStreamWithABody) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) { stream->respond(410, R"({"reason":"Expired"})"); };
  const auto stream = open("/watch");
  EXPECT_EQ(stream->status(), 410);
  EXPECT_EQ(*read_bytes(*stream, 1000), R"({"reason":"Expired"})");
}

TEST_F(StreamTest, EveryStreamHasAConnectionOfItsOwnAndNoticesItsEndAndUnaryRequestsHaveAnother) {
  connect();
  std::vector<std::unique_ptr<ByteStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(open_and_answer("/watch"));
  peer.on_request = echo;
  EXPECT_TRUE(send(get("/x")));
  EXPECT_TRUE(send(get("/y")));
  EXPECT_EQ(peer.connections().size(), 4U);
  for (const auto& connection : peer.connections()) connection->close_notify();
  for (const auto& stream : streams) EXPECT_FAILS(read(*stream), Reason::transport, "");
}

TEST_F(StreamTest, AGracefulGoawayLeavesTheStreamRunning) {
  connect();
  const auto stream = open_and_answer("/watch");
  server_connection()->goaway(server_connection()->last_stream());
  settle();
  server->send("still here\n");
  EXPECT_EQ(*read_bytes(*stream, 11), "still here\n");
  const auto next = open_and_answer("/watch");
  EXPECT_EQ(peer.connections().size(), 2U);
}

struct End {
  const char* name;
  void (*happen)(H2Stream&);
  bool clean = false;
};
class EndTest : public StreamTest, public testing::WithParamInterface<End> {};

TEST_P(EndTest, AnEndYieldsAllBytesBeforeItAndIsReportedOnceAsAnErrorIfItIsABreak) {
  connect();
  const auto stream = open_and_answer("/watch");
  server->send("whole\nhal");
  GetParam().happen(*server);
  EXPECT_EQ(*read_bytes(*stream, 9), "whole\nhal");
  const auto end = read(*stream);
  if (GetParam().clean)
    EXPECT_EQ(end.value(), "");
  else
    EXPECT_FAILS(end, Reason::transport, "GET /watch on 127.0.0.1:");
  EXPECT_FAILS(read(*stream), Reason::transport, "has ended");
}

INSTANTIATE_TEST_SUITE_P(Ends, EndTest,
                         testing::Values(End{"EndStream", [](H2Stream& s) { s.end(); }, true},
                                         End{"ResetNoError", [](H2Stream& s) { s.reset(0); }, true},
                                         End{"ResetWithAnError", [](H2Stream& s) { s.reset(2); }},
                                         End{"Fin", [](H2Stream& s) { s.connection.lock()->close_fin(); }},
                                         End{"CloseNotifyWithTcpLeftOpen",
                                             [](H2Stream& s) { s.connection.lock()->close_notify(); }}),
                         [](const auto& instance) { return instance.param.name; });

TEST_F(StreamTest, ATcpResetIsAnErrorWhateverItTookAlong) {
  connect();
  const auto stream = open_and_answer("/watch");
  server->send("whole\nhal");
  EXPECT_EQ(*read_bytes(*stream, 9), "whole\nhal");
  server_connection()->close_rst();
  EXPECT_FAILS(read(*stream), Reason::transport, "connection broke");
}

TEST_F(StreamTest, SilenceIsATimeoutAndEndsTheStream) {
  connect();
  const auto stream = open_and_answer("/watch");
  server->send("first\n");
  EXPECT_EQ(*read_bytes(*stream, 6), "first\n");
  server_connection()->freeze();
  EXPECT_FAILS(read(*stream, milliseconds(30)), Reason::timeout, "no bytes for 30ms");
  EXPECT_FAILS(read(*stream, milliseconds(30)), Reason::transport, "has ended");
}

TEST_F(StreamTest, OpeningFailsWhenNoHeadersCome) {
  connect();
  EXPECT_FAILS(run(transport->open(get("/watch", milliseconds(50)))), Reason::timeout, "within 50ms");
  const std::size_t before = peer.requests().size();
  auto pending = start(transport->open(get("/watch")));
  run_until([&] { return peer.requests().size() > before && peer.requests().back()->connection.lock()->open(); });
  peer.requests().back()->connection.lock()->close_rst();
  EXPECT_FAILS(wait(pending), Reason::transport, "/watch");
}

TEST_F(StreamTest, AReaderThatFallsTooFarBehindLosesItsStreamAndNobodyElse) {
  connect(connection_to(peer.url()), {.max_unread_stream_bytes = 100'000});
  const auto slow = open_and_answer("/slow");
  const H2StreamPtr slow_server = server;
  const auto other = open_and_answer("/other");
  slow_server->send(std::string(150'000, 'x'));
  run_until([&] { return slow_server->closed() || !slow_server->connection.lock()->open(); });
  EXPECT_FAILS(read_bytes(*slow, 150'000), Reason::decode, "too much unread data");
  server->send("fine\n");
  EXPECT_EQ(*read_bytes(*other, 5), "fine\n");
}

TEST_F(StreamTest, ALargeBurstIsReadWhole) {
  connect();
  const auto stream = open_and_answer("/watch");
  const std::string burst(8U << 20U, 'x');
  server->send(burst);
  EXPECT_EQ(read_bytes(*stream, burst.size()).value_or("").size(), burst.size());
}

TEST_F(StreamTest, ClosingAStreamEndsItsPendingReadAsCancelled) {
  connect();
  auto stream = open_and_answer("/watch");
  auto pending = start(stream->read(milliseconds(20'000)));
  settle();
  stream.reset();
  EXPECT_FAILS(wait(pending), Reason::cancelled, "closed");
}

TEST_F(StreamTest, AStreamOutlivesItsTransportAsCancelled) {
  connect();
  const auto stream = open_and_answer("/watch");
  auto opening = start(transport->open(get("/second")));
  wait_for_requests(2);
  auto pending = start(stream->read(milliseconds(20'000)));
  settle();
  transport.reset();
  EXPECT_FAILS(wait(pending), Reason::cancelled, "transport is closed");
  EXPECT_FAILS(wait(opening), Reason::cancelled, "transport is closed");
  EXPECT_FAILS(read(*stream), Reason::transport, "has ended");
}

TEST_F(StreamTest, A401IsTriedAgainWithAFreshToken) {
  const auto credentials = std::make_shared<FakeCredentials>();
  connect(credentials);
  peer.on_request = [](const H2StreamPtr& stream) {
    stream->respond(stream->headers.at("authorization") == "Bearer token-2" ? 200 : 401, "x");
  };
  EXPECT_EQ(open("/watch")->status(), 200);
  credentials->current = credentials->next = "revoked";
  EXPECT_EQ(open("/watch")->status(), 401);
}

TEST_F(StreamTest, HundredsOfStreamsOneAfterTheOtherLeaveNoConnectionBehind) {
  connect();
  for (int i = 0; i < 300; ++i) {
    auto stream = open_and_answer("/watch");
    const auto connection = server_connection();
    server->send("x");
    EXPECT_EQ(*read(*stream), "x");
    stream.reset();
    run_until([&] { return !connection->open(); });
    peer.forget_history();
  }
  EXPECT_EQ(stats->connections_opened, 300U);
}

TEST_F(StreamTest, OverPlainHttpAStreamIsReadInChunks) {
  TcpServer server_http(io, [](TcpConnection& from) {
    if (take_request_head(from).empty()) return;
    from.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
  });
  connect(connection_to(local("http", server_http.port())));
  const auto stream = open("/watch");
  EXPECT_EQ(*read_bytes(*stream, 5), "first");
  server_http.connections()[0]->write("6\r\nsecond\r\n0\r\n\r\n");
  EXPECT_EQ(*read_bytes(*stream, 6), "second");
  EXPECT_EQ(*read(*stream), "");
}

}  // namespace
}  // namespace k8s::test::curl_transport_stream_test
