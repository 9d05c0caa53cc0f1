// ApiClient: what it sends, what it makes of answers, what it retries; lists, discovery, metav1.Status.
#include "k8sclient/client.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8sclient/status.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const Gvr kNodes{"", "v1", "nodes"};
const Gvr kSets{"apps", "v1", "daemonsets"};

struct ClientTest : ClientFixture {
  struct Recorded {
    std::string verb;
    std::string resource;
    bool retry = false;
  };
  std::vector<Recorded> records;
  ApiClient client{&transport, &clock, options()};

  ClientOptions options() {
    ClientOptions out;
    out.field_manager = "tester";
    out.on_request = [this](const RequestRecord& record) {
      records.push_back({std::string(record.verb), std::string(record.resource), record.retry});
    };
    return out;
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& request : transport.requests) out.push_back(request.path);
    return out;
  }
};

// --- Status -> Error ---

TEST(StatusErrors, give_the_reason_that_the_caller_acts_on) {
  const struct {
    int code;
    const char* status_reason;
    Reason reason;
  } cases[] = {
      {404, "NotFound", Reason::not_found},
      {409, "AlreadyExists", Reason::already_exists},
      {409, "Conflict", Reason::conflict},
      {409, "", Reason::conflict},
      {410, "Expired", Reason::expired},
      {410, "Gone", Reason::expired},
      {410, "", Reason::expired},
      {422, "Invalid", Reason::invalid},
      {400, "BadRequest", Reason::invalid},
      {405, "MethodNotAllowed", Reason::invalid},
      {413, "RequestEntityTooLarge", Reason::invalid},
      {415, "", Reason::invalid},
      {403, "Forbidden", Reason::forbidden},
      {401, "Unauthorized", Reason::unauthorized},
      {429, "TooManyRequests", Reason::too_many_requests},
      {504, "Timeout", Reason::timeout},
      {500, "ServerTimeout", Reason::unavailable},
      {500, "InternalError", Reason::unavailable},
      {503, "ServiceUnavailable", Reason::unavailable},
      {502, "", Reason::unavailable},
      {504, "", Reason::timeout},
      {301, "", Reason::invalid},
  };
  for (const auto& c : cases) EXPECT_EQ(reason_of(c.code, c.status_reason), c.reason) << c.code << c.status_reason;
}

TEST(StatusErrors, show_message_causes_and_retry_after) {
  const Error error = error_from_answer(
      422, R"({"kind":"Status","message":"Node \"n\" is invalid","reason":"Invalid","code":422,"details":{"causes":[
        {"reason":"FieldValueInvalid","message":"must be short","field":"metadata.labels"},
        {"message":"Node \"n\" is invalid"}],"retryAfterSeconds":3}})",
      "", "patch nodes n");
  EXPECT_EQ(error.reason, Reason::invalid);
  EXPECT_EQ(error.http_status, 422);
  EXPECT_EQ(error.message, "patch nodes n: Node \"n\" is invalid (metadata.labels: must be short) (HTTP 422)");
  EXPECT_EQ(error.retry_after, 3s);
  EXPECT_EQ(error_from_answer(429, "", "7", "x").retry_after, 7s);
  EXPECT_EQ(error_from_answer(429, "", "Wed, 21 Oct 2026 07:28:00 GMT", "x").retry_after, std::nullopt);
}

TEST(StatusErrors, quote_a_body_that_is_no_status_and_survive_any) {
  EXPECT_EQ(error_from_answer(502, "<html>\n  <b>Bad   Gateway</b></html>\n", "", "list nodes").message,
            "list nodes: HTTP 502: <html> <b>Bad Gateway</b></html>");
  EXPECT_EQ(error_from_answer(503, "", "", "list nodes").message, "list nodes: HTTP 503");
  EXPECT_LT(error_from_answer(500, std::string(100'000, 'x'), "", "x").message.size(), 300U);
  for (const char* body : {"null", "[]", "{", R"({"kind":"Status"})", R"({"kind":"Status","code":"x","details":[]})",
                           R"({"kind":"Status","details":{"causes":[1,{}],"retryAfterSeconds":-1}})", "\xff\xfe"}) {
    EXPECT_EQ(error_from_answer(404, body, "", "x").reason, Reason::not_found) << body;
  }
  EXPECT_EQ(error_from_answer(0, R"({"kind":"Status","code":410,"reason":"Expired"})", "", "x").http_status, 410);
}

// --- Requests ---

TEST_F(ClientTest, each_verb_sends_what_the_api_server_expects) {
  transport.otherwise(Answer::ok("{}"));
  const ObjectKey node{"", "n1"};
  WriteOptions status;
  status.subresource = "status";
  WriteOptions forced;
  forced.force = true;
  forced.field_manager = "other";
  ASSERT_TRUE(await(client.get(kNodes, node)));
  ASSERT_TRUE(await(client.create(kSets, "ns", "C")));
  ASSERT_TRUE(await(client.update(kNodes, node, "U")));
  ASSERT_TRUE(await(client.merge_patch(kNodes, node, "M", status)));
  ASSERT_TRUE(await(client.json_patch(kNodes, node, "J")));
  ASSERT_TRUE(await(client.apply(kSets, {"ns", "d"}, "A", forced)));
  const struct {
    Method method;
    const char* path;
    const char* type;
    const char* body;
  } cases[] = {
      {Method::get, "/api/v1/nodes/n1", "", ""},
      {Method::post, "/apis/apps/v1/namespaces/ns/daemonsets?fieldManager=tester", "application/json", "C"},
      {Method::put, "/api/v1/nodes/n1?fieldManager=tester", "application/json", "U"},
      {Method::patch, "/api/v1/nodes/n1/status?fieldManager=tester", "application/merge-patch+json", "M"},
      {Method::patch, "/api/v1/nodes/n1?fieldManager=tester", "application/json-patch+json", "J"},
      {Method::patch, "/apis/apps/v1/namespaces/ns/daemonsets/d?fieldManager=other&force=true",
       "application/apply-patch+yaml", "A"},
  };
  ASSERT_EQ(transport.requests.size(), std::size(cases));
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const HttpRequest& request = transport.requests[i];
    EXPECT_EQ(request.method, cases[i].method);
    EXPECT_EQ(request.path, cases[i].path);
    EXPECT_EQ(request.content_type, cases[i].type);
    EXPECT_EQ(request.body, cases[i].body);
  }
  EXPECT_EQ(records.at(5).verb, "APPLY");
  EXPECT_EQ(records.at(5).resource, "daemonsets");
}

TEST_F(ClientTest, deletes_and_evictions_carry_their_preconditions) {
  transport.otherwise(Answer::ok("{}"));
  DeleteOptions options;
  options.uid = "uid-1";
  options.resource_version = "42";
  options.grace_period_seconds = 0;
  options.propagation_policy = "Background";
  WriteOptions dry;
  dry.dry_run = true;
  ASSERT_TRUE(await(client.remove({"", "v1", "pods"}, {"ns", "p"}, options)));
  ASSERT_TRUE(await(client.evict({"ns", "p"}, options, dry)));
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
  EXPECT_EQ(eviction["deleteOptions"]["dryRun"], json::array({"All"}));
  EXPECT_EQ(json::parse(transport.requests[2].body), (json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}}));
}

TEST_F(ClientTest, errors_name_the_attempt_and_the_object) {
  transport.then(Answer::status_of(404, "NotFound", "nodes n1 not found"));
  transport.then(Answer::status_of(403, "Forbidden", "no"));
  const auto got = await(client.get(kNodes, {"", "n1"}));
  EXPECT_EQ(got.error(), (Error{Reason::not_found, 404, "get nodes n1: nodes n1 not found (HTTP 404)"}));
  const auto patched = await(client.merge_patch(kSets, {"ns", "d"}, "{}"));
  EXPECT_THAT(patched.error().message, StartsWith("patch daemonsets ns/d: no"));
}

// --- Retries ---

TEST_F(ClientTest, reads_are_retried_and_writes_only_when_they_were_not_executed) {
  struct Case {
    const char* what;
    Answer answer;
    bool read_again;
    bool write_again;
  };
  const std::vector<Case> cases = {
      {"429", Answer::code(429), true, true},
      {"429 with Retry-After", Answer::retry_after(429, "2"), true, true},
      {"500", Answer::code(500), true, false},
      {"503", Answer::code(503), true, false},
      {"503 with Retry-After", Answer::retry_after(503, "1"), true, true},
      {"504", Answer::code(504), true, false},
      {"500 with Retry-After", Answer::retry_after(500, "1"), true, false},
      {"no answer", Answer::broken(), true, false},
      {"timeout", Answer::broken(Reason::timeout), true, false},
      {"cancelled", Answer::broken(Reason::cancelled), false, false},
      {"404", Answer::code(404), false, false},
      {"409", Answer::code(409), false, false},
      {"401", Answer::code(401), false, false},
      {"403", Answer::code(403), false, false},
      {"422", Answer::code(422), false, false},
  };
  for (const Case& c : cases) {
    transport.requests.clear();
    transport.then(c.answer);
    if (c.read_again) transport.then(Answer::ok("{}"));
    EXPECT_EQ(await(client.get(kNodes, {"", "n"})).has_value(), c.read_again) << c.what;
    EXPECT_EQ(transport.requests.size(), c.read_again ? 2U : 1U) << c.what;
    transport.requests.clear();
    transport.then(c.answer);
    if (c.write_again) transport.then(Answer::ok("{}"));
    EXPECT_EQ(await(client.merge_patch(kNodes, {"", "n"}, "{}")).has_value(), c.write_again) << c.what;
    EXPECT_EQ(transport.requests.size(), c.write_again ? 2U : 1U) << c.what;
  }
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
  for (std::size_t i = 1; i < transport.times.size(); ++i) {
    gaps.push_back(std::chrono::duration<double>(transport.times[i] - transport.times[i - 1]).count());
  }
  using testing::AllOf;
  using testing::DoubleEq;
  using testing::Ge;
  using testing::Le;
  EXPECT_THAT(gaps,
              ElementsAre(DoubleEq(7), AllOf(Ge(0.4), Le(0.6)), AllOf(Ge(0.8), Le(1.2)), AllOf(Ge(1.6), Le(2.4))));
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
  EXPECT_THAT(transport.requests, IsEmpty());
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

// --- Lists ---

struct Names : ItemSink {
  std::vector<std::string> names;
  int restarts = 0;
  void restart() override {
    names.clear();
    ++restarts;
  }
  Result<void> item(std::string_view text) override {
    names.push_back(json::parse(text)["metadata"]["name"]);
    return {};
  }
};

TEST_F(ClientTest, a_list_is_read_page_by_page) {
  transport.then(Answer::ok(page(10, {"a", "b"}, "tok/1")));
  transport.then(Answer::ok(page(10, {"c"})));
  Names names;
  ListOptions options;
  options.label_selector = *LabelSelector::parse("x=y");
  options.field_selector = FieldSelector::equals("spec.nodeName", "n");
  options.resource_version = "0";
  options.resource_version_match = "NotOlderThan";
  options.page_limit = 2;
  EXPECT_EQ(await(client.list(kNodes, options, &names)).value(), "10");
  EXPECT_THAT(names.names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(paths(), ElementsAre("/api/v1/nodes?labelSelector=x%3Dy&fieldSelector=spec.nodeName%3Dn&limit=2"
                                   "&resourceVersion=0&resourceVersionMatch=NotOlderThan",
                                   "/api/v1/nodes?labelSelector=x%3Dy&fieldSelector=spec.nodeName%3Dn&limit=2"
                                   "&continue=tok%2F1"));
}

TEST_F(ClientTest, an_expired_continue_token_restarts_the_list_once) {
  transport.then(Answer::ok(page(10, {"a"}, "t")));
  transport.then(Answer::status_of(410, "Expired"));
  transport.then(Answer::ok(page(20, {"a"}, "u")));
  transport.then(Answer::ok(page(20, {"b"})));
  Names names;
  EXPECT_EQ(await(client.list(kNodes, {}, &names)).value(), "20");
  EXPECT_THAT(names.names, ElementsAre("a", "b"));
  EXPECT_EQ(names.restarts, 1);

  for (int i = 0; i < 2; ++i) {
    transport.then(Answer::ok(page(10, {"a"}, "t")));
    transport.then(Answer::status_of(410, "Expired"));
  }
  EXPECT_EQ(await(client.list(kNodes, {}, &names)).error().reason, Reason::expired);
}

TEST_F(ClientTest, a_body_that_is_no_complete_list_is_a_decode_error) {
  const std::string good = page(10, {"a", "b"});
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    transport.then(Answer::ok(good.substr(0, cut)));
    Names names;
    const auto listed = await(client.list(kNodes, {}, &names));
    ASSERT_FALSE(listed) << cut;
    EXPECT_EQ(listed.error().reason, Reason::decode) << cut;
  }
  for (const char* body : {"[]", "{}", "null", "<html>", R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[1]})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[]} x)"}) {
    transport.then(Answer::ok(body));
    Names names;
    EXPECT_EQ(await(client.list(kNodes, {}, &names)).error().reason, Reason::decode) << body;
  }
}

TEST_F(ClientTest, an_empty_list_may_be_null_and_metadata_may_come_last) {
  transport.then(Answer::ok(R"({"items":null,"metadata":{"resourceVersion":"5"}})"));
  transport.then(Answer::ok(
      R"({"items":[{"metadata":{"name":"a"}} , {"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"6"}})"));
  Names names;
  EXPECT_EQ(await(client.list(kNodes, {}, &names)).value(), "5");
  EXPECT_EQ(await(client.list(kNodes, {}, &names)).value(), "6");
  EXPECT_THAT(names.names, ElementsAre("a", "b"));
}

TEST_F(ClientTest, a_sink_can_end_a_list_with_its_own_error) {
  transport.then(Answer::ok(page(10, {"a", "b"})));
  ItemFunction sink([](std::optional<std::string_view>) -> Result<void> { return fail(Reason::invalid, "enough"); });
  EXPECT_THAT(await(client.list(kNodes, {}, &sink)).error().message, HasSubstr("enough"));
}

// --- Discovery ---

constexpr const char* kAggregatedApis =
    R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
  {"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
    {"resource":"daemonsets","responseKind":{"group":"apps","version":"v1","kind":"DaemonSet"},"scope":"Namespaced",
     "verbs":["get","list"],"subresources":[{"subresource":"status"}]}]}]},
  {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale","resources":[]}]}]})";
constexpr const char* kAggregatedCore = R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[
  {"version":"v1","resources":[{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster"}]}]}]})";

TEST_F(ClientTest, aggregated_discovery_takes_two_requests) {
  transport.then(Answer::ok(kAggregatedCore));
  transport.then(Answer::ok(kAggregatedApis));
  const auto found = await(client.discover());
  ASSERT_TRUE(found);
  EXPECT_THAT(paths(), ElementsAre("/api", "/apis"));
  EXPECT_THAT(transport.requests[0].accept, HasSubstr("as=APIGroupDiscoveryList"));
  const ApiResource* sets = found->find(kSets);
  ASSERT_NE(sets, nullptr);
  EXPECT_EQ(*sets, (ApiResource{kSets, "DaemonSet", true, {"get", "list"}, {"status"}}));
  EXPECT_EQ(found->find_kind("", "", "Node")->gvr, kNodes);
  EXPECT_EQ(found->presence(kNodes), Presence::served);
  EXPECT_EQ(found->presence({"gpusharing.dev", "v1alpha1", "sharingpolicies"}), Presence::absent);
  EXPECT_EQ(found->presence({"metrics.k8s.io", "v1beta1", "nodes"}), Presence::unknown) << "stale is not absent";
}

TEST_F(ClientTest, discovery_falls_back_to_single_documents_and_keeps_failures_apart_from_absence) {
  transport.then(Answer::ok(R"({"kind":"APIVersions","versions":["v1"]})"));
  transport.then(Answer::ok(R"({"kind":"APIResourceList","groupVersion":"v1","resources":[
    {"name":"nodes","kind":"Node","namespaced":false,"verbs":["list"]},{"name":"nodes/status","kind":"Node"}]})"));
  transport.then(Answer::ok(R"({"kind":"APIGroupList","groups":[
    {"name":"broken.io","versions":[{"groupVersion":"broken.io/v1"}]},
    {"name":"apps","versions":[{"groupVersion":"apps/v1beta1"},{"groupVersion":"apps/v1"}],
     "preferredVersion":{"groupVersion":"apps/v1"}}]})"));
  transport.then(Answer::status_of(403, "Forbidden"));
  transport.then(Answer::ok(
      R"({"kind":"APIResourceList","resources":[{"name":"daemonsets","kind":"DaemonSet","namespaced":true}]})"));
  transport.then(Answer::ok(R"({"kind":"APIResourceList","resources":null})"));
  const auto found = await(client.discover());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(paths(),
              ElementsAre("/api", "/api/v1", "/apis", "/apis/broken.io/v1", "/apis/apps/v1", "/apis/apps/v1beta1"));
  EXPECT_THAT(found->find(kNodes)->subresources, ElementsAre("status"));
  EXPECT_EQ(found->presence({"broken.io", "v1", "things"}), Presence::unknown);
  EXPECT_EQ(found->failed.at("broken.io/v1").reason, Reason::forbidden);
  EXPECT_EQ(found->presence({"apps", "v1beta1", "daemonsets"}), Presence::absent);
}

TEST_F(ClientTest, discovery_fails_when_the_group_list_cannot_be_read) {
  transport.then(Answer::status_of(404, "NotFound"));  // No core group: fine.
  transport.then(Answer::status_of(403, "Forbidden"));
  EXPECT_EQ(await(client.discover()).error().reason, Reason::forbidden);
  transport.then(Answer::ok(kAggregatedCore));
  transport.then(Answer::ok("<html>welcome</html>"));
  EXPECT_EQ(await(client.discover()).error().reason, Reason::decode);
}

TEST_F(ClientTest, an_api_is_absent_only_when_discovery_documents_say_so) {
  const Gvr policies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
  const char* groups = R"({"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1"}]}]})";
  transport.then(Answer::code(404, "404 page not found"));
  transport.then(Answer::ok(groups));
  EXPECT_EQ(await(client.served(policies)).value(), false);

  transport.then(
      Answer::ok(R"({"kind":"APIResourceList","resources":[{"name":"sharingpolicies","kind":"SharingPolicy"}]})"));
  EXPECT_EQ(await(client.served(policies)).value(), true);
  transport.then(Answer::ok(R"({"kind":"APIResourceList","resources":[]})"));
  EXPECT_EQ(await(client.served(policies)).value(), false);

  for (const Answer& second : {Answer::code(404), Answer::code(403), Answer::ok("<html>"),
                               Answer::ok(R"({"kind":"APIGroupList","groups":[{"name":"gpusharing.dev","versions":[
                                 {"groupVersion":"gpusharing.dev/v1alpha1"}]}]})")}) {
    transport.then(Answer::code(404));
    transport.then(second);
    EXPECT_FALSE(await(client.served(policies))) << second.body;
  }
  transport.then(Answer::status_of(403, "Forbidden"));
  EXPECT_EQ(await(client.served(policies)).error().reason, Reason::forbidden);
}

// --- Opening a watch ---

TEST_F(ClientTest, a_watch_asks_for_bookmarks_and_a_refused_one_is_its_status) {
  transport.then(Answer::streaming({}));
  WatchOptions options;
  options.ns = "ns";
  options.resource_version = "7";
  options.timeout = 300s;
  ASSERT_TRUE(await(client.open_watch(kSets, options)));
  options.resource_version.clear();
  options.send_initial_events = true;
  transport.then(Answer::status_of(422, "Invalid", "sendInitialEvents is forbidden"));
  const auto refused = await(client.open_watch(kSets, options));
  EXPECT_THAT(refused.error().message, StartsWith("watch daemonsets in ns: sendInitialEvents is forbidden"));
  EXPECT_THAT(paths(), ElementsAre("/apis/apps/v1/namespaces/ns/daemonsets?watch=true&resourceVersion=7"
                                   "&allowWatchBookmarks=true&timeoutSeconds=300",
                                   "/apis/apps/v1/namespaces/ns/daemonsets?watch=true&allowWatchBookmarks=true"
                                   "&timeoutSeconds=300&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
  EXPECT_EQ(transport.open_streams, 0);
}

}  // namespace
}  // namespace k8s::test
