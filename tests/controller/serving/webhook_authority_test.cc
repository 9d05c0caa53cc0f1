// The caBundle of the webhook's configuration: who writes it, when, and that nothing else of it changes.
#include "controller/serving/webhook_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "k8sclient/value/base64.h"
#include "tests/controller/scripted_transport.h"
#include "tests/controller/sim_time.h"

namespace gso::webhook_authority_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WebhookAuthorityTest : public testing::Test {
 protected:
  ScriptedAnswer answer(const k8s::HttpRequest& request) {
    if (!exists) return ScriptedAnswer::status(404, "NotFound", "validatingwebhookconfigurations \"hook\" not found");
    if (request.method == k8s::Method::get) {
      ++reads;
      return ScriptedAnswer::json(200, configuration.dump());
    }
    const json patch = json::parse(request.body);
    if (patch["metadata"]["resourceVersion"] != configuration["metadata"]["resourceVersion"]) {
      return ScriptedAnswer::status(409, "Conflict", "the object has been modified");
    }
    ++writes;
    configuration.merge_patch(patch);
    configuration["metadata"]["resourceVersion"] = std::to_string(100 + writes);
    return ScriptedAnswer::json(200, configuration.dump());
  }

  void start() {
    WebhookAuthority::Parts parts;
    parts.reader = &client;
    parts.writer = &client;
    parts.clock = &sim.clock;
    parts.configuration = "hook";
    parts.authorities = [this] { return published; };
    parts.may_write = [this]() -> k8s::Result<void> {
      if (leads) return {};
      return k8s::fail(k8s::Reason::cancelled, "the lease is not held");
    };
    parts.events.failed = [this](const k8s::Error& error) { failures.push_back(error.message); };
    authorities.push_back(std::make_unique<WebhookAuthority>(std::move(parts)));
    sim.start(authorities.back()->run());
  }

  std::vector<std::string> bundles() const {
    std::vector<std::string> out;
    for (const json& webhook : configuration["webhooks"])
      out.push_back(k8s::base64_decode(webhook["clientConfig"].value("caBundle", "")).value_or("?"));
    return out;
  }

  Sim sim;
  ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest& request) { return answer(request); }};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  json configuration{{"metadata", {{"name", "hook"}, {"resourceVersion", "7"}}},
                     {"webhooks",
                      {{{"name", "a"}, {"clientConfig", {{"service", {{"name", "s"}}}}}, {"timeoutSeconds", 2}},
                       {{"name", "b"}, {"clientConfig", {{"service", {{"name", "s"}}}}}}}}};
  std::string published = "PEM 1";
  std::vector<std::unique_ptr<WebhookAuthority>> authorities;  // Each runs to the end of the test.
  bool exists = true;
  bool leads = true;
  int reads = 0;
  int writes = 0;
  std::vector<std::string> failures;
};

TEST_F(WebhookAuthorityTest, TheLeaderWritesItOnceAndLeavesTheRest) {
  json expected = configuration;
  start();
  sim.clock.run_for(10min);
  EXPECT_EQ(writes, 1);
  EXPECT_THAT(bundles(), ElementsAre("PEM 1", "PEM 1"));
  for (json& webhook : expected["webhooks"]) webhook["clientConfig"]["caBundle"] = k8s::base64_encode("PEM 1");
  EXPECT_EQ(configuration["webhooks"], expected["webhooks"]);
  EXPECT_THAT(failures, IsEmpty());
}

TEST_F(WebhookAuthorityTest, AnAuthorityThatIsPublishedLaterFollowsAndSoDoesAnUpgradeThatDropsIt) {
  start();
  sim.clock.run_for(5min);
  published = "PEM 1PEM 2";
  sim.clock.run_for(1min);
  EXPECT_THAT(bundles(), ElementsAre("PEM 1PEM 2", "PEM 1PEM 2"));
  configuration["webhooks"][1]["clientConfig"].erase("caBundle");
  sim.clock.run_for(1min);
  EXPECT_THAT(bundles(), ElementsAre("PEM 1PEM 2", "PEM 1PEM 2"));
  EXPECT_EQ(writes, 3);
}

// The Secret was lost, and the authority that replaces it signs at once.
TEST_F(WebhookAuthorityTest, AnotherAuthorityIsPublishedWithinSeconds) {
  start();
  sim.clock.run_for(5min);
  const int before = reads;
  published = "PEM of another";
  sim.clock.run_for(2s);
  EXPECT_THAT(bundles(), ElementsAre("PEM of another", "PEM of another"));
  sim.clock.run_for(10min);
  EXPECT_LE(reads - before, 12) << "once a minute";
}

TEST_F(WebhookAuthorityTest, AStandbyAsksAndWritesNothing) {
  leads = false;
  start();
  sim.clock.run_for(5min);
  EXPECT_EQ(reads + writes, 0);
  leads = true;
  sim.clock.run_for(3s);
  EXPECT_EQ(writes, 1);
}

TEST_F(WebhookAuthorityTest, NothingIsWrittenBeforeThereIsAnAuthority) {
  published.clear();
  start();
  sim.clock.run_for(1min);
  EXPECT_EQ(writes, 0);
  published = "PEM";
  sim.clock.run_for(3s);
  EXPECT_EQ(writes, 1);
}

TEST_F(WebhookAuthorityTest, AMissingConfigurationIsNamed) {
  exists = false;
  start();
  sim.clock.run_for(5s);
  ASSERT_FALSE(failures.empty());
  EXPECT_THAT(failures.front(), HasSubstr("the chart creates it with admissionWebhook.enabled"));
  exists = true;
  sim.clock.run_for(3s);
  EXPECT_EQ(writes, 1);
}

TEST_F(WebhookAuthorityTest, AConfigurationOfAnotherFormIsLeftAlone) {
  for (const json& webhooks : {json(), json("text"), json::array(), json::array({4, nullptr})}) {
    configuration["webhooks"] = webhooks;
    start();
    sim.clock.run_for(5s);
    EXPECT_EQ(writes, 0) << webhooks;
  }
}

}  // namespace
}  // namespace gso::webhook_authority_test
