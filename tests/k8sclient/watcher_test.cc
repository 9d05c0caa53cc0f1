// Watcher and StoreSink over a scripted transport in simulated time.
#include "k8sclient/watcher.h"

#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/paths.h"
#include "k8sclient/store_sink.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Thing {
  ObjectMeta meta;
  friend bool operator==(const Thing&, const Thing&) = default;
};

// An object with a "bad" field cannot be projected.
Result<Thing> project(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object() || object.contains("bad")) return fail(Reason::decode, "spec.x: expected a number");
  Thing out;
  out.meta.name = object["metadata"]["name"];
  out.meta.resource_version = object["metadata"]["resourceVersion"];
  return out;
}

struct WatcherTest : ClientFixture {
  Store<Thing> store;
  std::vector<std::string> errors;
  StoreSink<Thing> sink{&store, project, [this](const Error& e) { errors.push_back(e.message); }};
  ApiClient client{&transport, &clock, ClientOptions{}};
  WatcherOptions options;
  std::unique_ptr<Watcher> watcher;
  bool ended = false;

  void start() {
    watcher = std::make_unique<Watcher>(&client, Gvr{"", "v1", "nodes"}, options, &sink);
    boost::asio::co_spawn(io, watcher->run(), [this](std::exception_ptr thrown) {
      ended = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    clock.run_ready();
  }
  void TearDown() override {
    if (watcher == nullptr) return;
    watcher->stop();
    clock.run_ready();
    EXPECT_TRUE(ended) << "run() must end promptly after stop()";
    EXPECT_EQ(transport.open_streams, 0);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [key, object] : store.all()) out.push_back(key.name);
    return out;
  }
  // One query parameter of the n-th request; empty when it has none.
  std::string asked(std::size_t request, std::string_view parameter) const {
    const std::string& path = transport.requests.at(request).path;
    const auto query = parse_query(std::string_view(path).substr(path.find('?') + 1));
    const auto it = query->find(parameter);
    return it == query->end() ? std::string() : it->second;
  }
  double gap(std::size_t request) const {
    return std::chrono::duration<double>(transport.times.at(request) - transport.times.at(request - 1)).count();
  }
};

TEST_F(WatcherTest, lists_by_pages_then_watches_from_the_lists_version) {
  options.watch_list = false;
  options.label_selector = *LabelSelector::parse("a=b");
  options.field_selector = FieldSelector::equals("metadata.name", "x");
  transport.then(Answer::ok(page(10, {"a", "b"}, "more")));
  transport.then(Answer::ok(page(10, {"c"})));
  transport.then(
      Answer::streaming({{1s, event("ADDED", "d", 11) + event("DELETED", "a", 12)}, {1s, event("MODIFIED", "b", 13)}}));
  start();
  EXPECT_TRUE(store.synced());
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b", "c"));
  clock.run_for(3s);
  EXPECT_THAT(names(), UnorderedElementsAre("b", "c", "d"));
  EXPECT_EQ(store.find("b")->meta.resource_version, "13");
  EXPECT_EQ(asked(0, "resourceVersion"), "") << "a consistent read";
  EXPECT_EQ(asked(1, "continue"), "more");
  EXPECT_EQ(asked(2, "resourceVersion"), "10");
  EXPECT_EQ(asked(2, "sendInitialEvents"), "");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(asked(i, "labelSelector"), "a=b");
    EXPECT_EQ(asked(i, "fieldSelector"), "metadata.name=x");
  }
  EXPECT_EQ(watcher->stats().lists, 1U);
  EXPECT_EQ(watcher->stats().events, 3U);
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(WatcherTest, streams_the_initial_view_where_the_server_offers_it) {
  transport.then(Answer::streaming({{1s, event("ADDED", "a", 5) + event("ADDED", "b", 3)},
                                    {1s, event("ADDED", "c", 11) + event("DELETED", "b", 12)},
                                    {1s, bookmark(12, true) + event("ADDED", "d", 13)}}));
  start();
  clock.run_for(2s);
  EXPECT_FALSE(store.synced());
  clock.run_for(1s);
  EXPECT_TRUE(store.synced());
  EXPECT_THAT(names(), UnorderedElementsAre("a", "c", "d"));
  EXPECT_EQ(asked(0, "sendInitialEvents"), "true");
  EXPECT_EQ(asked(0, "resourceVersionMatch"), "NotOlderThan");
  EXPECT_EQ(asked(0, "allowWatchBookmarks"), "true");
  EXPECT_EQ(transport.requests.size(), 1U);
}

TEST_F(WatcherTest, falls_back_to_pages_where_watch_list_is_refused_or_ignored) {
  const struct {
    const char* what;
    Answer first;
  } cases[] = {
      {"422", Answer::status_of(422, "Invalid", "sendInitialEvents is forbidden for watch")},
      {"400", Answer::code(400)},
      {"405", Answer::code(405)},
      {"ignored, with a plain bookmark", Answer::streaming({{1s, event("ADDED", "x", 1) + bookmark(5)}})},
      {"ignored, then silence", Answer::streaming({{1s, event("ADDED", "x", 1)}})},
      {"broken off", Answer::streaming({{1s, event("ADDED", "x", 1)}, {1s, "{\"type\":"}, {1s, ""}})},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    transport.requests.clear();
    ended = false;
    transport.then(c.first);
    transport.then(Answer::ok(page(10, {"a"})));
    transport.then(Answer::streaming({}));
    start();
    clock.run_for(60s);
    EXPECT_TRUE(store.synced());
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_EQ(asked(1, "watch"), "");
    EXPECT_EQ(asked(2, "resourceVersion"), "10");
    EXPECT_THAT(errors, IsEmpty()) << "a fallback is no news";
    watcher->stop();
    clock.run_ready();
  }
}

TEST_F(WatcherTest, a_refusal_of_watch_list_is_remembered_and_a_break_is_not) {
  transport.then(Answer::streaming({{1s, event("ADDED", "x", 1)}, {1s, ""}}));  // Broke: LIST this time.
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::code(410));
  transport.then(Answer::code(422));  // Tried again, refused: never again.
  transport.then(Answer::ok(page(20, {"a"})));
  transport.then(Answer::code(410));
  transport.then(Answer::ok(page(30, {"a"})));
  transport.then(Answer::streaming({}));
  start();
  clock.run_for(20s);
  EXPECT_EQ(asked(3, "sendInitialEvents"), "true");
  EXPECT_EQ(asked(6, "watch"), "");
  EXPECT_EQ(transport.left(), 0U);
}

TEST_F(WatcherTest, an_expired_version_relists_and_what_was_deleted_meanwhile_is_gone) {
  for (const bool in_stream : {true, false}) {
    SCOPED_TRACE(in_stream);
    options.watch_list = false;
    ended = false;
    transport.then(Answer::ok(page(10, {"a", "b"})));
    if (in_stream) {
      transport.then(Answer::streaming(
          {{1s, R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})"
                "\n"}}));
    } else {
      transport.then(Answer::status_of(410, "Expired", "too old"));
    }
    transport.then(Answer::ok(page(20, {"b", "c"})));
    transport.then(Answer::streaming({}));
    start();
    EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
    clock.run_for(5s);
    EXPECT_THAT(names(), UnorderedElementsAre("b", "c"));
    EXPECT_EQ(watcher->stats().relists, 1U);
    EXPECT_THAT(errors.back(), HasSubstr("too old"));
    watcher->stop();
    clock.run_ready();
  }
}

TEST_F(WatcherTest, bookmarks_move_the_version_that_the_next_watch_starts_from) {
  options.watch_list = false;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::streaming({{60s, bookmark(500)}, {60s, ""}}));
  transport.then(Answer::streaming({}));
  start();
  clock.run_for(125s);
  EXPECT_EQ(asked(2, "resourceVersion"), "500");
  EXPECT_EQ(watcher->stats().bookmarks, 1U);
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(WatcherTest, half_a_line_at_the_end_of_a_stream_is_dropped_and_comes_again) {
  options.watch_list = false;
  const std::string line = event("ADDED", "b", 12);
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::streaming({{2s, event("MODIFIED", "a", 11) + line.substr(0, 30)}, {1s, ""}}));
  transport.then(Answer::streaming({{1s, line}}));
  start();
  clock.run_for(5s);
  EXPECT_EQ(asked(2, "resourceVersion"), "11");
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
}

TEST_F(WatcherTest, asks_the_server_for_a_random_end_and_does_not_outlive_it_by_much) {
  options.watch_list = false;
  options.bookmark_gap = 10'000s;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.otherwise(Answer::streaming({{1s, event("MODIFIED", "a", 11)}}));  // Then hangs for good.
  start();
  clock.run_for(2h);
  std::set<int> timeouts;
  for (std::size_t i = 1; i + 1 < transport.requests.size(); ++i) {
    const int timeout = std::stoi(asked(i, "timeoutSeconds"));
    EXPECT_THAT(timeout, testing::AllOf(testing::Ge(290), testing::Le(580)));
    EXPECT_NEAR(gap(i + 1), timeout + 5, 0.01);
    timeouts.insert(timeout);
  }
  EXPECT_GT(timeouts.size(), 5U) << "watches of a fleet must not end all at once";
}

TEST_F(WatcherTest, a_stream_silent_past_the_bookmark_gap_is_dead) {
  options.watch_list = false;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::streaming({{60s, bookmark(20)}}));
  transport.otherwise(Answer::streaming({{60s, bookmark(21)}}));
  start();
  clock.run_for(215s);
  ASSERT_GE(transport.requests.size(), 3U);
  EXPECT_NEAR(gap(2), 60 + 150, 0.01);
  EXPECT_EQ(asked(2, "resourceVersion"), "20");
}

TEST_F(WatcherTest, a_watch_that_never_brings_anything_ends_in_a_relist) {
  options.watch_list = false;
  transport.then(Answer::ok(page(1000, {"a"})));
  for (int i = 0; i < kMaxStrikes; ++i) transport.then(Answer::streaming({}));
  transport.then(Answer::ok(page(900, {"b"})));  // A restored etcd: behind what was seen.
  transport.then(Answer::streaming({}));
  start();
  clock.run_for(12min);
  EXPECT_THAT(names(), ElementsAre("b"));
  EXPECT_THAT(errors, testing::Contains(HasSubstr("went back in time")));
  EXPECT_EQ(watcher->stats().relists, 1U);
}

TEST_F(WatcherTest, a_view_that_is_to_be_renewed_is_listed_again_at_the_end_of_a_watch) {
  options.watch_list = false;
  options.renew_after = 4min;
  transport.then(Answer::ok(page(10, {"a", "b"})));
  transport.then(Answer::streaming({{150s, bookmark(20)}}));  // Silent about b, which is gone: dead at 300 s.
  transport.then(Answer::ok(page(21, {"a"})));
  transport.then(Answer::streaming({{100s, bookmark(22)}}));  // Ends at 250 s, and the view is of then.
  transport.then(Answer::ok(page(23, {"a"})));
  transport.otherwise(Answer::streaming({}));
  start();
  clock.run_for(299s);
  EXPECT_THAT(names(), testing::UnorderedElementsAre("a", "b"));
  clock.run_for(2s);
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_EQ(watcher->stats().lists, 2U);
  clock.run_for(260s);
  EXPECT_EQ(watcher->stats().lists, 3U);
  EXPECT_EQ(watcher->stats().relists, 0U);  // Nothing was distrusted.
  EXPECT_THAT(errors, testing::IsEmpty());
}

TEST_F(WatcherTest, failures_back_off_with_jitter_up_to_a_bound_and_start_afresh_after_quiet) {
  options.watch_list = false;
  transport.then(Answer::ok(page(10, {"a"})));
  for (int i = 0; i < 8; ++i) transport.then(Answer::broken());
  transport.then(Answer::streaming({{140s, bookmark(11)}, {10s, event("MODIFIED", "a", 12)}, {1s, ""}}));
  transport.then(Answer::broken());
  transport.otherwise(Answer::streaming({}));
  start();
  clock.run_for(10min);
  const double bases[] = {0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_GE(gap(i + 2), bases[i] - 0.01) << i;
    EXPECT_LE(gap(i + 2), std::min(bases[i] * 2, 30.0) + 0.01) << i;
  }
  EXPECT_LE(gap(10), 151.1) << "a watch that had its time is followed by the next at once";
  EXPECT_LE(gap(11), 1.61) << "after two quiet minutes the backoff begins again";
  EXPECT_THAT(errors.front(), HasSubstr("watch nodes: scripted failure"));
}

TEST_F(WatcherTest, very_short_watches_do_not_spin) {
  options.watch_list = false;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.otherwise(Answer::streaming({{1ms, bookmark(11)}, {1ms, ""}}));
  start();
  clock.run_for(60s);
  EXPECT_LT(transport.requests.size(), 12U);
}

TEST_F(WatcherTest, forbidden_is_reported_as_such_leaves_the_store_unsynced_and_is_retried_slowly) {
  transport.then(Answer::status_of(403, "Forbidden", "nodes is forbidden: User x cannot watch"));
  transport.then(Answer::status_of(403, "Forbidden", "nodes is forbidden: User x cannot watch"));
  transport.then(Answer::streaming({{1s, bookmark(5, true)}}));
  start();
  clock.run_for(50s);
  EXPECT_EQ(transport.requests.size(), 1U);
  ASSERT_TRUE(sink.last_error());
  EXPECT_EQ(sink.last_error()->reason, Reason::forbidden);
  EXPECT_FALSE(store.synced());
  clock.run_for(200s);
  EXPECT_TRUE(store.synced());
  EXPECT_FALSE(sink.last_error());
  EXPECT_GE(gap(1), 60);
}

TEST_F(WatcherTest, it_is_failing_until_a_list_comes_whole_or_a_stream_opens_again) {
  options.watch_list = false;
  transport.then(Answer::status_of(403, "Forbidden", "no"));
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::streaming({{30s, bookmark(11)}, {1s, ""}}));
  transport.then(Answer::status_of(403, "Forbidden", "no"));
  transport.then(Answer::streaming({}));
  start();
  clock.run_for(1s);
  EXPECT_TRUE(watcher->failing());
  clock.run_until([&] { return store.synced(); }, 100s);
  EXPECT_FALSE(watcher->failing()) << "the list came whole";
  clock.run_for(40s);
  EXPECT_TRUE(watcher->failing()) << "the next stream is refused";
  clock.run_for(100s);
  EXPECT_EQ(watcher->stats().watches, 2U);
  EXPECT_FALSE(watcher->failing()) << "a stream is open";
}

TEST_F(WatcherTest, an_api_that_discovery_does_not_know_is_absent_until_somebody_installs_it) {
  transport.then(Answer::code(404));
  transport.then(Answer::code(404));
  transport.then(Answer::ok(R"({"kind":"APIVersions","versions":[]})"));
  start();
  EXPECT_TRUE(store.synced());
  EXPECT_TRUE(sink.api_absent());
  EXPECT_THAT(errors, IsEmpty());
  transport.then(Answer::streaming({{{}, event("ADDED", "a", 1) + bookmark(5, true)}}));
  watcher->retry_now();
  clock.run_ready();
  EXPECT_FALSE(sink.api_absent());
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(WatcherTest, a_404_that_discovery_does_not_confirm_empties_nothing) {
  options.watch_list = false;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::code(404, "<html>wrong door</html>"));
  transport.then(Answer::code(404, "<html>wrong door</html>"));
  transport.then(Answer::code(404, "<html>wrong door</html>"));
  start();
  clock.run_for(30s);
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_FALSE(sink.api_absent());
  EXPECT_THAT(errors, ElementsAre(HasSubstr("wrong door")));
}

TEST_F(WatcherTest, a_malformed_object_is_counted_told_and_never_looks_like_a_deletion) {
  options.watch_list = false;
  const std::string bad_item = R"({"metadata":{"name":"b","resourceVersion":"21"},"bad":1})";
  transport.then(Answer::ok(page(10, {"a", "b"})));
  transport.then(Answer::streaming(
      {{1s, event("MODIFIED", "a", 11, R"(,"bad":1)") + event("ADDED", "c", 12)}, {1s, "garbage\n"}}));
  transport.then(Answer::ok(R"({"metadata":{"resourceVersion":"20"},"items":[)" + bad_item +
                            R"(,{"metadata":{"name":"c","resourceVersion":"12"}}]})"));
  transport.then(Answer::streaming({}));
  start();
  clock.run_for(1s);
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b", "c"));
  EXPECT_EQ(store.find("a")->meta.resource_version, "10") << "the object stays as it was";
  clock.run_for(5s);
  EXPECT_THAT(names(), UnorderedElementsAre("b", "c")) << "a is gone, b is only unreadable";
  EXPECT_EQ(store.find("b")->meta.resource_version, "10");
  EXPECT_EQ(sink.malformed(), 2U);
  EXPECT_EQ(watcher->stats().malformed, 2U);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("watch nodes: a is kept as it was: spec.x"), HasSubstr("not a watch event"),
                                  HasSubstr("b is kept as it was")));
}

TEST_F(WatcherTest, a_line_over_the_cap_relists_instead_of_growing) {
  options.watch_list = false;
  options.max_line = 10'000;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::streaming({{1s, std::string(20'000, 'x')}}));
  transport.then(Answer::ok(page(20, {"b"})));
  transport.then(Answer::streaming({}));
  start();
  clock.run_for(5s);
  EXPECT_THAT(names(), ElementsAre("b"));
  EXPECT_THAT(errors, ElementsAre(HasSubstr("longer than 10000 bytes")));
}

TEST_F(WatcherTest, stop_ends_every_kind_of_wait_at_once) {
  const struct {
    const char* what;
    Answer first;
  } cases[] = {
      {"while a stream is read", Answer::streaming({})},
      {"while a request is under way",
       {.status = 200, .body = {}, .headers = {}, .error = {}, .takes = 25s, .stream = {}}},
      {"while it backs off", Answer::broken()},
      {"while the client retries", Answer::retry_after(503, "20")},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    ended = false;
    options.watch_list = std::string_view(c.what) != "while the client retries";
    transport.then(c.first);
    start();
    EXPECT_FALSE(ended);
    EXPECT_TRUE(watcher->running());
    const MonoTime before = clock.monotonic();
    watcher->stop();
    watcher->stop();
    clock.run_ready();
    EXPECT_TRUE(ended);
    EXPECT_FALSE(watcher->running());
    EXPECT_EQ(clock.monotonic(), before);
    EXPECT_EQ(transport.open_streams, 0);
  }
}

// Stops its watcher from within a callback and notes what comes afterwards.
struct StoppingSink final : WatchSink {
  Watcher* watcher = nullptr;
  std::string stop_at;
  std::vector<std::string> calls;
  Result<void> note(const char* call) {
    calls.emplace_back(call);
    if (stop_at == call) watcher->stop();
    return fail(Reason::decode, "refused");
  }
  void init() override { (void)note("init").has_value(); }
  Result<void> init_apply(std::string_view) override { return note("init_apply"); }
  void init_done() override { (void)note("init_done").has_value(); }
  Result<void> apply(std::string_view) override { return note("apply"); }
  Result<void> remove(std::string_view) override { return note("remove"); }
  void on_error(const Error&) override { (void)note("on_error").has_value(); }
};

TEST_F(WatcherTest, a_sink_may_stop_its_watcher_from_any_call_and_hears_nothing_after_it) {
  for (const char* call : {"init", "init_apply", "on_error", "init_done", "apply", "remove"}) {
    SCOPED_TRACE(call);
    transport.requests.clear();
    ended = false;
    transport.otherwise(Answer::ok(page(10, {"a", "b"})));
    StoppingSink stopping;
    stopping.stop_at = call;
    options.watch_list = false;
    watcher = std::make_unique<Watcher>(&client, Gvr{"", "v1", "nodes"}, options, &stopping);
    stopping.watcher = watcher.get();
    transport.then(Answer::ok(page(10, {"a", "b"})));
    transport.then(
        Answer::streaming({{1s, event("ADDED", "c", 11) + event("DELETED", "c", 12) + event("ADDED", "d", 13)}}));
    boost::asio::co_spawn(io, watcher->run(), [this](std::exception_ptr) { ended = true; });
    clock.run_for(5s);
    EXPECT_TRUE(ended);
    EXPECT_EQ(stopping.calls.back(), call);
    while (transport.left() > 0) (void)await(transport.send({})).has_value();
  }
}

boost::asio::awaitable<void> run_watcher(Watcher* watcher) {
  co_await watcher->run();
}

TEST_F(WatcherTest, cancelling_the_coroutine_that_awaits_run_stops_it_too) {
  boost::asio::cancellation_signal cancel;
  transport.then(Answer::streaming({}));
  watcher = std::make_unique<Watcher>(&client, Gvr{"", "v1", "nodes"}, options, &sink);
  boost::asio::co_spawn(
      io, run_watcher(watcher.get()),
      boost::asio::bind_cancellation_slot(cancel.slot(), [this](std::exception_ptr) { ended = true; }));
  clock.run_ready();
  cancel.emit(boost::asio::cancellation_type::terminal);
  clock.run_ready();
  EXPECT_TRUE(ended);
}

TEST_F(WatcherTest, two_scopes_of_one_resource_do_not_disturb_each_other) {
  options.watch_list = false;
  transport.then(Answer::ok(page(10, {"a"})));
  transport.then(Answer::streaming({{1s, event("ADDED", "b", 11)}}));
  start();
  Store<Thing> other_store;
  StoreSink<Thing> other_sink(&other_store, project);
  WatcherOptions other_options = options;
  other_options.ns = "other";
  Watcher other(&client, Gvr{"", "v1", "pods"}, other_options, &other_sink);
  transport.then(Answer::ok(page(50, {"x"})));
  transport.then(Answer::streaming({{2s, event("DELETED", "x", 51)}}));
  boost::asio::co_spawn(io, other.run(), boost::asio::detached);
  clock.run_for(5s);
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
  EXPECT_TRUE(other_store.synced());
  EXPECT_EQ(other_store.size(), 0U);
  EXPECT_THAT(transport.requests.at(2).path, HasSubstr("/api/v1/namespaces/other/pods?"));
  other.stop();
  clock.run_ready();
}

}  // namespace
}  // namespace k8s::test
