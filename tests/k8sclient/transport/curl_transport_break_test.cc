// Unary requests when something breaks: GOAWAY, resets, stalls, a transport or an io_context that goes away, and what
// thousands of requests leave behind.

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <filesystem>

#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_break_test {
namespace {

class BrokenUnaryTest : public TransportTest {};

TEST_F(BrokenUnaryTest, AfterAGracefulGoawayTheNextRequestOpensAConnection) {
  peer.on_request = echo;
  connect();
  ASSERT_TRUE(send(get("/a")));
  peer.connections()[0]->goaway(peer.connections()[0]->last_stream());
  settle();
  ASSERT_TRUE(send(get("/b")));
  EXPECT_EQ(peer.connections().size(), 2U);
}

TEST_F(BrokenUnaryTest, AReadRefusedByGoawayBesideAnotherStreamIsSentAgainOnANewConnection) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) {
    if (stream->path == "/refused" && stream->id > 1)
      stream->connection.lock()->goaway(1);
    else if (stream->path == "/refused")
      stream->respond(200, "second connection");
  };
  auto served = start(transport->send(get("/served")));
  wait_for_requests(1);
  EXPECT_EQ(answer_to(get("/refused")).body, "second connection");
  peer.requests()[0]->respond(200, "first connection");
  EXPECT_EQ(answer_of(wait(served)).body, "first connection");
}

TEST_F(BrokenUnaryTest, AReadWhoseKeptConnectionIsResetIsSentAgainOnceOnly) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) {
    if (stream->path == "/a") return stream->respond(200);
    stream->connection.lock()->close_rst();
  };
  ASSERT_TRUE(send(get("/a")));
  EXPECT_FAILS(send(get("/b")), Reason::transport, "");
  EXPECT_EQ(peer.requests().size(), 3U);
}

TEST_F(BrokenUnaryTest, ManyRequestsToAnAddressWithNobodyBehindItAllFailAtOnce) {
  peer.stop_listening();
  connect();
  for (auto& one : start_many(20, get("/x"))) EXPECT_FAILS(wait(one), Reason::transport, "Connection refused");
}

TEST_F(BrokenUnaryTest, AResetAfterTheRequestOnAFirstConnectionIsAnError) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) { stream->connection.lock()->close_rst(); };
  EXPECT_FAILS(send(write(Method::post, "/x", "{}")), Reason::transport, "POST /x on 127.0.0.1:");
  EXPECT_EQ(peer.requests().size(), 1U);
}

// RFC 9113, 8.1: a server that needs no more of the request answers, and then resets the stream.
TEST_F(BrokenUnaryTest, AWholeAnswerHoldsWhateverResetsItsStreamAfterwardsAndHalfAnAnswerDoesNot) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) {
    stream->start(415, {{"content-length", stream->headers[":path"] == "/whole" ? "7" : "8"}});
    stream->send("refused");
    stream->reset(8);  // CANCEL
  };
  const HttpResponse whole = answer_to(write(Method::post, "/whole", "{}"));
  EXPECT_EQ(whole.status, 415);
  EXPECT_EQ(whole.body, "refused");
  EXPECT_FAILS(send(write(Method::post, "/half", "{}")), Reason::transport, "broke off the HTTP/2 stream");
}

// As the API server does with a body beyond its 3 MiB.
TEST_F(BrokenUnaryTest, ARefusalInTheMiddleOfTheRequestsBodyIsReadAndItsConnectionServesOn) {
  connect();
  peer.on_headers = [](const H2StreamPtr& stream) { stream->refuse(413, "too large"); };
  const HttpResponse refused = answer_to(write(Method::post, "/large", std::string(3'200'000, 'x')));
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.body, "too large");
  EXPECT_EQ(stats->retries, 0U);
  peer.on_request = echo;
  EXPECT_TRUE(send(get("/small")).has_value());
  EXPECT_EQ(peer.connections().size(), 1U);
}

TEST_F(BrokenUnaryTest, AnAnswerCutOffInTheMiddleIsAnError) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) {
    stream->start(200, {{"content-length", "100"}});
    stream->send(R"({"kind":)");
    stream->connection.lock()->close_fin();
  };
  EXPECT_FAILS(send(get("/x")), Reason::transport, "connection broke");
}

TEST_F(BrokenUnaryTest, AStalledServerIsATimeoutAndTheNextRequestDoesNotTrustItsConnection) {
  connect();
  peer.on_request = [](const H2StreamPtr& stream) {
    if (stream->path == "/stall")
      stream->connection.lock()->freeze();  // As a peer behind a dead load balancer.
    else
      stream->respond(200);
  };
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
  wait_for_requests(1);
  EXPECT_FAILS(send(get("/stall", milliseconds(50))), Reason::timeout, "no answer");
  peer.requests()[0]->respond(200, "at last");
  EXPECT_EQ(answer_of(wait(slow)).body, "at last");
}

TEST_F(BrokenUnaryTest, ALeaseRenewalAfterATimeoutTravelsOnANewConnection) {
  connect();
  peer.on_request = [this](const H2StreamPtr& stream) {
    if (peer.requests().size() == 1)
      stream->connection.lock()->freeze();
    else
      stream->respond(200);
  };
  HttpRequest renew = write(Method::put, "/lease", "{}");
  renew.channel = Channel::lease;
  renew.timeout = milliseconds(200);
  EXPECT_FAILS(send(renew), Reason::timeout, "PUT /lease");
  renew.timeout = milliseconds(20'000);
  EXPECT_TRUE(send(renew));
}

TEST_F(BrokenUnaryTest, RequestsBehindAConnectionThatNeverOpensGetAnotherWhenItsRequestGivesUp) {
  TcpServer gate(io, [&](TcpConnection& client) {
    if (gate.connections().size() > 1) relay(io, client, peer.port());
  });
  peer.on_request = echo;
  connect(connection_to(local("https", gate.port())));
  auto stuck = start(transport->send(get("/stuck", milliseconds(100))));
  run_until([&] { return gate.connections().size() == 1; });
  auto behind = start_many(3, get("/behind"));
  EXPECT_FAILS(wait(stuck), Reason::timeout, "no connection (TCP and TLS) within 100ms");
  for (auto& one : behind) EXPECT_EQ(wait(one)->body, "/behind");
}

TEST_F(BrokenUnaryTest, AConnectionThatNeverOpensIsGivenUpAfterTheConnectTimeoutOrThatOfItsRequest) {
  TcpServer silent(io);
  connect(connection_to(local("https", silent.port())), {.connect_timeout = milliseconds(50)});
  EXPECT_FAILS(send(get("/x")), Reason::transport, "no connection in time");
  connect(connection_to(local("https", silent.port())));
  const auto unsent = send(get("/x", milliseconds(100)));
  EXPECT_FAILS(unsent, Reason::timeout, "no connection (TCP and TLS) within 100ms");
  EXPECT_TRUE(unsent.error().never_sent);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(BrokenUnaryTest, FiveThousandRequestsUseOneConnectionAndLeaveNothingBehind) {
  peer.on_request = echo;
  connect();
  ASSERT_TRUE(send(get("/warm-up")));
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 500; ++round) {
    for (auto& one : start_many(10, get("/x"))) ASSERT_TRUE(wait(one));
    peer.forget_history();
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(stats->connections_opened, 1U);
}

TEST_F(BrokenUnaryTest, AnswersGivenUpHalfwayDoNotStarveTheirConnection) {
  // 40 x 1 MiB unread is more than the connection's flow control window of 32 MiB.
  connect();
  const std::string large(1U << 20U, 'x');
  for (std::size_t count = 1; count <= 40; ++count) {
    auto pending = start(transport->send(get("/half")));
    wait_for_requests(count);
    peer.requests().back()->start(200);
    peer.requests().back()->send(large);
    settle();
    peer.requests().back()->reset(8);  // CANCEL
    EXPECT_FALSE(wait(pending));
  }
  peer.on_request = [&](const H2StreamPtr& stream) { stream->respond(200, large); };
  EXPECT_EQ(answer_to(get("/whole")).body.size(), large.size());
}

TEST_F(BrokenUnaryTest, ABreakUnderManyRequestsRetiresTheirConnectionOnce) {
  connect();
  auto pending = start_many(5, write(Method::patch, "/x", "{}"));
  wait_for_requests(5);
  peer.connections()[0]->close_rst();
  for (auto& one : pending) EXPECT_FAILS(wait(one), Reason::transport, "");
  EXPECT_EQ(stats->connections_retired, 1U);
}

TEST_F(BrokenUnaryTest, DestroyingTheTransportEndsRequestsInFlightAsCancelledOnRetiredConnectionsToo) {
  connect();
  auto pending = start_many(1, get("/slow"));
  wait_for_requests(1);
  EXPECT_FAILS(send(get("/stall", milliseconds(20))), Reason::timeout, "");
  ASSERT_EQ(stats->connections_retired, 1U);
  HttpRequest renew = get("/lease");
  renew.channel = Channel::lease;
  for (const HttpRequest& request : {get("/x"), get("/x"), renew}) pending.push_back(start(transport->send(request)));
  wait_for_requests(5);
  transport.reset();
  for (auto& one : pending) EXPECT_FAILS(wait(one), Reason::cancelled, "transport is closed");
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
  connect();
  boost::asio::cancellation_signal cancel;
  bool ended = false;
  boost::asio::co_spawn(
      io, transport->send(get("/cancelled")),
      boost::asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr, Response) { ended = true; }));
  auto other = start(transport->send(get("/other")));
  wait_for_requests(2);
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
  TcpServer silent(io);
  auto own =
      make_curl_transport(doomed.get_executor(), connection_to(local("https", silent.port())), doomed_clock.get());
  for (int i = 0; i < 3; ++i) boost::asio::co_spawn(doomed, own->send(get("/x")), [](std::exception_ptr, Response) {});
  doomed.poll();
  own.reset();  // And then the io_context, without another turn: the sanitizer presets judge this test.
}

}  // namespace
}  // namespace k8s::test::curl_transport_break_test
