// What no sequence of requests shows (tests/conformance/sequences, which ctest plays on the simulated server): what it
// does as time passes, its controllers, bodies that no client sends, and the audit that the judges of stories read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

struct SimulatedServer : testing::Test {
  Api api;

  void make_nodes(int count) {
    for (int i = 0; i < count; ++i)
      (void)api.post("/api/v1/nodes", {{"metadata", {{"name", "n" + std::to_string(i)}}}});
  }
  std::string now() { return std::to_string(api.server.revision()); }
  json make_pod(const char* name, const char* node, json metadata = json::object()) {
    metadata["name"] = name;
    json pod = {{"metadata", std::move(metadata)}, {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
    if (node[0] != '\0') pod["spec"]["nodeName"] = node;
    return api.post(kPods, pod).body;
  }
  // Of a ConfigMap "owner", which is made.
  json reference_to_owner() {
    const json owner = api.post(kConfigMaps, {{"metadata", {{"name", "owner"}}}}).body;
    return json::array(
        {{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "owner"}, {"uid", owner["metadata"]["uid"]}}});
  }
};

TEST_F(SimulatedServer, a_forgotten_page_is_gone_and_its_answer_holds_a_token_to_go_on_with) {
  make_nodes(3);
  const std::string token = api.get("/api/v1/nodes?limit=1").body["metadata"]["continue"];
  (void)api.remove("/api/v1/nodes/n1");
  api.server.compact();
  const Answer gone = api.get("/api/v1/nodes?limit=1&continue=" + token);
  EXPECT_EQ(gone.status, 410);
  EXPECT_EQ(gone.reason(), "Expired");
  const Answer rest = api.get("/api/v1/nodes?continue=" + gone.body["metadata"]["continue"].get<std::string>());
  ASSERT_EQ(rest.body["items"].size(), 1U);
  EXPECT_EQ(rest.body["items"][0]["metadata"]["name"], "n2");
}

TEST_F(SimulatedServer, history_is_forgotten_after_five_minutes) {
  make_nodes(1);
  const std::string then = now();
  make_nodes(2);
  api.clock.run_for(6min);
  make_nodes(3);
  auto old = api.watch("/api/v1/nodes?watch=1&resourceVersion=" + then);
  EXPECT_THAT(events_of(*old), ElementsAre("ERROR 410"));
}

TEST_F(SimulatedServer, bookmarks_come_each_minute_and_before_the_watch_ends_at_its_time) {
  auto watch = api.watch("/api/v1/nodes?watch=1&allowWatchBookmarks=true&timeoutSeconds=90&resourceVersion=" + now());
  EXPECT_EQ(watch->next_timer().since_boot, 60s);
  api.clock.run_for(60s);
  watch->on_timer(api.server.revision());
  EXPECT_THAT(events_of(*watch), ElementsAre("BOOKMARK"));
  EXPECT_EQ(watch->next_timer().since_boot, 90s);
  api.clock.run_for(30s);
  watch->on_timer(api.server.revision());
  EXPECT_THAT(events_of(*watch), ElementsAre("BOOKMARK"));
  EXPECT_TRUE(watch->ended());
}

TEST_F(SimulatedServer, managed_fields_say_when_the_data_of_a_config_map_changed_last) {
  (void)api.post(kConfigMaps, {{"metadata", {{"name", "a"}}}, {"data", {{"k", "1"}}}});
  api.clock.run_for(10s);
  api.context.user_agent = "kubectl-edit/v1";
  (void)api.merge(std::string(kConfigMaps) + "/a", {{"data", {{"k", "2"}}}});
  api.clock.run_for(10s);
  api.context.user_agent = "labeller/v1";
  (void)api.merge(std::string(kConfigMaps) + "/a", {{"metadata", {{"labels", {{"l", "1"}}}}}});
  std::map<std::string, std::string> data_times;
  const json managed = api.get(std::string(kConfigMaps) + "/a").body["metadata"]["managedFields"];
  for (const auto& entry : managed)
    if (entry["fieldsV1"].contains("f:data")) data_times[entry["manager"]] = entry["time"];
  EXPECT_EQ(data_times["kubectl-edit"], "2026-01-01T00:00:10Z");
  EXPECT_FALSE(data_times.contains("labeller"));
}

TEST_F(SimulatedServer, dependents_go_after_their_owner) {
  (void)make_pod("owned", "", {{"ownerReferences", reference_to_owner()}});
  api.clock.run_for(10s);
  EXPECT_EQ(api.get(std::string(kPods) + "/owned").status, 200);
  (void)api.remove(std::string(kConfigMaps) + "/owner");
  EXPECT_EQ(api.get(std::string(kPods) + "/owned").status, 200);
  api.clock.run_for(1s);
  EXPECT_EQ(api.get(std::string(kPods) + "/owned").status, 404);
}

TEST_F(SimulatedServer, foreground_deletion_waits_for_dependents_and_orphaning_frees_them) {
  for (const char* policy : {"Foreground", "Orphan"}) {
    (void)make_pod("owned", "n1", {{"ownerReferences", reference_to_owner()}});
    (void)api.remove(std::string(kConfigMaps) + "/owner", {{"propagationPolicy", policy}});
    api.clock.run_for(1s);
    const bool foreground = policy == std::string_view("Foreground");
    EXPECT_EQ(api.get(std::string(kConfigMaps) + "/owner").status, foreground ? 200 : 404) << policy;
    const json pod = api.get(std::string(kPods) + "/owned").body;
    EXPECT_EQ(pod["metadata"].contains("deletionTimestamp"), foreground) << policy;
    EXPECT_EQ(pod["metadata"].contains("ownerReferences"), foreground) << policy;
    (void)api.remove(std::string(kPods) + "/owned?gracePeriodSeconds=0");
    api.clock.run_for(1s);
    EXPECT_EQ(api.get(std::string(kConfigMaps) + "/owner").status, 404) << policy;
  }
}

TEST_F(SimulatedServer, a_namespace_takes_its_content_with_it) {
  (void)api.post("/api/v1/namespaces", {{"metadata", {{"name", "team"}}}});
  api.clock.run_for(1s);
  EXPECT_EQ(api.get("/api/v1/namespaces/team/serviceaccounts/default").status, 200);
  (void)api.post("/api/v1/namespaces/team/configmaps", {{"metadata", {{"name", "a"}}}});
  EXPECT_EQ(api.remove("/api/v1/namespaces/team").body["status"]["phase"], "Terminating");
  EXPECT_EQ(api.post("/api/v1/namespaces/team/configmaps", {{"metadata", {{"name", "b"}}}}).status, 403);
  api.clock.run_for(1s);
  EXPECT_EQ(api.get("/api/v1/namespaces/team/configmaps/a").status, 404);
  EXPECT_EQ(api.get("/api/v1/namespaces/team").status, 404);
}

TEST_F(SimulatedServer, an_eviction_spends_what_the_budget_allows) {
  (void)api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                 {{"metadata", {{"name", "b"}}},
                  {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
  const json ready = {{"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
  for (const char* name : {"p1", "p2"}) {
    (void)make_pod(name, "n1", {{"labels", {{"app", "x"}}}});
    (void)api.merge(std::string(kPods) + "/" + name + "/status", ready);
  }
  const auto evict = [&](const char* name) {
    return api.post(std::string(kPods) + "/" + name + "/eviction",
                    {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", name}}}});
  };
  EXPECT_EQ(evict("p1").status, 429) << "the budget is not counted yet";
  api.clock.run_for(1s);
  EXPECT_EQ(evict("p1").status, 201);
  api.clock.run_for(1s);
  const Answer refused = evict("p2");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body["details"]["causes"][0]["reason"], "DisruptionBudget");
  EXPECT_TRUE(api.get(std::string(kPods) + "/p1").body["metadata"].contains("deletionTimestamp"));
}

TEST_F(SimulatedServer, hostile_bodies_are_refused_and_never_crash) {
  const char* bodies[] = {"",
                          "{",
                          "[]",
                          "null",
                          "1",
                          "\"x\"",
                          "{\"metadata\":5}",
                          "{\"metadata\":{\"name\":7}}",
                          "{\"metadata\":{\"name\":\"a\",\"labels\":[]}}",
                          "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":{}}}}",
                          "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":{}}}",
                          "{\"metadata\":{\"name\":\"a\",\"finalizers\":[1]}}",
                          "{\"kind\":5,\"metadata\":{\"name\":\"a\"}}",
                          "{\"metadata\":{\"name\":\"a\",\"managedFields\":[1]}}",
                          "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":{}}}",
                          "{\"metadata\":{\"name\":\"a\"},\"spec\":[]}"};
  const char* types[] = {"application/json", "application/merge-patch+json", "application/json-patch+json",
                         "application/strategic-merge-patch+json", "application/apply-patch+yaml"};
  (void)make_pod("a", "");
  for (const char* body : bodies) {
    EXPECT_GE(api.send_text(k8s::Method::post, kPods, body).status, 400) << body;
    EXPECT_GE(api.send_text(k8s::Method::put, std::string(kPods) + "/a", body).status, 400) << body;
    for (const char* type : types) {
      const Answer answer = api.send_text(k8s::Method::patch, std::string(kPods) + "/a?fieldManager=m", body, type);
      EXPECT_TRUE(answer.body.is_object()) << type << " " << body;
    }
    (void)api.send_text(k8s::Method::del, std::string(kPods) + "/a?dryRun=All", body);
    (void)api.send_text(k8s::Method::post, std::string(kPods) + "/a/eviction?dryRun=All", body);
  }
  EXPECT_EQ(api.get(std::string(kPods) + "/a").status, 200);
}

TEST_F(SimulatedServer, each_write_is_audited_with_what_it_changed) {
  std::vector<std::string> log;
  api.server.add_audit_listener([&](const AuditEntry& e) {
    log.push_back(e.user + " " + e.verb + " " + e.gvr.resource + "/" + e.key.name + " " + std::to_string(e.status) +
                  (e.changed() ? " changed" : ""));
  });
  (void)api.post("/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  (void)api.merge("/api/v1/nodes/n", {{"metadata", {{"labels", {{"a", "b"}}}}}});
  (void)api.merge("/api/v1/nodes/n", {{"metadata", {{"labels", {{"a", "b"}}}}}});
  (void)api.merge("/api/v1/nodes/none", json::object());
  (void)api.remove("/api/v1/nodes/n");
  (void)api.get("/api/v1/nodes");
  EXPECT_THAT(
      log, ElementsAre("alice create nodes/n 201 changed", "alice patch nodes/n 200 changed", "alice patch nodes/n 200",
                       "alice patch nodes/none 404", "alice delete nodes/n 200 changed"));
}

TEST_F(SimulatedServer, the_end_of_a_definition_ends_its_objects_and_watches) {
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const std::string widgets = "/apis/example.com/v1/widgets";
  const json definition = json::parse(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
             "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})");
  ASSERT_EQ(api.post(definitions, definition).status, 201);
  (void)api.post(widgets, {{"apiVersion", "example.com/v1"}, {"kind", "Widget"}, {"metadata", {{"name", "w"}}}});
  auto watch = api.watch(widgets + "?watch=1");
  EXPECT_EQ(api.remove(definitions + "/widgets.example.com").status, 200);
  EXPECT_EQ(api.get(widgets).status, 404);
  EXPECT_TRUE(watch->ended());
  ASSERT_EQ(api.post(definitions, definition).status, 201);
  EXPECT_TRUE(api.get(widgets).body["items"].empty());
}

}  // namespace
}  // namespace gso::sim::apiserver_test
