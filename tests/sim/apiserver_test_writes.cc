// Patches, apply, preconditions, deletion and what the server's actors do afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test_writes {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

struct Writes : testing::Test {
  Api api;

  Answer applied(const char* manager, json data, const char* more = "") {
    return api.apply(
        std::string(kConfigMaps) + "/a?fieldManager=" + manager + more,
        {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "a"}}}, {"data", std::move(data)}});
  }
  json make_pod(const char* name, const char* node, json metadata = json::object()) {
    metadata["name"] = name;
    json pod = {{"metadata", std::move(metadata)}, {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
    if (node[0] != '\0') pod["spec"]["nodeName"] = node;
    return api.post(kPods, pod).body;
  }
};

TEST_F(Writes, a_stale_version_conflicts_and_an_equal_write_changes_nothing) {
  const Answer made = api.post(kConfigMaps, {{"metadata", {{"name", "a"}}}, {"data", {{"k", "1"}}}});
  const std::string path = std::string(kConfigMaps) + "/a";
  EXPECT_EQ(api.merge(path, {{"data", {{"k", "1"}}}}).revision(), made.revision());
  EXPECT_EQ(api.merge(path, {{"data", {{"k", "2"}}}}).status, 200);
  const Answer stale = api.merge(path, {{"metadata", {{"resourceVersion", made.revision()}}}, {"data", {{"k", "3"}}}});
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.reason(), "Conflict");
  json old = made.body;
  EXPECT_EQ(api.put(path, old).status, 409);
  old["metadata"].erase("resourceVersion");
  EXPECT_EQ(api.put(path, old).status, 200);
}

TEST_F(Writes, the_status_is_written_through_its_subresource_only) {
  (void)api.post("/api/v1/nodes",
                 {{"metadata", {{"name", "n"}}}, {"status", {{"capacity", {{"nvidia.com/gpu", "2"}}}}}});
  (void)api.merge("/api/v1/nodes/n",
                  {{"status", {{"capacity", {{"nvidia.com/gpu", "8"}}}}}, {"metadata", {{"labels", {{"a", "b"}}}}}});
  EXPECT_EQ(api.get("/api/v1/nodes/n").body["status"]["capacity"]["nvidia.com/gpu"], "2");
  (void)api.merge("/api/v1/nodes/n/status",
                  {{"status", {{"capacity", {{"nvidia.com/gpu", "8"}}}}}, {"spec", {{"unschedulable", true}}}});
  const json node = api.get("/api/v1/nodes/n").body;
  EXPECT_EQ(node["status"]["capacity"]["nvidia.com/gpu"], "8");
  EXPECT_FALSE(node["spec"].contains("unschedulable"));
  EXPECT_EQ(node["metadata"]["labels"]["a"], "b");
}

TEST_F(Writes, managed_fields_say_when_the_data_of_a_config_map_changed_last) {
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

TEST_F(Writes, apply_owns_what_it_names_and_drops_what_it_no_longer_names) {
  EXPECT_EQ(applied("one", {{"k", "1"}, {"l", "1"}}).status, 201);
  const Answer conflict = applied("two", {{"k", "2"}});
  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(conflict.message(), "Apply failed with 1 conflict: conflict with \"one\": .data.k");
  EXPECT_EQ(conflict.body["details"]["causes"][0]["reason"], "FieldManagerConflict");
  EXPECT_EQ(applied("two", {{"k", "2"}}, "&force=true").body["data"], (json{{"k", "2"}, {"l", "1"}}));
  EXPECT_EQ(applied("one", {{"m", "1"}}).body["data"], (json{{"k", "2"}, {"m", "1"}}));
  const Answer same = applied("one", {{"m", "1"}});
  EXPECT_EQ(same.revision(), applied("one", {{"m", "1"}}).revision());
}

TEST_F(Writes, strategic_patches_merge_containers_by_name) {
  const json pod = {{"containers", {{{"name", "a"}, {"image", "1"}}, {{"name", "b"}, {"image", "1"}}}}};
  (void)api.post("/apis/apps/v1/namespaces/default/daemonsets",
                 {{"metadata", {{"name", "d"}}},
                  {"spec",
                   {{"selector", {{"matchLabels", {{"app", "d"}}}}},
                    {"template", {{"metadata", {{"labels", {{"app", "d"}}}}}, {"spec", pod}}}}}});
  const Answer patched =
      api.send(k8s::Method::patch, "/apis/apps/v1/namespaces/default/daemonsets/d",
               {{"spec", {{"template", {{"spec", {{"containers", {{{"name", "b"}, {"image", "2"}}}}}}}}}}},
               "application/strategic-merge-patch+json");
  ASSERT_EQ(patched.status, 200) << patched.text;
  const json containers = patched.body["spec"]["template"]["spec"]["containers"];
  EXPECT_EQ(containers[0]["image"], "1");
  EXPECT_EQ(containers[1]["image"], "2");
  EXPECT_EQ(patched.body["metadata"]["generation"], 2);
}

TEST_F(Writes, deletes_honour_their_preconditions) {
  const Answer made = api.post("/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  EXPECT_EQ(api.remove("/api/v1/nodes/n", {{"preconditions", {{"uid", "another"}}}}).status, 409);
  EXPECT_EQ(api.remove("/api/v1/nodes/n", {{"preconditions", {{"resourceVersion", "1"}}}}).status, 409);
  EXPECT_EQ(api.remove("/api/v1/nodes/n", {{"preconditions", {{"uid", made.body["metadata"]["uid"]}}}}).status, 200);
  EXPECT_EQ(api.remove("/api/v1/nodes/n").status, 404);
}

TEST_F(Writes, a_pod_on_a_node_stays_until_its_kubelet_deletes_it_for_good) {
  (void)make_pod("bound", "n1");
  (void)make_pod("unbound", "");
  auto watch = api.watch(std::string(kPods) + "?watch=1&resourceVersion=" + std::to_string(api.server.revision()));
  const Answer marked = api.remove(std::string(kPods) + "/bound");
  EXPECT_EQ(marked.body["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
  EXPECT_EQ(marked.body["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(api.get(std::string(kPods) + "/bound").status, 200);
  EXPECT_EQ(api.remove(std::string(kPods) + "/unbound").status, 200);
  EXPECT_EQ(api.get(std::string(kPods) + "/unbound").status, 404);
  (void)api.remove(std::string(kPods) + "/bound?gracePeriodSeconds=0");
  EXPECT_EQ(api.get(std::string(kPods) + "/bound").status, 404);
  EXPECT_THAT(events_of(*watch),
              ElementsAre("MODIFIED bound", "MODIFIED unbound", "DELETED unbound", "MODIFIED bound", "DELETED bound"));
}

TEST_F(Writes, a_finalizer_holds_an_object) {
  (void)api.post(kConfigMaps, {{"metadata", {{"name", "a"}, {"finalizers", {"example.com/hold"}}}}});
  const std::string path = std::string(kConfigMaps) + "/a";
  EXPECT_EQ(api.remove(path).status, 200);
  EXPECT_TRUE(api.get(path).body["metadata"].contains("deletionTimestamp"));
  (void)api.merge(path, {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_EQ(api.get(path).status, 404);
}

TEST_F(Writes, dependents_go_after_their_owner) {
  const json owner = api.post(kConfigMaps, {{"metadata", {{"name", "owner"}}}}).body;
  const json reference = {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "owner"}, {"uid", owner["metadata"]["uid"]}};
  (void)make_pod("owned", "", {{"ownerReferences", json::array({reference})}});
  api.clock.run_for(10s);
  EXPECT_EQ(api.get(std::string(kPods) + "/owned").status, 200);
  (void)api.remove(std::string(kConfigMaps) + "/owner");
  EXPECT_EQ(api.get(std::string(kPods) + "/owned").status, 200);
  api.clock.run_for(1s);
  EXPECT_EQ(api.get(std::string(kPods) + "/owned").status, 404);
}

TEST_F(Writes, foreground_deletion_waits_for_dependents_and_orphaning_frees_them) {
  for (const char* policy : {"Foreground", "Orphan"}) {
    const json owner = api.post(kConfigMaps, {{"metadata", {{"name", "owner"}}}}).body;
    const json reference = {
        {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "owner"}, {"uid", owner["metadata"]["uid"]}};
    (void)make_pod("owned", "n1", {{"ownerReferences", json::array({reference})}});
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

TEST_F(Writes, a_namespace_takes_its_content_with_it) {
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

TEST_F(Writes, an_eviction_spends_what_the_budget_allows) {
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

TEST_F(Writes, sizes_are_limited_and_dry_runs_store_nothing) {
  EXPECT_EQ(api.post(kConfigMaps, {{"metadata", {{"name", "a"}}}, {"data", {{"k", std::string(3 << 20, 'x')}}}}).status,
            413);
  EXPECT_EQ(
      api.post(kConfigMaps, {{"metadata", {{"name", "a"}}}, {"data", {{"k", std::string((1 << 20) + 1, 'x')}}}}).status,
      422);
  EXPECT_EQ(api.post("/api/v1/nodes",
                     {{"metadata", {{"name", "n"}}}, {"spec", {{"providerID", std::string(1600 * 1024, 'x')}}}})
                .status,
            500);
  EXPECT_EQ(api.post(std::string(kConfigMaps) + "?dryRun=All", {{"metadata", {{"name", "a"}}}}).status, 201);
  EXPECT_EQ(api.get(std::string(kConfigMaps) + "/a").status, 404);
}

TEST_F(Writes, hostile_bodies_are_refused_and_never_crash) {
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

TEST_F(Writes, each_write_is_audited_with_what_it_changed) {
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

}  // namespace
}  // namespace gso::sim::apiserver_test_writes
