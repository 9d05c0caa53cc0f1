// An outage of the API server as one line: its first time and cause, whatever fails after them.
#include "controller/reading/reads.h"

#include <gmock/gmock.h>

#include "k8sclient/api/client.h"
#include "k8sclient/value/time.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::reads_test {
namespace {

using namespace std::chrono_literals;
using k8s::test::Answer;

const k8s::WallTime kThen = *k8s::parse_rfc3339("2026-03-01T10:00:00Z");

TEST(ServerOutage, NamesTheHostTheTimeAndTheCauseOfItsFirstError) {
  ServerOutage outage;
  EXPECT_FALSE(outage.is_on());
  outage.failed(
      {k8s::Reason::transport, 0,
       "watch daemonsets: GET /apis/apps/v1/daemonsets?watch=true&timeoutSeconds=519 on 127.0.0.1:6443: cannot "
       "connect: Connection refused"},
      kThen);
  const std::string first =
      "the API server at 127.0.0.1:6443 cannot be reached since 2026-03-01T10:00:00Z, and this view is older: cannot "
      "connect: Connection refused";
  EXPECT_EQ(outage.line(), first);
  outage.failed({k8s::Reason::timeout, 0, "list nodes: GET /api/v1/nodes?limit=500 on h: no answer"}, kThen + 1min);
  EXPECT_EQ(outage.line(), first);
  outage.over();
  EXPECT_EQ(outage.line(), "");
  outage.failed({k8s::Reason::unavailable, 503, "list nodes: shutting down (HTTP 503)"}, kThen + 2min);
  EXPECT_EQ(outage.line(),
            "the API server cannot be reached since 2026-03-01T10:02:00Z, and this view is older: list nodes: shutting "
            "down (HTTP 503)");
}

TEST(ServerOutage, AnAnswerIsNone) {
  EXPECT_TRUE(is_no_answer({k8s::Reason::transport, 0, ""}));
  EXPECT_TRUE(is_no_answer({k8s::Reason::timeout, 0, ""}));
  EXPECT_TRUE(is_no_answer({k8s::Reason::unavailable, 502, ""}));
  EXPECT_FALSE(is_no_answer({k8s::Reason::unavailable, 500, ""}));
  EXPECT_FALSE(is_no_answer({k8s::Reason::forbidden, 403, ""}));
  EXPECT_FALSE(is_no_answer({k8s::Reason::expired, 410, ""}));
}

TEST(ServerOutage, TheQueryOfARequestIsLeftOut) {
  EXPECT_EQ(without_query("watch nodes: GET /api/v1/nodes?watch=true on h: no events"),
            "watch nodes: GET /api/v1/nodes on h: no events");
  EXPECT_EQ(without_query("GET /version?timeout=1"), "GET /version");
  EXPECT_EQ(without_query("GET /version on h: is the address right?"), "GET /version on h: is the address right?");
  EXPECT_EQ(without_query("is it running?"), "is it running?");
}

using testing::ElementsAre;

const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
const std::string kGroup =
    R"({"kind":"APIResourceList","groupVersion":"gpusharing.dev/v1alpha1","resources":[{"name":"sharingpolicies"}]})";

TEST(DiscoveryOnce, AsksTheGroupWhereOnlyTheListOfAllKindsIsForbidden) {
  Sim sim;
  k8s::test::ScriptedTransport transport(&sim.clock, [](const k8s::HttpRequest& request) {
    return request.path == "/apis" ? Answer::status_of(403, "Forbidden", "no") : Answer::json(200, kGroup);
  });
  k8s::ApiClient client(&transport, &sim.clock, {});
  DiscoveryOnce discovery(&client);
  for (int asked = 0; asked < 2; ++asked) {
    const k8s::Result<bool> served = sim.run(discovery.served(kPolicies));
    ASSERT_TRUE(served.has_value()) << served.error().message;
    EXPECT_TRUE(*served);
  }
  EXPECT_THAT(transport.lines(),
              ElementsAre("GET /apis", "GET /apis/gpusharing.dev/v1alpha1", "GET /apis/gpusharing.dev/v1alpha1"));
}

TEST(DiscoveryOnce, SaysThatTheServerFailsWithoutAskingEachGroup) {
  Sim sim;
  k8s::test::ScriptedTransport transport(&sim.clock, [](const k8s::HttpRequest&) { return Answer::broken(); });
  k8s::ClientOptions options;
  options.max_retries = 0;
  k8s::ApiClient client(&transport, &sim.clock, options);
  DiscoveryOnce discovery(&client);
  for (int asked = 0; asked < 2; ++asked) EXPECT_FALSE(sim.run(discovery.served(kPolicies)).has_value());
  EXPECT_THAT(transport.lines(), testing::Each("GET /apis"));
}

}  // namespace
}  // namespace gso::reads_test
