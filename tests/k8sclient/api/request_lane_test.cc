// What waits for its turn, what does not, and how many requests may be open by what the server answered.
#include "k8sclient/api/request_lane.h"
#include "k8sclient/api/client.h"

#include <gtest/gtest.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <memory>

#include "tests/k8sclient/api/client_fixture.h"

namespace k8s::test::request_lane_test {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

ClientOptions narrow() {
  ClientOptions out;
  out.most_reads = 1;
  out.most_writes = 2;
  out.max_retries = 0;
  return out;
}

Answer slow(Duration takes) {
  Answer out = Answer::ok("{}");
  out.takes = takes;
  return out;
}

struct RequestLaneTest : ClientFixture {
  ApiClient client{&transport, &clock, narrow()};
  int ended = 0;

  template <class T>
  void begin(asio::awaitable<Result<T>> call) {
    asio::co_spawn(io, std::move(call), [this](const std::exception_ptr& thrown, const Result<T>&) {
      if (thrown) std::rethrow_exception(thrown);
      ++ended;
    });
  }
  void run(Duration time) { clock.run_for(time); }
  asio::awaitable<Result<std::string>> patch(const char* node, WriteOptions options = {}) {
    return client.merge_patch(kNodes, {"", node}, "{}", options);
  }
  // How long it is until an answer that is no refusal.
  template <class T>
  Duration time_of(asio::awaitable<Result<T>> call) {
    const MonoTime begun = clock.monotonic();
    EXPECT_TRUE(await(std::move(call)));
    return clock.monotonic() - begun;
  }
  template <class T>
  Error error_of(asio::awaitable<Result<T>> call) {
    const Result<T> answer = await(std::move(call));
    EXPECT_FALSE(answer.has_value());
    return answer ? Error{} : answer.error();
  }
};

TEST_F(RequestLaneTest, OnlyAsManyWritesAsTheLimitAllowsAreOpenAndTheOthersWaitInOrder) {
  transport.otherwise(slow(1s));
  for (const char* node : {"a", "b", "c", "d", "e"}) begin(patch(node));
  run(500ms);
  EXPECT_EQ(transport.requests.size(), 2U);
  EXPECT_EQ(client.writes(WriteKind::object).open(), 2U);
  EXPECT_EQ(client.writes(WriteKind::object).waiting(), 3U);
  run(1s);
  ASSERT_EQ(transport.requests.size(), 4U);
  EXPECT_TRUE(transport.requests[2].path.starts_with("/api/v1/nodes/c")) << transport.requests[2].path;
  run(10s);
  EXPECT_EQ(ended, 5);
  EXPECT_EQ(client.writes(WriteKind::object).open(), 0U);
}

TEST_F(RequestLaneTest, ReadsDoNotWaitForWritesNorTheLeaseForAnybody) {
  transport.otherwise(slow(1s));
  for (int i = 0; i < 5; ++i) begin(patch("a"));
  begin(client.get(kNodes, {"", "a"}));
  begin(client.get(kNodes, {"", "b"}));
  WriteOptions renewal;
  renewal.channel = Channel::lease;
  begin(client.update(kNodes, {"", "lease"}, "{}", renewal));
  run(500ms);
  EXPECT_EQ(transport.requests.size(), 4U) << "two writes, one read, the Lease";
}

// Each kind of writes has places of its own, and a refusal narrows its own lane alone.
TEST_F(RequestLaneTest, WritesOfOneKindHoldUpNoneOfAnother) {
  transport.otherwise(slow(10s));
  for (int i = 0; i < 32; ++i) begin(patch("a"));
  for (const WriteKind kind : {WriteKind::record, WriteKind::status, WriteKind::event}) {
    WriteOptions options;
    options.kind = kind;
    begin(client.merge_patch(kSets, {"ns", "a"}, "{}", options));
  }
  run(1ms);
  EXPECT_EQ(transport.requests.size(), 5U) << "two objects, and one of each other kind";
  for (const WriteKind kind : {WriteKind::record, WriteKind::status, WriteKind::event}) {
    EXPECT_EQ(client.writes(kind).open(), 1U);
    EXPECT_EQ(client.writes(kind).waiting(), 0U);
  }
}

TEST_F(RequestLaneTest, NoMoreWaitThanMemoryIsMeantFor) {
  transport.otherwise(slow(1h));
  for (std::size_t i = 0; i < RequestLane::kMostWaiting + 2; ++i) begin(patch("a"));
  run(1ms);
  ASSERT_EQ(client.writes(WriteKind::object).waiting(), RequestLane::kMostWaiting);
  const Error refused = error_of(patch("b"));
  EXPECT_EQ(refused.reason, Reason::too_many_requests);
  EXPECT_TRUE(refused.never_sent);
}

TEST_F(RequestLaneTest, ARefusalHoldsBackTheLaneForAsLongAsTheServerAsksAndNoOther) {
  transport.then(Answer::retry_after(429, "5"));
  transport.otherwise(Answer::ok("{}"));
  const Error refused = error_of(patch("a"));
  EXPECT_EQ(time_of(client.get(kNodes, {"", "a"})), 0s);
  EXPECT_EQ(time_of(patch("b")), 5s);
}

// The places of requests that are suspended at the end of the program go after the client, and after the clock.
TEST_F(RequestLaneTest, AfterTheEndOfTheClientNoPlaceAsksForTheTimeOrGivesATurn) {
  auto lane = std::make_shared<RequestLane>(&clock, AdaptiveLimitSettings{.start = 1, .most = 1});
  auto first = std::make_shared<RequestLane::Place>(lane);
  auto second = std::make_shared<RequestLane::Place>(lane);
  begin(lane->enter(first, clock.monotonic() + 1min));
  begin(lane->enter(second, clock.monotonic() + 1min));
  run(0ms);
  ASSERT_EQ(lane->open(), 1U);
  ASSERT_EQ(lane->waiting(), 1U);
  lane->close();
  first.reset();
  EXPECT_EQ(lane->waiting(), 0U);
  EXPECT_EQ(ended, 1) << "the second one gets no turn";
}

// No other request comes that would look whether the pause is over.
TEST_F(RequestLaneTest, WhatWasInLineBeforeAPauseIsSentAtItsEnd) {
  Answer refusal = Answer::retry_after(429, "2");
  refusal.takes = 1s;
  transport.then(refusal);
  transport.otherwise(Answer::ok("{}"));
  for (const char* node : {"a", "b", "c"}) begin(client.get(kNodes, {"", node}));
  run(2900ms);
  EXPECT_EQ(transport.requests.size(), 1U);
  run(200ms);
  EXPECT_EQ(transport.requests.size(), 3U);
  EXPECT_EQ(ended, 3);
}

TEST_F(RequestLaneTest, AWriteWhoseDeadlinePassesInLineIsNotSentAndSaysWhenToTryAgain) {
  transport.then(Answer::retry_after(429, "20"));
  const auto refused = await(patch("a"));
  WriteOptions options;
  options.deadline = clock.monotonic() + 2s;
  const Error late = error_of(patch("b", options));
  EXPECT_EQ(late.reason, Reason::too_many_requests);
  EXPECT_EQ(late.retry_after, 18s);
  EXPECT_TRUE(late.never_sent);
  EXPECT_TRUE(late.message.starts_with("patch nodes b: not sent: ")) << late.message;
  EXPECT_EQ(transport.requests.size(), 1U);
}

TEST_F(RequestLaneTest, AWriteWhoseTurnComesWithItsDeadlineIsNotSentAndSaysSo) {
  transport.then(Answer::retry_after(429, "2"));
  error_of(patch("a"));
  int asked = 0;
  WriteOptions options;
  options.deadline = clock.monotonic() + 2s;
  options.before_send = [&asked]() -> Result<void> {
    ++asked;
    return {};
  };
  const Error late = error_of(patch("b", options));
  EXPECT_EQ(late.reason, Reason::timeout) << late.message;
  EXPECT_TRUE(late.never_sent);
  EXPECT_EQ(transport.requests.size(), 1U);
  EXPECT_EQ(asked, 0) << "who is asked believes that it is sent";
}

// A server that was away is asked again at full width as soon as it is back; one that did not answer in time is not.
TEST_F(RequestLaneTest, AConnectionThatCannotBeMadeIsNoOverloadAndASilentServerIs) {
  for (int i = 0; i < 10; ++i) {
    transport.then(Answer::broken(Reason::transport));
    error_of(patch("a"));
  }
  transport.otherwise(Answer::ok("{}"));
  EXPECT_EQ(time_of(patch("b")), 0s);
  EXPECT_EQ(client.writes(WriteKind::object).limit(), 2U);
  transport.then(Answer::broken(Reason::timeout));
  error_of(patch("c"));
  EXPECT_EQ(client.writes(WriteKind::object).limit(), 1U);
}

TEST_F(RequestLaneTest, TheRefusalOfABudgetOrOfSeveralDoesNotSlowDownOtherWrites) {
  // Of several, as the API server answers it: a code, and no reason.
  const Answer several =
      Answer::code(500, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":500,
      "message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."})");
  transport.otherwise(Answer::ok("{}"));
  for (const Answer& refusal : {Answer::budget("10"), several}) {
    transport.then(refusal);
    const Error refused = error_of(client.evict({"ns", "p"}));
    EXPECT_FALSE(outcome_unknown(refused));
    EXPECT_EQ(time_of(patch("b")), 0s);
    EXPECT_EQ(client.writes(WriteKind::object).limit(), 2U);
  }
}

TEST_F(RequestLaneTest, ACallThatWaitsToBeSentAgainGivesItsPlaceToTheNext) {
  ClientOptions options = narrow();
  options.max_retries = 3;
  ApiClient patient(&transport, &clock, options);
  transport.then(Answer::code(500));  // The only read lane; the call waits 200 to 300 ms.
  transport.otherwise(Answer::ok("{}"));
  begin(patient.get(kNodes, {"", "a"}));
  run(1ms);
  EXPECT_EQ(patient.reads().open(), 0U);
  run(10s);
  EXPECT_EQ(ended, 1);
}

TEST_F(RequestLaneTest, ACancelledCallLeavesTheLine) {
  transport.otherwise(slow(10s));
  begin(client.get(kNodes, {"", "a"}));
  asio::cancellation_signal cancel;
  bool gone = false;
  asio::co_spawn(io, client.get(kNodes, {"", "b"}),
                 asio::bind_cancellation_slot(
                     cancel.slot(), [&gone](const std::exception_ptr&, const Result<std::string>&) { gone = true; }));
  run(1s);
  EXPECT_EQ(client.reads().waiting(), 1U);
  cancel.emit(asio::cancellation_type::terminal);
  run(1s);
  EXPECT_TRUE(gone);
  EXPECT_EQ(client.reads().waiting(), 0U);
}

struct AdaptiveLimitTest : testing::Test {
  AdaptiveLimit limit{{.start = 16, .least = 1, .most = 64}};
  MonoTime now{1h};

  // One full round of answers that take `took` each.
  void round(Duration took) {
    const MonoTime begun = now;
    now = now + took;
    for (std::size_t left = limit.limit(); left > 0; --left) limit.served(begun, now, true);
  }
  void refuse(std::optional<Duration> retry_after = std::nullopt) {
    const MonoTime begun = now;
    now = now + 1ms;
    limit.refused(begun, now, retry_after);
  }
};

TEST_F(AdaptiveLimitTest, GrowsByAboutOneForEachFullRoundUpToItsMost) {
  round(10ms);
  EXPECT_EQ(limit.limit(), 16U);  // 16.9: requests are whole.
  round(10ms);
  EXPECT_EQ(limit.limit(), 17U);
  for (int i = 0; i < 200; ++i) round(10ms);
  EXPECT_EQ(limit.limit(), 64U);
}

TEST_F(AdaptiveLimitTest, DoesNotGrowWhileItIsNotUsedInFull) {
  for (int i = 0; i < 1000; ++i) limit.served(now, now + 10ms, false);
  EXPECT_EQ(limit.limit(), 16U);
}

TEST_F(AdaptiveLimitTest, HalvesOnceForAllRequestsThatOneOverloadRefuses) {
  const MonoTime begun = now;
  for (int i = 0; i < 16; ++i) limit.refused(begun, now + 5ms, 1s);
  EXPECT_EQ(limit.limit(), 8U);
  limit.refused(now + 6ms, now + 10ms, 1s);
  EXPECT_EQ(limit.limit(), 4U) << "sent after it had halved: another round";
}

TEST_F(AdaptiveLimitTest, NeverGoesBelowItsLeast) {
  for (int i = 0; i < 100; ++i) refuse();
  EXPECT_EQ(limit.limit(), 1U);
}

TEST_F(AdaptiveLimitTest, PausesForAsLongAsTheServerAsksUpToHalfAMinute) {
  refuse(7s);
  EXPECT_EQ(limit.paused_until() - now, 7s);
  refuse(1h);
  EXPECT_EQ(limit.paused_until() - now, 30s);
}

TEST_F(AdaptiveLimitTest, PausesLongerWithEachRefusedRoundUntilOneIsServed) {
  const Duration expected[] = {200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 8s, 8s};
  for (const Duration pause : expected) {
    now = now + 1min;
    refuse();
    EXPECT_EQ(limit.paused_until() - now, pause);
  }
  now = now + 1min;
  limit.served(now, now + 10ms, false);
  now = now + 20ms;
  refuse();
  EXPECT_EQ(limit.paused_until() - now, 200ms);
}

TEST_F(AdaptiveLimitTest, HalvesWhenTheMedianAnswerBecomesSlowAndNotForASlowOneAmongQuickOnes) {
  for (int i = 0; i < 4; ++i) round(20ms);
  const std::size_t before = limit.limit();
  for (int i = 0; i < 100; ++i) limit.served(now, now + (i % 10 == 0 ? 10s : Duration(20ms)), false);
  EXPECT_EQ(limit.limit(), before) << "a webhook for one node";
  round(2s);
  EXPECT_LT(limit.limit(), before);
}

TEST_F(AdaptiveLimitTest, AcceptsAServerThatIsSlowForGood) {
  for (int i = 0; i < 4; ++i) round(200ms);
  for (int i = 0; i < 2000; ++i) round(1s);
  EXPECT_EQ(limit.limit(), 64U);
}

TEST_F(AdaptiveLimitTest, IsBackAtItsStartWithinThirtySecondsAfterAMinuteOfRefusals) {
  const MonoTime end = now + 1min;
  while (now < end) {
    now = std::max(now, limit.paused_until());
    refuse(1s);
  }
  now = std::max(now, limit.paused_until());
  const MonoTime recovered = end + 30s;
  while (limit.limit() < 16 && now < recovered) round(50ms);
  EXPECT_EQ(limit.limit(), 16U);
}

}  // namespace
}  // namespace k8s::test::request_lane_test
