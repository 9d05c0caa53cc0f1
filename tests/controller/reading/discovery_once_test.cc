// Which kinds are served, where a person's rights do not reach the list of all kinds.
#include "controller/reading/reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "k8sclient/api/client.h"
#include "tests/controller/scripted_transport.h"
#include "tests/controller/sim_time.h"

namespace gso::discovery_once_test {
namespace {

using testing::ElementsAre;

const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
const std::string kGroup =
    R"({"kind":"APIResourceList","groupVersion":"gpusharing.dev/v1alpha1","resources":[{"name":"sharingpolicies"}]})";

TEST(DiscoveryOnce, AsksTheGroupWhereOnlyTheListOfAllKindsIsForbidden) {
  Sim sim;
  ScriptedTransport transport(&sim.clock, [](const k8s::HttpRequest& request) {
    return request.path == "/apis" ? ScriptedAnswer::status(403, "Forbidden", "no") : ScriptedAnswer::json(200, kGroup);
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
  ScriptedTransport transport(&sim.clock, [](const k8s::HttpRequest&) { return ScriptedAnswer::broken(); });
  k8s::ClientOptions options;
  options.max_retries = 0;
  k8s::ApiClient client(&transport, &sim.clock, options);
  DiscoveryOnce discovery(&client);
  for (int asked = 0; asked < 2; ++asked) EXPECT_FALSE(sim.run(discovery.served(kPolicies)).has_value());
  EXPECT_THAT(transport.lines(), testing::Each("GET /apis"));
}

}  // namespace
}  // namespace gso::discovery_once_test
