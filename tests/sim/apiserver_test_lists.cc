// Lists in pages, at versions, and watches with their windows, bookmarks and initial events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test_lists {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct Lists : testing::Test {
  Api api;

  void make_nodes(int count) {
    for (int i = 0; i < count; ++i) {
      (void)api.post("/api/v1/nodes",
                     {{"metadata", {{"name", "n" + std::to_string(i)}, {"labels", {{"i", std::to_string(i % 2)}}}}}});
    }
  }
  std::string now() { return std::to_string(api.server.revision()); }
  static std::vector<std::string> names(const Answer& list) {
    std::vector<std::string> all;
    for (const auto& item : list.body["items"]) all.push_back(item["metadata"]["name"]);
    return all;
  }
};

TEST_F(Lists, pages_show_one_moment_even_when_objects_change_between_them) {
  make_nodes(5);
  const Answer first = api.get("/api/v1/nodes?limit=2");
  EXPECT_EQ(first.body["metadata"]["remainingItemCount"], 3);
  (void)api.remove("/api/v1/nodes/n3");
  make_nodes(7);
  std::vector<std::string> all = names(first);
  std::string token = first.body["metadata"]["continue"];
  while (!token.empty()) {
    const Answer page = api.get("/api/v1/nodes?limit=2&continue=" + token);
    ASSERT_EQ(page.status, 200) << page.text;
    EXPECT_EQ(page.revision(), first.revision());
    for (const auto& name : names(page)) all.push_back(name);
    token = page.body["metadata"].value("continue", "");
  }
  EXPECT_THAT(all, ElementsAre("n0", "n1", "n2", "n3", "n4"));
}

TEST_F(Lists, a_forgotten_page_is_gone_and_its_answer_holds_a_token_to_go_on_with) {
  make_nodes(3);
  const std::string token = api.get("/api/v1/nodes?limit=1").body["metadata"]["continue"];
  (void)api.remove("/api/v1/nodes/n1");
  api.server.compact();
  const Answer gone = api.get("/api/v1/nodes?limit=1&continue=" + token);
  EXPECT_EQ(gone.status, 410);
  EXPECT_EQ(gone.reason(), "Expired");
  const Answer rest = api.get("/api/v1/nodes?continue=" + gone.body["metadata"]["continue"].get<std::string>());
  EXPECT_THAT(names(rest), ElementsAre("n2"));
}

TEST_F(Lists, an_exact_version_shows_the_past_and_a_future_one_times_out) {
  make_nodes(1);
  const std::string then = now();
  make_nodes(3);
  EXPECT_THAT(names(api.get("/api/v1/nodes?resourceVersionMatch=Exact&resourceVersion=" + then)), ElementsAre("n0"));
  EXPECT_EQ(names(api.get("/api/v1/nodes?resourceVersionMatch=NotOlderThan&resourceVersion=" + then)).size(), 3U);
  const Answer future = api.get("/api/v1/nodes?resourceVersion=999999");
  EXPECT_EQ(future.status, 504);
  EXPECT_EQ(future.reason(), "Timeout");
  EXPECT_EQ(future.body["details"]["retryAfterSeconds"], 1);
}

TEST_F(Lists, selectors_choose_by_label_and_field) {
  make_nodes(4);
  EXPECT_THAT(names(api.get("/api/v1/nodes?labelSelector=i%3D1")), ElementsAre("n1", "n3"));
  EXPECT_THAT(names(api.get("/api/v1/nodes?fieldSelector=metadata.name%3Dn2")), ElementsAre("n2"));
  (void)api.merge("/api/v1/nodes/n2", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(names(api.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue")), ElementsAre("n2"));
}

TEST_F(Lists, metadata_and_tables_are_offered_as_kubectl_asks_for_them) {
  make_nodes(1);
  const Answer metadata = api.get("/api/v1/nodes", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
  EXPECT_EQ(metadata.body["kind"], "PartialObjectMetadataList");
  EXPECT_FALSE(metadata.body["items"][0].contains("spec"));
  const Answer table = api.get("/api/v1/nodes", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  EXPECT_EQ(table.body["kind"], "Table");
  EXPECT_EQ(table.body["rows"][0]["cells"][0], "n0");
  EXPECT_EQ(api.get("/api/v1/nodes", "application/vnd.kubernetes.protobuf").status, 406);
}

TEST_F(Lists, a_watch_goes_on_from_its_version_or_fails_because_it_is_too_old) {
  const std::string then = now();
  make_nodes(2);
  auto replayed = api.watch("/api/v1/nodes?watch=1&resourceVersion=" + then);
  EXPECT_THAT(events_of(*replayed), ElementsAre("ADDED n0", "ADDED n1"));
  api.server.compact("nodes");
  auto old = api.watch("/api/v1/nodes?watch=1&resourceVersion=" + then);
  EXPECT_THAT(events_of(*old), ElementsAre("ERROR 410"));
  EXPECT_TRUE(old->ended());
}

TEST_F(Lists, history_is_forgotten_after_five_minutes) {
  make_nodes(1);
  const std::string then = now();
  make_nodes(2);
  api.clock.run_for(6min);
  make_nodes(3);
  auto old = api.watch("/api/v1/nodes?watch=1&resourceVersion=" + then);
  EXPECT_THAT(events_of(*old), ElementsAre("ERROR 410"));
}

TEST_F(Lists, a_watch_list_begins_with_everything_and_a_marked_bookmark) {
  make_nodes(2);
  auto watch = api.watch(
      "/api/v1/nodes?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan");
  EXPECT_THAT(events_of(*watch), ElementsAre("ADDED n0", "ADDED n1", "BOOKMARK end"));
  make_nodes(3);
  EXPECT_THAT(events_of(*watch), ElementsAre("ADDED n2"));
}

TEST_F(Lists, bookmarks_come_each_minute_and_before_the_watch_ends_at_its_time) {
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

TEST_F(Lists, a_name_and_a_namespace_narrow_a_watch) {
  auto one = api.watch(
      "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Da&resourceVersion=" + now());
  auto system = api.watch("/api/v1/namespaces/kube-system/configmaps?watch=1&resourceVersion=" + now());
  for (const char* ns : {"default", "kube-system"})
    for (const char* name : {"a", "b"})
      (void)api.post("/api/v1/namespaces/" + std::string(ns) + "/configmaps", {{"metadata", {{"name", name}}}});
  EXPECT_THAT(events_of(*one), ElementsAre("ADDED a"));
  EXPECT_THAT(events_of(*system), ElementsAre("ADDED a", "ADDED b"));
}

}  // namespace
}  // namespace gso::sim::apiserver_test_lists
