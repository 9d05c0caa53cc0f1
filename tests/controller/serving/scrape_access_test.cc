// Who may read /metrics, against a scripted API server on simulated time.
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "controller/serving/routes.h"
#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::scrape_access_test {
namespace {

using namespace std::chrono_literals;
using k8s::test::Answer;
using nlohmann::json;
using testing::HasSubstr;

// An API server that knows some tokens ("token-of-NAME") and lets some users get some paths.
class ScrapeAccessTest : public testing::Test {
 protected:
  Answer answer(const k8s::HttpRequest& request) {
    if (!reachable) return Answer::broken();
    if (throws) throw std::runtime_error("a bug");
    const json body = json::parse(request.body);
    if (request.path.find("/tokenreviews") != std::string::npos) {
      ++token_reviews;
      const std::string token = body["spec"]["token"];
      json status{{"authenticated", false}};
      if (token.starts_with("token-of-")) {
        status = {
            {"authenticated", true},
            {"user", {{"username", token.substr(9)}, {"uid", "u-1"}, {"groups", {"g"}}, {"extra", {{"k", {"v"}}}}}}};
      }
      return Answer::json(201, json{{"kind", "TokenReview"}, {"status", status}}.dump(), delay);
    }
    if (request.path.find("/subjectaccessreviews") != std::string::npos) {
      access_reviews.push_back(body["spec"]);
      const bool good = body["spec"]["user"] == allowed_user;
      return Answer::json(201, json{{"kind", "SubjectAccessReview"}, {"status", {{"allowed", good}}}}.dump(), delay);
    }
    return Answer::status_of(404, "NotFound", "not found");
  }
  static HttpRequest with_token(const std::string& token, const std::string& scheme = "Bearer ") {
    HttpRequest out;
    out.method = "GET";
    out.path = "/metrics";
    if (!token.empty()) out.authorization = scheme + token;
    return out;
  }
  int status_of(const HttpRequest& request) {
    last = sim.run(access.check(request));
    return last ? last->status : 200;
  }
  std::string allowed_token() const { return "token-of-" + allowed_user; }
  boost::asio::awaitable<void> note_status(HttpRequest request, std::vector<int>* statuses) {
    const std::optional<HttpAnswer> refused = co_await access.check(std::move(request));
    statuses->push_back(refused ? refused->status : 200);
  }
  std::size_t asked() const { return transport.requests.size(); }

  Sim sim;
  k8s::test::ScriptedTransport transport{&sim.clock,
                                         [this](const k8s::HttpRequest& request) { return answer(request); }};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  ScrapeAccess access{&client, &sim.clock};
  std::string allowed_user = "system:serviceaccount:monitoring:prometheus";
  bool reachable = true;
  bool throws = false;
  k8s::Duration delay{0};
  int token_reviews = 0;
  std::vector<json> access_reviews;
  std::optional<HttpAnswer> last;
};

TEST_F(ScrapeAccessTest, AnAccountThatMayGetThePathIsLetInAndAnotherLearnsWhichRightItLacks) {
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
  ASSERT_EQ(access_reviews.size(), 1U);
  EXPECT_EQ(access_reviews[0], (json{{"user", allowed_user},
                                     {"uid", "u-1"},
                                     {"groups", {"g"}},
                                     {"extra", {{"k", {"v"}}}},
                                     {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}}));
  EXPECT_EQ(status_of(with_token(allowed_token(), "bEARER ")), 200) << "RFC 6750: any case";
  EXPECT_EQ(status_of(with_token("token-of-somebody")), 403);
  EXPECT_THAT(last->body, HasSubstr("somebody is not allowed to get /metrics"));
}

TEST_F(ScrapeAccessTest, WithoutCredentialsOrWithBadOnesTheAnswerIs401) {
  EXPECT_EQ(status_of(with_token("")), 401);
  EXPECT_THAT(last->headers, testing::ElementsAre(testing::Pair("WWW-Authenticate", "Bearer")));
  EXPECT_EQ(status_of(with_token("x", "Basic ")), 401);
  EXPECT_EQ(asked(), 0U);
  EXPECT_EQ(status_of(with_token("unknown")), 401);
  EXPECT_THAT(last->body, testing::Not(HasSubstr("unknown"))) << "no answer repeats a token";
  EXPECT_TRUE(access_reviews.empty());
}

// Else /metrics would answer 429 forever after a few of them.
TEST_F(ScrapeAccessTest, AQuestionThatThrowsIsNotOpenAnyMore) {
  throws = true;
  std::vector<int> statuses;
  std::size_t failed = 0;
  for (std::size_t i = 0; i <= ScrapeAccessLimits{}.most_open; ++i) {
    boost::asio::co_spawn(sim.io, note_status(with_token("token-" + std::to_string(i)), &statuses),
                          [&failed](const std::exception_ptr& error) { failed += error != nullptr ? 1 : 0; });
    sim.io.restart();
    sim.io.poll();
  }
  EXPECT_EQ(failed, ScrapeAccessLimits{}.most_open + 1);
  throws = false;
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
}

TEST_F(ScrapeAccessTest, AClientCertificateNeedsTheRightAsWell) {
  HttpRequest request = with_token("");
  request.client.emplace();
  request.client->user = allowed_user;
  request.client->groups = {"ops"};
  EXPECT_EQ(status_of(request), 200);
  EXPECT_EQ(token_reviews, 0);
  EXPECT_EQ(access_reviews.at(0)["groups"], (json{"ops", "system:authenticated"}));
  request.client->user = "another";
  EXPECT_EQ(status_of(request), 403);
}

TEST_F(ScrapeAccessTest, AnswersAreRememberedForTheirTime) {
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
  EXPECT_EQ(asked(), 2U);
  sim.clock.run_for(59s);
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
  EXPECT_EQ(asked(), 2U);
  allowed_user = "nobody";
  sim.clock.run_for(2s);
  EXPECT_EQ(status_of(with_token("token-of-system:serviceaccount:monitoring:prometheus")), 403);
  EXPECT_EQ(asked(), 4U);
  allowed_user = "system:serviceaccount:monitoring:prometheus";
  EXPECT_EQ(status_of(with_token(allowed_token())), 403);
  sim.clock.run_for(11s);
  EXPECT_EQ(status_of(with_token(allowed_token())), 200) << "a right that was granted counts soon";
}

TEST_F(ScrapeAccessTest, WithoutAnAnswerOfTheServerNobodyIsLetInAndNothingIsRemembered) {
  reachable = false;
  EXPECT_EQ(status_of(with_token(allowed_token())), 503);
  EXPECT_EQ(access.remembered(), 0U);
  reachable = true;
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
}

TEST_F(ScrapeAccessTest, AFloodOfBadTokensAsksLittleAndPushesOutNobodyThatIsAllowed) {
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
  int too_many = 0;
  for (int i = 0; i < 2000; ++i) {
    too_many += status_of(with_token("bad-" + std::to_string(i))) == 429 ? 1 : 0;
    sim.clock.run_for(10ms);
    ASSERT_LE(access.remembered(), 256U);
  }
  EXPECT_GT(too_many, 1800);
  EXPECT_LE(asked(), 2U + 20U + 5U * 20U + 1U) << "20 at once, then 5 a second for 20 s";
  EXPECT_EQ(status_of(with_token(allowed_token())), 200);
}

TEST_F(ScrapeAccessTest, FewQuestionsAreOpenAtOnce) {
  delay = 3s;
  std::vector<int> statuses;
  for (int i = 0; i < 10; ++i) sim.start(note_status(with_token("bad-" + std::to_string(i)), &statuses));
  sim.clock.run_for(10s);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), 429), 6);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), 401), 4);
}

TEST_F(ScrapeAccessTest, OnlyMetricsAsk) {
  Routes routes;
  routes.metrics = std::make_shared<Metrics>();
  routes.ready = routes.live = [] { return ProbeAnswer{}; };
  routes.metrics_access = [this](HttpRequest request) { return access.check(std::move(request)); };
  const HttpHandler handler = make_handler(std::move(routes));
  HttpRequest request = with_token("");
  EXPECT_EQ(sim.run(handler(request)).status, 401);
  request.path = "/healthz";
  EXPECT_EQ(sim.run(handler(request)).status, 200);
  request = with_token(allowed_token());
  EXPECT_EQ(sim.run(handler(request)).status, 200);
}

}  // namespace
}  // namespace gso::scrape_access_test
