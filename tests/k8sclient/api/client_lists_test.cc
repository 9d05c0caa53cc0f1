// ApiClient: lists page by page, discovery, and the opening of watches.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/k8sclient/api/client_fixture.h"

namespace k8s::test::client_lists_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

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
}  // namespace k8s::test::client_lists_test
