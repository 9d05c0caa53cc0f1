// Which kinds a server's aggregated discovery names, and what it leaves open.
#include "k8sclient/api/discovery.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/k8sclient/api/client_fixture.h"

namespace k8s::test::discovery_test {
namespace {

const std::string kDocument = R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
  {"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
    {"resource":"daemonsets","scope":"Namespaced"},{"resource":"deployments","scope":"Namespaced"}]}]},
  {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]}]})";

TEST(AggregatedDiscovery, NamesAllKindsAndLeavesThoseOfASilentServerOpen) {
  const Result<ServedKinds> kinds = decode_aggregated_discovery(kDocument);
  ASSERT_TRUE(kinds.has_value());
  EXPECT_EQ(kinds->serves({"apps", "v1", "daemonsets"}), true);
  EXPECT_EQ(kinds->serves({"apps", "v1", "replicasets"}), false);
  EXPECT_EQ(kinds->serves({"apps", "v2", "daemonsets"}), false);
  EXPECT_EQ(kinds->serves({"nvidia.com", "v1", "clusterpolicies"}), false);
  EXPECT_EQ(kinds->serves({"metrics.k8s.io", "v1beta1", "nodes"}), std::nullopt);
  EXPECT_EQ(kinds->serves({"", "v1", "nodes"}), std::nullopt) << "/apis has no core group";
}

TEST(AggregatedDiscovery, KnowsNothingFromAServerThatDoesNotOfferIt) {
  const Result<ServedKinds> kinds = decode_aggregated_discovery(R"({"kind":"APIGroupList","groups":[]})");
  ASSERT_TRUE(kinds.has_value());
  EXPECT_EQ(kinds->serves({"apps", "v1", "daemonsets"}), std::nullopt);
  for (const char* const odd : {"", "<html>", R"({"kind":"Status"})"})
    EXPECT_FALSE(decode_aggregated_discovery(odd).has_value()) << odd;
}

TEST_F(ClientTest, AllKindsAreAskedForByOneRequest) {
  transport.otherwise(Answer::ok(kDocument));
  const Result<ServedKinds> kinds = await(client.discover());
  ASSERT_TRUE(kinds.has_value());
  EXPECT_EQ(kinds->serves(kSets), true);
  ASSERT_EQ(transport.requests.size(), 1U);
  EXPECT_EQ(transport.requests[0].path, "/apis");
  EXPECT_EQ(transport.requests[0].accept.find("application/json;g=apidiscovery.k8s.io;v=v2;"), 0U);
}

}  // namespace
}  // namespace k8s::test::discovery_test
