// Unary requests when something breaks: GOAWAY, resets, stalls, a transport or an io_context that goes away, and what
// thousands of requests leave behind.
#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <filesystem>

#include "tests/k8sclient/transport/scripted_tcp.h"
#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_break_test {
namespace {

class BrokenUnaryTest : public TransportTest {
 protected:
  // Answers every request with its own path.
  void echo() {
    peer.on_request([](const H2StreamPtr& stream) { stream->respond(200, stream->path); });
  }
  int accepted_ = 0;
};

TEST_F(BrokenUnaryTest, AfterAGracefulGoawayTheNextRequestOpensAConnection) {
  echo();
  connect();
  ASSERT_TRUE(send(get("/a")));
  peer.connections()[0]->goaway(peer.connections()[0]->last_stream());
  settle();
  ASSERT_TRUE(send(get("/b")));
  EXPECT_EQ(peer.connections().size(), 2U);
}

TEST_F(BrokenUnaryTest, AReadRefusedByGoawayIsSentAgainOnANewConnection) {
  connect();
  peer.on_request([this](const H2StreamPtr& stream) {
    if (stream->path == "/b" && peer.connections().size() == 1)
      stream->connection.lock()->goaway(stream->id - 2);
    else
      stream->respond(200, stream->path);
  });
  ASSERT_TRUE(send(get("/a")));
  auto response = send(get("/b"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "/b");
  EXPECT_EQ(peer.connections().size(), 2U);
}

TEST_F(BrokenUnaryTest, AReadRefusedByGoawayBesideAnotherStreamIsSentAgainToo) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) {
    if (stream->path == "/refused" && stream->id > 1)
      stream->connection.lock()->goaway(1);
    else if (stream->path == "/refused")
      stream->respond(200, "second connection");
  });
  auto served = start(transport->send(get("/served")));
  run_until([&] { return peer.requests().size() == 1; });
  auto response = send(get("/refused"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "second connection");
  peer.requests()[0]->respond(200, "first connection");
  auto other = wait(served);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->body, "first connection");
}

TEST_F(BrokenUnaryTest, AReadWhoseKeptConnectionIsResetIsSentAgainOnceOnly) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) {
    if (stream->path == "/a") return stream->respond(200);
    stream->connection.lock()->close_rst();
  });
  ASSERT_TRUE(send(get("/a")));
  EXPECT_FAILS(send(get("/b")), Reason::transport, "");
  EXPECT_EQ(peer.requests().size(), 3U);
}

TEST_F(BrokenUnaryTest, ManyRequestsToAnAddressWithNobodyBehindItAllFailAtOnce) {
  peer.stop_listening();
  connect();
  std::vector<Pending<Response>> pending;
  for (int i = 0; i < 20; ++i) pending.push_back(start(transport->send(get("/x"))));
  for (auto& one : pending) EXPECT_FAILS(wait(one), Reason::transport, "Connection refused");
}

TEST_F(BrokenUnaryTest, AResetAfterTheRequestOnAFirstConnectionIsAnError) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) { stream->connection.lock()->close_rst(); });
  EXPECT_FAILS(send(write(Method::post, "/x", "{}")), Reason::transport, "POST /x on 127.0.0.1:");
  EXPECT_EQ(peer.requests().size(), 1U);
}

// RFC 9113, 8.1: a server that needs no more of the request answers, and then resets the stream.
TEST_F(BrokenUnaryTest, AWholeAnswerHoldsWhateverResetsItsStreamAfterwardsAndHalfAnAnswerDoesNot) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) {
    stream->start(415, {{"content-length", stream->headers[":path"] == "/whole" ? "7" : "8"}});
    stream->send("refused");
    stream->reset(8);  // CANCEL
  });
  const auto whole = send(write(Method::post, "/whole", "{}"));
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(whole->status, 415);
  EXPECT_EQ(whole->body, "refused");
  EXPECT_FAILS(send(write(Method::post, "/half", "{}")), Reason::transport, "broke off the HTTP/2 stream");
}

// As the API server does with a body beyond its 3 MiB.
TEST_F(BrokenUnaryTest, ARefusalInTheMiddleOfTheRequestsBodyIsReadAndItsConnectionServesOn) {
  connect();
  peer.on_headers([](const H2StreamPtr& stream) { stream->refuse(413, "too large"); });
  const auto refused = send(write(Method::post, "/large", std::string(3'200'000, 'x')));
  ASSERT_TRUE(refused.has_value()) << refused.error().message;
  EXPECT_EQ(refused->status, 413);
  EXPECT_EQ(refused->body, "too large");
  EXPECT_EQ(stats->retries, 0U);
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200); });
  EXPECT_TRUE(send(get("/small")).has_value());
  EXPECT_EQ(peer.connections().size(), 1U);
}

TEST_F(BrokenUnaryTest, AnAnswerCutOffInTheMiddleIsAnError) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) {
    stream->start(200, {{"content-length", "100"}});
    stream->send(R"({"kind":)");
    stream->connection.lock()->close_fin();
  });
  EXPECT_FAILS(send(get("/x")), Reason::transport, "connection broke");
}

TEST_F(BrokenUnaryTest, AStalledServerIsATimeoutAndTheNextRequestDoesNotTrustItsConnection) {
  connect();
  peer.on_request([](const H2StreamPtr& stream) {
    if (stream->path == "/stall")
      stream->connection.lock()->freeze();  // As a peer behind a dead load balancer.
    else
      stream->respond(200);
  });
  ASSERT_TRUE(send(get("/warm-up")));
  const auto unanswered = send(get("/stall", milliseconds(100)));
  EXPECT_FAILS(unanswered, Reason::timeout, "no answer within 100ms");
  EXPECT_FALSE(unanswered.error().never_sent);
  EXPECT_TRUE(send(get("/next")));
  EXPECT_EQ(peer.connections().size(), 2U);
  EXPECT_EQ(stats->connections_retired, 1U);
}

TEST_F(BrokenUnaryTest, ATimeoutOfOneRequestLeavesTheOthersOfItsConnectionAlone) {
  connect();
  auto slow = start(transport->send(get("/slow")));
  run_until([&] { return peer.requests().size() == 1; });
  EXPECT_FAILS(send(get("/stall", milliseconds(50))), Reason::timeout, "no answer");
  peer.requests()[0]->respond(200, "at last");
  auto response = wait(slow);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "at last");
}

TEST_F(BrokenUnaryTest, AServerThatNeverAcceptsTlsIsATimeoutThatSaysSo) {
  TcpServer silent(io, [](const TcpConnectionPtr&) {});
  connect(connection_to("https://127.0.0.1:" + std::to_string(silent.port())));
  const auto unsent = send(get("/x", milliseconds(100)));
  EXPECT_FAILS(unsent, Reason::timeout, "no connection (TCP and TLS) within 100ms");
  EXPECT_TRUE(unsent.error().never_sent);
}

TEST_F(BrokenUnaryTest, ALeaseRenewalAfterATimeoutTravelsOnANewConnection) {
  connect();
  peer.on_request([this](const H2StreamPtr& stream) {
    if (peer.requests().size() == 1)
      stream->connection.lock()->freeze();
    else
      stream->respond(200);
  });
  HttpRequest renew = write(Method::put, "/lease", "{}");
  renew.channel = Channel::lease;
  renew.timeout = milliseconds(200);
  EXPECT_FAILS(send(renew), Reason::timeout, "PUT /lease");
  renew.timeout = milliseconds(20'000);
  EXPECT_TRUE(send(renew));
}

TEST_F(BrokenUnaryTest, RequestsBehindAConnectionThatNeverOpensGetAnotherWhenItsRequestGivesUp) {
  TcpServer gate(io, [this](const TcpConnectionPtr& client) {
    if (++accepted_ > 1) relay(io, client, peer.port());
  });
  echo();
  connect(connection_to("https://127.0.0.1:" + std::to_string(gate.port())));
  auto stuck = start(transport->send(get("/stuck", milliseconds(100))));
  run_until([&] { return gate.connections().size() == 1; });
  std::vector<Pending<Response>> behind;
  for (int i = 0; i < 3; ++i) behind.push_back(start(transport->send(get("/behind"))));
  EXPECT_FAILS(wait(stuck), Reason::timeout, "no connection (TCP and TLS) within 100ms");
  for (auto& one : behind) EXPECT_EQ(wait(one)->body, "/behind");
}

TEST_F(BrokenUnaryTest, AConnectionThatNeverOpensIsGivenUpAfterTheConnectTimeout) {
  TcpServer silent(io, [](const TcpConnectionPtr&) {});
  connect(connection_to("https://127.0.0.1:" + std::to_string(silent.port())), {.connect_timeout = milliseconds(50)});
  EXPECT_FAILS(send(get("/x")), Reason::transport, "no connection in time");
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(BrokenUnaryTest, FiveThousandRequestsUseOneConnectionAndLeaveNothingBehind) {
  echo();
  connect();
  ASSERT_TRUE(send(get("/warm-up")));
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 500; ++round) {
    std::vector<Pending<Response>> pending;
    for (int i = 0; i < 10; ++i) pending.push_back(start(transport->send(get("/x"))));
    for (auto& one : pending) ASSERT_TRUE(wait(one));
    peer.forget_history();
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(stats->connections_opened, 1U);
}

TEST_F(BrokenUnaryTest, AnswersGivenUpHalfwayDoNotStarveTheirConnection) {
  // 40 x 1 MiB unread is more than the connection's flow control window of 32 MiB.
  connect();
  const std::string large(1U << 20U, 'x');
  for (int i = 0; i < 40; ++i) {
    auto pending = start(transport->send(get("/half")));
    const auto count = static_cast<std::size_t>(i) + 1;
    run_until([&] { return peer.requests().size() == count; });
    peer.requests().back()->start(200);
    peer.requests().back()->send(large);
    settle();
    peer.requests().back()->reset(8);  // CANCEL
    EXPECT_FALSE(wait(pending));
  }
  peer.on_request([&](const H2StreamPtr& stream) { stream->respond(200, large); });
  auto response = send(get("/whole"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body.size(), large.size());
}

TEST_F(BrokenUnaryTest, ABreakUnderManyRequestsRetiresTheirConnectionOnce) {
  connect();
  std::vector<Pending<Response>> pending;
  for (int i = 0; i < 5; ++i) pending.push_back(start(transport->send(write(Method::patch, "/x", "{}"))));
  run_until([&] { return peer.requests().size() == 5; });
  peer.connections()[0]->close_rst();
  for (auto& one : pending) EXPECT_FAILS(wait(one), Reason::transport, "");
  EXPECT_EQ(stats->connections_retired, 1U);
}

TEST_F(BrokenUnaryTest, DestroyingTheTransportEndsRequestsOnRetiredConnectionsToo) {
  connect();
  auto slow = start(transport->send(get("/slow")));
  run_until([&] { return peer.requests().size() == 1; });
  EXPECT_FAILS(send(get("/stall", milliseconds(20))), Reason::timeout, "");
  ASSERT_EQ(stats->connections_retired, 1U);
  transport.reset();
  EXPECT_FAILS(wait(slow), Reason::cancelled, "transport is closed");
}

TEST_F(BrokenUnaryTest, DestroyingTheTransportEndsRequestsInFlightAsCancelled) {
  connect(connection_to(peer.url()));
  std::vector<Pending<Response>> pending;
  for (int i = 0; i < 4; ++i) pending.push_back(start(transport->send(get("/x"))));
  HttpRequest renew = get("/lease");
  renew.channel = Channel::lease;
  pending.push_back(start(transport->send(renew)));
  run_until([&] { return peer.requests().size() == 5; });
  transport.reset();
  for (auto& one : pending) EXPECT_EQ(wait(one).error().reason, Reason::cancelled);
}

TEST_F(BrokenUnaryTest, DestroyingTheTransportWhileItConnectsIsHarmless) {
  connect();
  auto pending = start(transport->send(get("/x")));
  io.restart();
  io.poll_one();
  transport.reset();
  EXPECT_EQ(wait(pending).error().reason, Reason::cancelled);
}

TEST_F(BrokenUnaryTest, ARequestCancelledByAsioLeavesTheOthersAlone) {
  connect(connection_to(peer.url()));
  boost::asio::cancellation_signal cancel;
  bool ended = false;
  boost::asio::co_spawn(
      io, transport->send(get("/cancelled")),
      boost::asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr, Response) { ended = true; }));
  auto other = start(transport->send(get("/other")));
  run_until([&] { return peer.requests().size() == 2; });
  cancel.emit(boost::asio::cancellation_type::terminal);
  run_until([&] { return ended; });
  for (const auto& request : peer.requests()) request->respond(200, request->path);
  EXPECT_EQ(wait(other)->body, "/other");
}

TEST_F(BrokenUnaryTest, ADestroyedTransportLeavesNothingThatKeepsTheIoContextBusy) {
  boost::asio::io_context own;
  const auto own_clock = make_real_clock(own.get_executor());
  auto short_lived = make_curl_transport(own.get_executor(), connection_to(peer.url()), own_clock.get());
  own.poll();
  EXPECT_FALSE(own.stopped());
  short_lived.reset();
  own.poll();
  EXPECT_TRUE(own.stopped());
}

TEST_F(BrokenUnaryTest, AnIoContextThatDiesWithRequestsInFlightFreesThem) {
  boost::asio::io_context doomed;
  const auto doomed_clock = make_real_clock(doomed.get_executor());
  TcpServer silent(io, [](const TcpConnectionPtr&) {});
  auto own = make_curl_transport(
      doomed.get_executor(), connection_to("https://127.0.0.1:" + std::to_string(silent.port())), doomed_clock.get());
  for (int i = 0; i < 3; ++i) boost::asio::co_spawn(doomed, own->send(get("/x")), [](std::exception_ptr, Response) {});
  doomed.poll();
  own.reset();  // And then the io_context, without another turn: the sanitizer presets judge this test.
}

}  // namespace
}  // namespace k8s::test::curl_transport_break_test
