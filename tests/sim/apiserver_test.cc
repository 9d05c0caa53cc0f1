// Create, read, update, delete and watch on the simulated API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";

json config_map(std::string name, json data = json::object()) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", std::move(name)}}},
          {"data", std::move(data)}};
}
json node(std::string name, json labels = json::object()) {
  return {
      {"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", std::move(name)}, {"labels", std::move(labels)}}}};
}

TEST(ApiServer, gives_a_new_object_its_identity_and_a_later_one_a_higher_version) {
  Api api;
  const Answer a = api.post(kConfigMaps, config_map("a", {{"k", "v"}}));
  const Answer b = api.post(kConfigMaps, config_map("b"));
  ASSERT_EQ(a.status, 201);
  EXPECT_EQ(a.body["metadata"]["namespace"], "default");
  EXPECT_EQ(a.body["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
  EXPECT_EQ(a.body["metadata"]["uid"].get<std::string>().size(), 36U);
  EXPECT_NE(a.body["metadata"]["uid"], b.body["metadata"]["uid"]);
  EXPECT_LT(std::stoi(a.revision()), std::stoi(b.revision()));
  EXPECT_EQ(api.get(std::string(kConfigMaps) + "/a").body, a.body);
}

TEST(ApiServer, refuses_what_the_real_server_refuses_and_says_why) {
  Api api;
  (void)api.post(kConfigMaps, config_map("taken"));
  struct Case {
    const char* what;
    k8s::Method method;
    const char* path;
    json body;
    int status;
    const char* reason;
    const char* message;
  };
  const std::string long_value(64, 'x');
  const Case cases[] = {
      {"a taken name", k8s::Method::post, kConfigMaps, config_map("taken"), 409, "AlreadyExists",
       "configmaps \"taken\" already exists"},
      {"a missing object", k8s::Method::get, "/api/v1/nodes/x", nullptr, 404, "NotFound", "nodes \"x\" not found"},
      {"a missing namespace", k8s::Method::post, "/api/v1/namespaces/no/configmaps", config_map("a"), 404, "NotFound",
       "namespaces \"no\" not found"},
      {"an unknown resource", k8s::Method::get, "/apis/apps/v1/foos", nullptr, 404, "NotFound",
       "could not find the requested resource"},
      {"another kind", k8s::Method::post, "/api/v1/nodes", config_map("a"), 400, "BadRequest",
       "cannot be handled as a Node"},
      {"a name of the wrong form", k8s::Method::post, "/api/v1/nodes", node("X_"), 422, "Invalid",
       "RFC 1123 subdomain"},
      {"a label value too long", k8s::Method::post, "/api/v1/nodes", node("n", {{"a", long_value}}), 422, "Invalid",
       "no more than 63 bytes"},
      {"a field of the wrong type", k8s::Method::post, kConfigMaps, config_map("a", {{"k", 1}}), 400, "BadRequest",
       "cannot unmarshal number into Go struct field ConfigMap.data of type string"},
      {"a create over all namespaces", k8s::Method::post, "/api/v1/configmaps", config_map("a"), 405,
       "MethodNotAllowed", ""},
      {"a field selector that does not exist", k8s::Method::get, "/api/v1/nodes?fieldSelector=spec.x%3D1", nullptr, 400,
       "BadRequest", "field label not supported: spec.x"},
  };
  for (const Case& c : cases) {
    const Answer answer = api.send(c.method, c.path, c.body);
    EXPECT_EQ(answer.status, c.status) << c.what << ": " << answer.text;
    EXPECT_EQ(answer.reason(), c.reason) << c.what;
    EXPECT_THAT(answer.message(), HasSubstr(c.message)) << c.what;
  }
}

TEST(ApiServer, a_watch_sees_each_change_once_and_leaving_the_selector_is_a_deletion) {
  Api api;
  (void)api.post("/api/v1/nodes", node("before", {{"gpu", "yes"}}));
  auto all = api.watch("/api/v1/nodes?watch=true");
  auto labelled = api.watch("/api/v1/nodes?watch=true&labelSelector=gpu%3Dyes&resourceVersion=" +
                            std::to_string(api.server.revision()));
  ASSERT_NE(all, nullptr);
  (void)api.post("/api/v1/nodes", node("n", {{"gpu", "yes"}}));
  (void)api.merge("/api/v1/nodes/n", {{"metadata", {{"labels", {{"gpu", "no"}}}}}});
  (void)api.merge("/api/v1/nodes/n", {{"metadata", {{"labels", {{"gpu", "no"}}}}}});
  (void)api.remove("/api/v1/nodes/n");
  EXPECT_THAT(events_of(*all), ElementsAre("ADDED before", "ADDED n", "MODIFIED n", "DELETED n"));
  EXPECT_THAT(events_of(*labelled), ElementsAre("ADDED n", "DELETED n"));
}

}  // namespace
}  // namespace gso::sim::apiserver_test
