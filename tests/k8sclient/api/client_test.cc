// ApiClient: what each verb sends, what it makes of answers, and what it retries.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/k8sclient/api/client_fixture.h"

namespace k8s::test::client_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST_F(ClientTest, each_verb_sends_what_the_api_server_expects) {
  transport.otherwise(Answer::ok("{}"));
  const ObjectKey node{"", "n1"};
  WriteOptions status;
  status.subresource = "status";
  status.metadata_only = true;
  WriteOptions forced;
  forced.force = true;
  ASSERT_TRUE(await(client.get(kNodes, node)));
  ASSERT_TRUE(await(client.create(kSets, "ns", "C")));
  ASSERT_TRUE(await(client.update(kNodes, node, "U")));
  ASSERT_TRUE(await(client.merge_patch(kNodes, node, "M", status)));
  ASSERT_TRUE(await(client.apply(kSets, {"ns", "d"}, "A", forced)));
  const struct {
    Method method;
    const char* path;
    const char* type;
    const char* body;
    const char* accept = "application/json";
  } cases[] = {
      {Method::get, "/api/v1/nodes/n1", "", ""},
      {Method::post, "/apis/apps/v1/namespaces/ns/daemonsets?fieldManager=tester", "application/json", "C"},
      {Method::put, "/api/v1/nodes/n1?fieldManager=tester", "application/json", "U"},
      {Method::patch, "/api/v1/nodes/n1/status?fieldManager=tester", "application/merge-patch+json", "M",
       "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"},
      {Method::patch, "/apis/apps/v1/namespaces/ns/daemonsets/d?fieldManager=tester&force=true",
       "application/apply-patch+yaml", "A"},
  };
  ASSERT_EQ(transport.requests.size(), std::size(cases));
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const HttpRequest& request = transport.requests[i];
    EXPECT_EQ(request.method, cases[i].method);
    EXPECT_EQ(request.path, cases[i].path);
    EXPECT_EQ(request.content_type, cases[i].type);
    EXPECT_EQ(request.body, cases[i].body);
    EXPECT_EQ(request.accept, cases[i].accept);
  }
  EXPECT_EQ(records.at(4).verb, "APPLY");
  EXPECT_EQ(records.at(4).resource, "daemonsets");
}

TEST_F(ClientTest, a_client_that_only_reads_refuses_each_write_and_names_the_object) {
  ClientOptions reading = options();
  reading.reads_only = true;
  ApiClient reader(&transport, &clock, reading);
  const ObjectKey node{"", "n1"};
  const ObjectKey pod{"ns", "p1"};
  const auto refused = [](const auto& answer, const char* message) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, Reason::cancelled);
    EXPECT_EQ(answer.error().message, std::string(message) + ": a dry run writes nothing");
  };
  refused(await(reader.create(kNodes, "", "{}")), "create nodes");
  refused(await(reader.update(kNodes, node, "{}")), "update nodes n1");
  refused(await(reader.merge_patch(kNodes, node, "{}")), "patch nodes n1");
  refused(await(reader.apply(kNodes, node, "{}")), "apply nodes n1");
  refused(await(reader.remove({"", "v1", "pods"}, pod)), "delete pods ns/p1");
  refused(await(reader.evict(pod)), "evict pods ns/p1");
  EXPECT_THAT(transport.requests, IsEmpty());
}

TEST_F(ClientTest, deletes_and_evictions_carry_their_preconditions) {
  transport.otherwise(Answer::ok("{}"));
  DeleteOptions options;
  options.uid = "uid-1";
  options.resource_version = "42";
  options.grace_period_seconds = 0;
  options.propagation_policy = "Background";
  ASSERT_TRUE(await(client.remove({"", "v1", "pods"}, {"ns", "p"}, options)));
  ASSERT_TRUE(await(client.evict({"ns", "p"}, options)));
  ASSERT_TRUE(await(client.remove(kNodes, {"", "n"})));
  const json wanted{{"apiVersion", "v1"},
                    {"kind", "DeleteOptions"},
                    {"preconditions", {{"uid", "uid-1"}, {"resourceVersion", "42"}}},
                    {"gracePeriodSeconds", 0},
                    {"propagationPolicy", "Background"}};
  EXPECT_EQ(json::parse(transport.requests[0].body), wanted);
  EXPECT_EQ(transport.requests[0].method, Method::del);
  const json eviction = json::parse(transport.requests[1].body);
  EXPECT_EQ(transport.requests[1].path, "/api/v1/namespaces/ns/pods/p/eviction");
  EXPECT_EQ(eviction["apiVersion"], "policy/v1");
  EXPECT_EQ(eviction["metadata"], (json{{"name", "p"}, {"namespace", "ns"}}));
  EXPECT_EQ(eviction["deleteOptions"]["preconditions"], wanted["preconditions"]);
  EXPECT_EQ(json::parse(transport.requests[2].body), (json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}}));
}

TEST_F(ClientTest, errors_name_the_attempt_and_the_object) {
  transport.then(Answer::status_of(404, "NotFound", "nodes n1 not found"), Answer::status_of(403, "Forbidden", "no"));
  const auto got = await(client.get(kNodes, {"", "n1"}));
  EXPECT_EQ(got.error(), (Error{Reason::not_found, 404, "get nodes n1: nodes n1 not found (HTTP 404)"}));
  const auto patched = await(client.merge_patch(kSets, {"ns", "d"}, "{}"));
  EXPECT_THAT(patched.error().message, StartsWith("patch daemonsets ns/d: no"));
}

// --- Retries ---

TEST_F(ClientTest, reads_are_retried_and_writes_only_when_they_were_not_executed) {
  const auto is_sent_again = [this](const Answer& first, boost::asio::awaitable<Result<std::string>> call) {
    transport.requests.clear();
    transport.then(first);
    transport.otherwise(Answer::ok("{}"));
    const bool answered = await(std::move(call)).has_value();
    EXPECT_EQ(transport.requests.size(), answered ? 2U : 1U);
    return answered;
  };
  const auto check = [&](bool read_again, bool write_again, const std::vector<Answer>& answers) {
    for (const Answer& first : answers) {
      SCOPED_TRACE(first.error ? to_string(first.error->reason) : std::to_string(first.status));
      EXPECT_EQ(is_sent_again(first, client.get(kNodes, {"", "n"})), read_again);
      EXPECT_EQ(is_sent_again(first, client.merge_patch(kNodes, {"", "n"}, "{}")), write_again);
    }
  };
  check(true, true, {Answer::code(429), Answer::retry_after(429, "2"), Answer::retry_after(503, "1")});
  check(true, false,
        {Answer::code(500), Answer::code(503), Answer::code(504), Answer::retry_after(500, "1"), Answer::broken(),
         Answer::broken(Reason::timeout)});
  check(false, false,
        {Answer::broken(Reason::cancelled), Answer::code(404), Answer::code(409), Answer::code(401), Answer::code(403),
         Answer::code(422)});
}

TEST_F(ClientTest, an_eviction_refused_by_a_budget_is_the_planners_business) {
  transport.then(Answer::retry_after(429, "10"));
  const auto evicted = await(client.evict({"ns", "p"}));
  EXPECT_EQ(evicted.error().reason, Reason::too_many_requests);
  EXPECT_EQ(evicted.error().retry_after, 10s);
  EXPECT_EQ(transport.requests.size(), 1U);
}

TEST_F(ClientTest, retry_after_is_waited_for_and_backoff_grows_with_jitter) {
  transport.then(Answer::retry_after(429, "7"));
  for (int i = 0; i < 3; ++i) transport.then(Answer::code(503));
  transport.then(Answer::ok("{}"));
  ASSERT_TRUE(await(client.get(kNodes, {"", "n"})));
  std::vector<double> gaps;
  for (std::size_t i = 1; i < transport.times.size(); ++i)
    gaps.push_back(std::chrono::duration<double>(transport.times[i] - transport.times[i - 1]).count());
  const auto about = [](double seconds) { return testing::DoubleNear(seconds, seconds * 0.2); };
  EXPECT_THAT(gaps, ElementsAre(testing::DoubleEq(7), about(0.5), about(1), about(2)));
  EXPECT_FALSE(records.front().retry);
  EXPECT_TRUE(records.back().retry);
}

TEST_F(ClientTest, retries_are_bounded_in_number_and_in_time) {
  transport.otherwise(Answer::code(503));
  EXPECT_EQ(await(client.get(kNodes, {"", "n"})).error().reason, Reason::unavailable);
  EXPECT_EQ(transport.requests.size(), 6U);
  transport.requests.clear();
  transport.otherwise(Answer::retry_after(429, "25"));
  EXPECT_EQ(await(client.get(kNodes, {"", "n"})).error().reason, Reason::too_many_requests);
  EXPECT_EQ(transport.requests.size(), 3U) << "two waits of 25 s fit into 60 s, a third does not";
}

TEST_F(ClientTest, no_attempt_starts_or_lives_past_the_deadline) {
  transport.otherwise(Answer::retry_after(503, "4"));
  CallOptions options;
  options.deadline = clock.monotonic() + 10s;
  EXPECT_FALSE(await(client.get(kNodes, {"", "n"}, options)));
  EXPECT_EQ(transport.requests.size(), 3U);
  EXPECT_EQ(transport.requests.at(0).timeout, 10s);
  EXPECT_EQ(transport.requests.at(2).timeout, 2s);
  EXPECT_LE(seconds(), 10);

  transport.requests.clear();
  WriteOptions late;
  late.deadline = clock.monotonic();
  const auto written = await(client.merge_patch(kNodes, {"", "n"}, "{}", late));
  EXPECT_EQ(written.error().reason, Reason::timeout);
  EXPECT_TRUE(written.error().never_sent);
  EXPECT_THAT(transport.requests, IsEmpty());
}

// A person who types a command has given it one time for each request, whatever the server makes of it.
TEST_F(ClientTest, ACallWithItsAttemptsAndItsTurnInTheLaneEndsAtItsTimeout) {
  ClientOptions bounded = options();
  bounded.call_timeout = 10s;
  ApiClient person(&transport, &clock, bounded);
  transport.otherwise(Answer::retry_after(503, "4"));
  EXPECT_EQ(await(person.get(kNodes, {"", "n"})).error().http_status, 503);
  EXPECT_EQ(transport.requests.size(), 3U);
  EXPECT_EQ(transport.requests.at(0).timeout, 10s);
  EXPECT_LE(seconds(), 10);

  // The lane is closed for longer than the second call can wait.
  transport.otherwise(Answer::retry_after(503, "30"));
  const MonoTime begun = clock.monotonic();
  (void)await(person.get(kNodes, {"", "n"}));
  EXPECT_FALSE(await(person.get(kNodes, {"", "m"})));
  EXPECT_LE(clock.monotonic() - begun, 20s);
  EXPECT_EQ(transport.requests.size(), 4U) << "the last one was not sent";

  CallOptions nearer;
  nearer.deadline = clock.monotonic() + 2s;
  EXPECT_FALSE(await(person.get(kNodes, {"", "n"}, nearer)));
  EXPECT_LE(clock.monotonic() - begun, 22s) << "a nearer deadline of the call holds";
}

TEST_F(ClientTest, APauseOfTheLanesIsNoLongerThanTheLongest) {
  ClientOptions short_pauses = options();
  short_pauses.max_retries = 0;
  short_pauses.longest_pause = 500ms;
  ApiClient person(&transport, &clock, short_pauses);
  transport.otherwise(Answer::code(500));
  for (int i = 0; i < 12; ++i) EXPECT_FALSE(await(person.get(kNodes, {"", "n"})));
  EXPECT_EQ(transport.requests.size(), 12U);
  EXPECT_LE(seconds(), 6);
}

TEST_F(ClientTest, the_lease_check_is_asked_before_every_attempt_of_a_write) {
  int asked = 0;
  WriteOptions options;
  options.before_send = [&asked]() -> Result<void> {
    if (++asked < 2) return {};
    return fail(Reason::cancelled, "the lease is lost");
  };
  transport.then(Answer::code(429));
  const auto written = await(client.merge_patch(kNodes, {"", "n"}, "{}", options));
  EXPECT_EQ(written.error().message, "the lease is lost");
  EXPECT_EQ(transport.requests.size(), 1U);
}

// g++ 12 copies aggregate temporaries in a co_await expression bit by bit; what is passed by value must be none.
boost::asio::awaitable<Result<std::string>> call_with_temporaries(ApiClient* client) {
  auto read = co_await client->get({"", "v1", "nodes"}, {"", "n"});
  if (!read) co_return read;
  auto removed = co_await client->remove({"", "v1", "pods"}, {"ns", "p"}, {}, {});
  if (!removed) co_return std::unexpected(removed.error());
  auto served = co_await client->served({"apps", "v1", "daemonsets"});
  if (!served) co_return std::unexpected(served.error());
  auto written = co_await client->merge_patch({"", "v1", "nodes"}, {"", "n"}, "{}");
  co_return written;
}

TEST_F(ClientTest, coroutines_may_pass_temporaries_and_default_arguments) {
  transport.otherwise(Answer::ok(R"({"kind":"APIResourceList","resources":[]})"));
  EXPECT_TRUE(await(call_with_temporaries(&client)));
  EXPECT_THAT(paths(), ElementsAre("/api/v1/nodes/n", "/api/v1/namespaces/ns/pods/p", "/apis/apps/v1",
                                   "/api/v1/nodes/n?fieldManager=tester"));
}

}  // namespace
}  // namespace k8s::test::client_test
