// The in-process transport: identities, streams on simulated time, and every fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <optional>

#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test_transport {
namespace {

namespace asio = boost::asio;
using nlohmann::json;
using namespace std::chrono_literals;
using k8s::Reason;
using testing::ElementsAre;
using testing::HasSubstr;

using Response = k8s::Result<k8s::HttpResponse>;

asio::awaitable<void> send_into(k8s::Transport* transport, k8s::HttpRequest request, std::optional<Response>* into) {
  Response response = co_await transport->send(std::move(request));
  into->emplace(std::move(response));
}

// Reads a watch to its end: its events, then how it ended.
asio::awaitable<void> watch_into(k8s::Transport* transport, k8s::HttpRequest request, std::chrono::milliseconds idle,
                                 std::vector<std::string>* log) {
  auto stream = co_await transport->open(std::move(request));
  if (!stream) {
    log->push_back("open: " + std::string(k8s::to_string(stream.error().reason)));
    co_return;
  }
  if ((*stream)->status() != 200) log->push_back("status " + std::to_string((*stream)->status()));
  for (;;) {
    auto bytes = co_await (*stream)->read(idle);
    if (!bytes) {
      log->push_back("error: " + std::string(k8s::to_string(bytes.error().reason)));
      co_return;
    }
    if (bytes->empty()) {
      log->push_back("end");
      co_return;
    }
    std::istringstream lines(*bytes);
    for (std::string line; std::getline(lines, line);) {
      const json event = json::parse(line, nullptr, false);
      if (!event.contains("type")) continue;
      const json object = event["object"];
      log->push_back(event["type"].get<std::string>() + " " +
                     (object.contains("code") ? object["code"].dump() : object["metadata"].value("name", "")));
    }
  }
}

struct Transport : testing::Test {
  Api api;
  InProcessTransport client{api.server, {.user = "operator", .user_agent = "op/v1"}};

  static k8s::HttpRequest request(k8s::Method method, std::string path, std::string body = "") {
    k8s::HttpRequest r;
    r.method = method;
    r.path = std::move(path);
    r.body = std::move(body);
    if (!r.body.empty())
      r.content_type = method == k8s::Method::patch ? "application/merge-patch+json" : "application/json";
    return r;
  }
  Response send(k8s::Method method, std::string path, std::string body = "") {
    std::optional<Response> response;
    asio::co_spawn(api.io, send_into(&client, request(method, std::move(path), std::move(body)), &response),
                   asio::detached);
    EXPECT_TRUE(api.clock.run_until([&] { return response.has_value(); }, 1h));
    return std::move(*response);
  }
  Response create_node(const std::string& name) {
    return send(k8s::Method::post, "/api/v1/nodes", R"({"metadata":{"name":")" + name + "\"}}");
  }
  std::vector<std::string> log;
  void watch(std::string path, std::chrono::milliseconds idle = 1h) {
    asio::co_spawn(api.io, watch_into(&client, request(k8s::Method::get, std::move(path)), idle, &log), asio::detached);
    api.clock.run_for(10ms);
  }
};

TEST_F(Transport, an_exchange_takes_its_latency_and_carries_the_identity) {
  std::string user;
  api.server.add_audit_listener([&](const AuditEntry& e) { user = e.user + " " + e.user_agent; });
  ASSERT_EQ(create_node("n")->status, 201);
  EXPECT_EQ(user, "operator op/v1");
  EXPECT_EQ(api.clock.monotonic().since_boot, 1ms);
  EXPECT_EQ(send(k8s::Method::get, "/api/v1/nodes/none")->status, 404);
}

TEST_F(Transport, a_watch_delivers_and_ends_at_its_time) {
  (void)create_node("a");
  watch("/api/v1/nodes?watch=1&timeoutSeconds=60&allowWatchBookmarks=true");
  (void)create_node("b");
  api.clock.run_for(2min);
  EXPECT_THAT(log, ElementsAre("ADDED a", "ADDED b", "BOOKMARK ", "end"));
}

TEST_F(Transport, a_silent_watch_times_out_for_its_reader) {
  watch("/api/v1/nodes?watch=1&resourceVersion=1", 30s);
  api.clock.run_for(31s);
  EXPECT_THAT(log, ElementsAre("error: timeout"));
  EXPECT_EQ(api.server.open_watches(), 0U);
}

TEST_F(Transport, a_refused_watch_shows_its_status) {
  watch("/api/v1/nodes?watch=1&labelSelector=-");
  EXPECT_THAT(log, ElementsAre("status 400", "end"));
}

TEST_F(Transport, events_are_dropped_and_streams_break_or_expire_on_demand) {
  watch("/api/v1/nodes?watch=1&resourceVersion=5");
  client.faults().add({.fault = Fault::drop_event, .resource = "nodes", .name = "lost"});
  client.faults().add({.fault = Fault::reset_watch, .resource = "nodes", .name = "breaks"});
  for (const char* name : {"seen", "lost", "seen2", "breaks", "after"}) (void)create_node(name);
  EXPECT_THAT(log, ElementsAre("ADDED seen", "ADDED seen2", "error: transport"));
  log.clear();
  client.faults().clear();
  client.faults().add({.fault = Fault::gone, .verb = "watch"});
  watch("/api/v1/nodes?watch=1&resourceVersion=" + std::to_string(api.server.revision()));
  (void)create_node("n");
  EXPECT_THAT(log, ElementsAre("ERROR 410", "end"));
}

TEST_F(Transport, refusals_commit_nothing_and_say_what_the_real_server_says) {
  struct Case {
    FaultRule rule;
    int status;
    const char* retry_after;
  };
  const Case cases[] = {{{.fault = Fault::conflict, .verb = "write", .times = 1}, 409, ""},
                        {{.fault = Fault::throttle, .times = 1, .retry_after = 7}, 429, "7"},
                        {{.fault = Fault::server_error, .times = 1, .status = 500}, 500, ""},
                        {{.fault = Fault::bad_gateway, .times = 1, .status = 502}, 502, ""},
                        {{.fault = Fault::forbidden, .resource = "nodes", .times = 1}, 403, ""}};
  for (const Case& c : cases) {
    client.faults().add(c.rule);
    const Response refused = create_node("n");
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, c.status);
    EXPECT_EQ(refused->header("retry-after"), c.retry_after);
    EXPECT_FALSE(api.server.get({"", "v1", "nodes"}, {"", "n"}));
  }
  EXPECT_EQ(create_node("n")->status, 201);
}

TEST_F(Transport, an_ambiguous_failure_committed_and_a_transport_error_did_not) {
  client.faults().add({.fault = Fault::ambiguous, .times = 1});
  EXPECT_EQ(create_node("a").error().reason, Reason::transport);
  EXPECT_TRUE(api.server.get({"", "v1", "nodes"}, {"", "a"}));
  client.faults().add({.fault = Fault::transport_error, .times = 1});
  EXPECT_EQ(create_node("b").error().reason, Reason::transport);
  EXPECT_FALSE(api.server.get({"", "v1", "nodes"}, {"", "b"}));
}

TEST_F(Transport, slow_answers_and_hangs_are_measured_in_simulated_time) {
  client.faults().add({.fault = Fault::latency, .times = 1, .delay = 10s});
  EXPECT_EQ(create_node("a")->status, 201);
  EXPECT_EQ(api.clock.monotonic().since_boot, 10s + 1ms);
  client.faults().add({.fault = Fault::latency, .times = 1, .delay = 1min});
  EXPECT_EQ(create_node("b").error().reason, Reason::timeout);
  EXPECT_TRUE(api.server.get({"", "v1", "nodes"}, {"", "b"})) << "it came too late for the client only";
  client.faults().add({.fault = Fault::hang, .times = 1});
  EXPECT_EQ(create_node("c").error().reason, Reason::timeout);
  EXPECT_FALSE(api.server.get({"", "v1", "nodes"}, {"", "c"}));
}

TEST_F(Transport, reads_can_be_stale_or_truncated) {
  (void)create_node("a");
  (void)create_node("b");
  client.faults().add({.fault = Fault::stale, .verb = "list", .times = 1, .revisions = 1});
  EXPECT_THAT(send(k8s::Method::get, "/api/v1/nodes")->body, testing::Not(HasSubstr("\"b\"")));
  client.faults().add({.fault = Fault::truncated, .times = 1});
  EXPECT_TRUE(json::parse(send(k8s::Method::get, "/api/v1/nodes")->body, nullptr, false).is_discarded());
  EXPECT_THAT(send(k8s::Method::get, "/api/v1/nodes")->body, HasSubstr("\"b\""));
}

TEST_F(Transport, a_crash_comes_before_the_request_after_its_commit_or_with_its_answer) {
  std::vector<Fault> struck;
  client.faults().strike = [&](const FaultRule& rule) { struck.push_back(rule.fault); };
  client.faults().add({.fault = Fault::crash_unanswered, .verb = "write", .skip = 1, .times = 1});
  client.faults().add({.fault = Fault::crash_unsent, .verb = "write", .skip = 2, .times = 1});
  client.faults().add({.fault = Fault::crash_answered, .verb = "get", .times = 1});
  EXPECT_TRUE(create_node("a"));
  EXPECT_EQ(create_node("b").error().reason, Reason::cancelled);
  EXPECT_TRUE(api.server.get({"", "v1", "nodes"}, {"", "b"}));
  EXPECT_EQ(create_node("c").error().reason, Reason::cancelled);
  EXPECT_FALSE(api.server.get({"", "v1", "nodes"}, {"", "c"}));
  EXPECT_EQ(send(k8s::Method::get, "/api/v1/nodes/a")->status, 200);
  EXPECT_THAT(struck, ElementsAre(Fault::crash_unanswered, Fault::crash_unsent, Fault::crash_answered));
}

TEST_F(Transport, a_write_can_be_done_although_a_load_balancer_says_that_it_failed) {
  client.faults().add({.fault = Fault::unconfirmed, .times = 1});
  EXPECT_EQ(create_node("a")->status, 504);
  EXPECT_TRUE(api.server.get({"", "v1", "nodes"}, {"", "a"}));
}

// Objects and revisions are what they were; whoever watched has to ask again, and nobody learns what was lost.
TEST_F(Transport, a_store_that_lost_its_last_second_is_what_it_was_before) {
  (void)create_node("kept");
  (void)create_node("gone");
  api.clock.run_for(10s);
  const std::uint64_t before = api.server.revision();
  watch("/api/v1/nodes?watch=1&resourceVersion=" + std::to_string(before));
  (void)create_node("lost");
  (void)send(k8s::Method::del, "/api/v1/nodes/gone");
  (void)send(k8s::Method::patch, "/api/v1/nodes/kept", R"({"metadata":{"labels":{"a":"lost"}}})");
  api.server.forget_last(1s);
  api.clock.run_for(10ms);
  EXPECT_EQ(api.server.revision(), before);
  EXPECT_FALSE(api.server.get({"", "v1", "nodes"}, {"", "lost"}));
  EXPECT_TRUE(api.server.get({"", "v1", "nodes"}, {"", "gone"}));
  EXPECT_FALSE((*api.server.get({"", "v1", "nodes"}, {"", "kept"}))["metadata"].contains("labels"));
  EXPECT_THAT(log, ElementsAre("ADDED lost", "DELETED gone", "MODIFIED kept", "error: transport"));
}

TEST_F(Transport, a_partition_breaks_streams_and_refuses_requests_until_it_ends) {
  watch("/api/v1/nodes?watch=1&resourceVersion=5");
  client.set_connected(false);
  api.clock.run_for(1s);
  EXPECT_THAT(log, ElementsAre("error: transport"));
  EXPECT_EQ(create_node("a").error().reason, Reason::transport);
  client.set_connected(true);
  EXPECT_EQ(create_node("a")->status, 201);
}

TEST(Faults, the_same_seed_makes_the_same_choices) {
  const auto choices = [](std::uint64_t seed) {
    Faults faults(seed);
    faults.add({.fault = Fault::conflict, .probability = 0.5});
    std::string made;
    for (int i = 0; i < 64; ++i) made += faults.pick(Fault::conflict, "patch", "nodes", "n") ? '1' : '0';
    return made;
  };
  EXPECT_EQ(choices(7), choices(7));
  EXPECT_NE(choices(7), choices(8));
}

}  // namespace
}  // namespace gso::sim::apiserver_test_transport
