// Writes that get no answer: which of them the transport sends a second time, and whom it asks before.

#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_resend_test {
namespace {

class ResendTest : public TransportTest {};

enum class Lost { reset, goaway, stream_refused };  // The connection is reset, or it or the stream is refused.
struct WriteCase {
  Method method;
  Lost lost;
};
class LostWriteTest : public ResendTest, public testing::WithParamInterface<WriteCase> {
 protected:
  // Writes on the first connection, which a read has warmed up, are lost; all others are answered with their path.
  LostWriteTest() {
    connect();
    peer.on_request = [this](const H2StreamPtr& stream) {
      if (stream->method == "GET" || peer.connections().size() > 1)
        echo(stream);
      else if (GetParam().lost == Lost::goaway)
        stream->connection.lock()->goaway(stream->id - 2);
      else if (GetParam().lost == Lost::stream_refused)
        stream->reset(7);  // REFUSED_STREAM
      else
        stream->connection.lock()->close_rst();
    };
    answer_to(get("/warm-up"));
  }
  static HttpRequest asking_first(Method method, std::function<Result<void>()> sender) {
    HttpRequest request = write(method, "/lost", R"({"a":"b"})");
    request.before_resend = std::move(sender);
    return request;
  }
};
class WriteOnceTest : public LostWriteTest {};
class RefusedWriteTest : public LostWriteTest {};

TEST_P(WriteOnceTest, AWriteThatGotNoAnswerOnAKeptConnectionIsNotSentTwice) {
  EXPECT_FAILS(send(write(GetParam().method, "/pods/a/eviction", "{}")), Reason::transport, "not sent again");
  EXPECT_EQ(peer.requests().size(), 2U);
  ASSERT_TRUE(send(get("/after")));
}

INSTANTIATE_TEST_SUITE_P(Methods, WriteOnceTest,
                         testing::Values(WriteCase{Method::post, Lost::reset}, WriteCase{Method::patch, Lost::reset},
                                         WriteCase{Method::put, Lost::reset}, WriteCase{Method::del, Lost::reset},
                                         WriteCase{Method::post, Lost::goaway},
                                         WriteCase{Method::post, Lost::stream_refused}));

Result<void> lease_is_lost() {
  return fail(Reason::cancelled, "the lease is not held");
}

// The server says that it has not read them, as Go's client takes it; each asks for the lease once more.
TEST_P(RefusedWriteTest, AWriteThatTheServerRefusesUnreadIsSentAgainOnANewConnectionAfterItsSenderAgrees) {
  int asked = 0;
  const HttpResponse answer = answer_to(asking_first(GetParam().method, [&asked]() -> Result<void> {
    ++asked;
    return {};
  }));
  EXPECT_EQ(answer.body, "/lost");
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(peer.requests().size(), 3U);
  EXPECT_EQ(peer.requests()[2]->body, R"({"a":"b"})");
  EXPECT_EQ(peer.connections().size(), 2U);
}

TEST_P(RefusedWriteTest, ARefusedWriteWhoseSenderNoLongerAgreesEndsWithThatError) {
  EXPECT_FAILS(send(asking_first(GetParam().method, lease_is_lost)), Reason::cancelled, "the lease is not held");
  EXPECT_EQ(peer.requests().size(), 2U);
  ASSERT_TRUE(send(get("/after")));
}

INSTANTIATE_TEST_SUITE_P(Methods, RefusedWriteTest,
                         testing::Values(WriteCase{Method::patch, Lost::goaway}, WriteCase{Method::put, Lost::goaway},
                                         WriteCase{Method::del, Lost::goaway},
                                         WriteCase{Method::patch, Lost::stream_refused},
                                         WriteCase{Method::put, Lost::stream_refused},
                                         WriteCase{Method::del, Lost::stream_refused}));

TEST_F(ResendTest, ANewTokenIsNotSentWithAWriteWhoseSenderNoLongerAgrees) {
  connect(std::make_shared<FakeCredentials>());
  peer.on_request = [](const H2StreamPtr& stream) { stream->respond(401); };
  HttpRequest request = write(Method::patch, "/x", "{}");
  request.before_resend = lease_is_lost;
  EXPECT_FAILS(send(request), Reason::cancelled, "the lease is not held");
  EXPECT_EQ(peer.requests().size(), 1U);
}

// In HTTP/1.1 the end of a connection does not show whether the server has read the request.
TEST_F(ResendTest, AWriteOnAKeptHttpConnectionThatTheServerClosesIsNotSentTwice) {
  int requests = 0;
  TcpServer server(io, [&](TcpConnection& from) {
    if (++requests > 1) return from.close();
    answer_http(from);
  });
  connect(connection_to(local("http", server.port())));
  ASSERT_TRUE(send(get("/warm-up")));
  EXPECT_FAILS(send(write(Method::del, "/x", "")), Reason::transport, "");
  EXPECT_EQ(requests, 2);
}

}  // namespace
}  // namespace k8s::test::curl_transport_resend_test
