// ApiClient: lists page by page, discovery, and the opening of watches.
#include <gmock/gmock.h>

#include <memory>
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
  transport.then(Answer::ok(page(10, {"a", "b"}, "tok/1")), Answer::ok(page(10, {"c"})));
  Names names;
  ListOptions options;
  options.label_selector = *LabelSelector::parse("x=y");
  options.field_selector = FieldSelector::equals("spec.nodeName", "n");
  options.resource_version = "0";
  options.page_limit = 2;
  EXPECT_EQ(await(client.list(kNodes, options, &names)).value(), "10");
  EXPECT_THAT(names.names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(paths(), ElementsAre("/api/v1/nodes?labelSelector=x%3Dy&fieldSelector=spec.nodeName%3Dn&limit=2"
                                   "&resourceVersion=0",
                                   "/api/v1/nodes?labelSelector=x%3Dy&fieldSelector=spec.nodeName%3Dn&limit=2"
                                   "&continue=tok%2F1"));
}

TEST_F(ClientTest, an_expired_continue_token_restarts_the_list_once) {
  transport.then(Answer::ok(page(10, {"a"}, "t")), Answer::status_of(410, "Expired"), Answer::ok(page(20, {"a"}, "u")),
                 Answer::ok(page(20, {"b"})));
  Names names;
  EXPECT_EQ(await(client.list(kNodes, {}, &names)).value(), "20");
  EXPECT_THAT(names.names, ElementsAre("a", "b"));
  EXPECT_EQ(names.restarts, 1);

  for (int i = 0; i < 2; ++i) transport.then(Answer::ok(page(10, {"a"}, "t")), Answer::status_of(410, "Expired"));
  EXPECT_EQ(await(client.list(kNodes, {}, &names)).error().reason, Reason::expired);
}

TEST_F(ClientTest, a_body_that_is_no_complete_list_is_a_decode_error) {
  const std::string good = page(10, {"a", "b"});
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    transport.then(Answer::ok(good.substr(0, cut)));
    Names names;
    EXPECT_EQ(await(client.list(kNodes, {}, &names)).error().reason, Reason::decode) << cut;
  }
  for (const char* body : {"[]", "{}", "null", "<html>", R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[1]})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[]} x)"}) {
    transport.then(Answer::ok(body));
    Names names;
    EXPECT_EQ(await(client.list(kNodes, {}, &names)).error().reason, Reason::decode) << body;
  }
}

// The address in the kubeconfig is that of a console or of a proxy that asks for a login.
TEST_F(ClientTest, a_page_of_html_is_no_list_and_the_address_is_to_be_checked) {
  transport.then(Answer::ok("<html><title>Sign in</title></html>"));
  Names names;
  EXPECT_EQ(
      await(client.list(kNodes, {}, &names)).error().message,
      "list nodes: HTTP 200: Sign in (an HTML page: of a proxy or load balancer, not of the API server): check the "
      "address of the server, which `kubectl cluster-info` prints");
}

TEST_F(ClientTest, an_empty_list_may_be_null_and_metadata_may_come_last) {
  transport.then(
      Answer::ok(R"({"items":null,"metadata":{"resourceVersion":"5"}})"),
      Answer::ok(
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

// --- Objects of tenants ---

TEST_F(ClientTest, pages_have_fewer_objects_where_these_are_large_and_more_again_later) {
  ClientOptions small = options();
  small.max_page_bytes = 4000;
  ApiClient careful(&transport, &clock, small);
  const auto padded = [](std::size_t bytes, const std::string& token) {
    return Answer::ok(page(10, {"a"}, token) + std::string(bytes, ' '));
  };
  // Of 100 objects, which a transport should not even have held, of 25 and of 6.
  transport.then(padded(4001, "1"), Answer::broken(Reason::too_large), padded(3000, "1"));
  transport.then(padded(0, "2"), padded(0, "3"), padded(0, ""));  // Room for more: 12, 24.
  Names names;
  EXPECT_TRUE(await(careful.list(kNodes, {}, &names)));
  EXPECT_THAT(names.names, ElementsAre("a", "a", "a", "a")) << "what was too large is asked for again";
  const auto limit_of = [](const HttpRequest& request) {
    EXPECT_THAT(request.path, HasSubstr("limit="));
    return std::stoi(request.path.substr(request.path.find("limit=") + 6));
  };
  std::vector<int> limits;
  for (const HttpRequest& request : transport.requests) limits.push_back(limit_of(request));
  EXPECT_THAT(limits, ElementsAre(100, 25, 6, 6, 12, 24));
  for (const HttpRequest& request : transport.requests) EXPECT_EQ(request.max_body_bytes, 4000U);
  transport.then(padded(0, ""));
  EXPECT_TRUE(await(careful.list(kSets, {}, &names)));
  EXPECT_EQ(limit_of(transport.requests.back()), 100) << "of another kind";
}

TEST_F(ClientTest, an_object_that_is_too_large_is_named_and_the_list_goes_on_behind_it) {
  struct Skips : Names {
    std::vector<std::string> skips;
    Result<void> skipped(std::string_view metadata, Error why) override {
      skips.push_back(std::string(json::parse(metadata)["metadata"]["name"]) + ": " + why.message);
      EXPECT_EQ(why.reason, Reason::too_large);
      return {};
    }
  };
  const auto script = [this] {
    transport.then(Answer::ok(page(10, {"a"}, "1")), Answer::broken(Reason::too_large),
                   Answer::ok(page(10, {"large"}, "2")), Answer::ok(page(10, {"z"})));
  };
  ListOptions one;
  one.page_limit = 1;
  script();
  Skips names;
  EXPECT_TRUE(await(client.list(kNodes, one, &names)));
  EXPECT_THAT(names.names, ElementsAre("a", "z"));
  EXPECT_THAT(names.skips, ElementsAre(HasSubstr("large: nodes large is skipped: ")));
  EXPECT_THAT(transport.requests[2].accept, HasSubstr("as=PartialObjectMetadataList"));
  EXPECT_THAT(transport.requests[2].path, HasSubstr("limit=1&continue=1"));
  EXPECT_GT(transport.requests[1].max_body_bytes, client.options().max_page_bytes);

  script();
  Names ends;
  EXPECT_EQ(await(client.list(kNodes, one, &ends)).error().reason, Reason::too_large)
      << "who does not say what a skipped object means has no complete list";
}

// Servers before 1.31 answer such a list whole.
TEST_F(ClientTest, a_list_of_any_version_that_is_too_large_is_asked_for_in_pages) {
  transport.then(Answer::broken(Reason::too_large), Answer::ok(page(10, {"a"})));
  ListOptions any;
  any.resource_version = "0";
  Names names;
  EXPECT_TRUE(await(client.list(kNodes, any, &names)));
  EXPECT_THAT(transport.requests.front().path, HasSubstr("resourceVersion=0"));
  EXPECT_THAT(transport.requests.back().path, testing::Not(HasSubstr("resourceVersion")));
}

// --- Discovery ---

TEST_F(ClientTest, an_api_is_absent_only_when_discovery_documents_say_so) {
  const Gvr policies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
  const char* groups = R"({"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1"}]}]})";
  transport.then(Answer::code(404, "404 page not found"), Answer::ok(groups));
  EXPECT_EQ(await(client.served(policies)).value(), false);

  transport.then(
      Answer::ok(R"({"kind":"APIResourceList","resources":[{"name":"sharingpolicies","kind":"SharingPolicy"}]})"));
  EXPECT_EQ(await(client.served(policies)).value(), true);
  transport.then(Answer::ok(R"({"kind":"APIResourceList","resources":[]})"));
  EXPECT_EQ(await(client.served(policies)).value(), false);

  for (const Answer& second : {Answer::code(404), Answer::code(403), Answer::ok("<html>"),
                               Answer::ok(R"({"kind":"APIGroupList","groups":[{"name":"gpusharing.dev","versions":[
                                 {"groupVersion":"gpusharing.dev/v1alpha1"}]}]})")}) {
    transport.then(Answer::code(404), second);
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
