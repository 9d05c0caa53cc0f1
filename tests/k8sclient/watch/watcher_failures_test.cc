// Watcher: failures, refusals and malformed objects; how it is stopped.
#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/k8sclient/watch/watcher_fixture.h"

namespace k8s::test::watcher_failures_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(WatcherTest, failures_back_off_with_jitter_up_to_a_bound_and_start_afresh_after_quiet) {
  by_pages(listed(10, {"a"}));
  for (int i = 0; i < 8; ++i) transport.then(Answer::broken());
  transport.then(watched({{140s, bookmark(11)}, {10s, event("MODIFIED", "a", 12)}, {1s, ""}}));
  transport.then(listed(10, {"a"}), Answer::broken());  // The server's version, now that it is back.
  transport.otherwise(watched());
  start();
  clock.run_for(10min);
  const double bases[] = {0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_GE(gap(i + 2), bases[i] - 0.01) << i;
    EXPECT_LE(gap(i + 2), std::min(bases[i] * 2, 30.0) + 0.01) << i;
  }
  EXPECT_LE(gap(10), 0.01) << "its version";
  EXPECT_LE(gap(11), 151.1) << "a watch that had its time is followed by the next at once";
  EXPECT_LE(gap(12), 1.61) << "after two quiet minutes the backoff begins again";
  EXPECT_THAT(errors.front(), HasSubstr("watch nodes: scripted failure"));
}

TEST_F(WatcherTest, very_short_watches_do_not_spin) {
  by_pages(listed(10, {"a"}));
  transport.otherwise(watched({{1ms, bookmark(11)}, {1ms, ""}}));
  start();
  clock.run_for(60s);
  EXPECT_LT(transport.requests.size(), 12U);
}

TEST_F(WatcherTest, forbidden_is_reported_as_such_leaves_the_store_unsynced_and_a_granted_right_is_noticed_soon) {
  const Answer forbidden = Answer::status_of(403, "Forbidden", "nodes is forbidden: User x cannot watch");
  transport.then(forbidden, forbidden, watched({{1s, bookmark(5, true)}}));
  start();
  clock.run_for(9s);
  EXPECT_EQ(transport.requests.size(), 1U);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_TRUE(errors.front().contains("User x cannot watch")) << errors.front();
  EXPECT_TRUE(watcher->failing());
  EXPECT_FALSE(store.synced());
  clock.run_for(60s);
  EXPECT_TRUE(store.synced());
  EXPECT_FALSE(watcher->failing());
}

TEST_F(WatcherTest, what_only_somebody_can_mend_is_tried_again_at_spread_times) {
  const struct {
    int status;
    const char* reason;
    double least, most;  // Seconds from one attempt to the next.
  } cases[] = {{403, "Forbidden", 10, 30}, {404, "NotFound", 60, 90}};
  for (const auto& c : cases) {
    transport.requests.clear();
    transport.times.clear();
    transport.otherwise(Answer::status_of(c.status, c.reason, "no"));
    start();
    clock.run_for(1h);
    std::set<long> rounded;
    std::optional<MonoTime> before;
    for (std::size_t i = 0; i < transport.requests.size(); ++i) {
      if (!transport.requests[i].path.starts_with("/api/v1/nodes")) continue;  // Discovery, after a 404.
      const double waited = before ? std::chrono::duration<double>(transport.times[i] - *before).count() : c.least;
      EXPECT_GE(waited, c.least) << c.status;
      EXPECT_LE(waited, c.most) << c.status;
      rounded.insert(std::lround(waited));
      before = transport.times[i];
    }
    EXPECT_GT(rounded.size(), 5U) << c.status;
    stop();
  }
}

TEST_F(WatcherTest, it_is_failing_until_a_list_comes_whole_or_a_stream_opens_again) {
  const Answer forbidden = Answer::status_of(403, "Forbidden", "no");
  by_pages(forbidden, listed(10, {"a"}), watched({{30s, bookmark(11)}, {1s, ""}}), forbidden, watched());
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

TEST_F(WatcherTest, an_outage_of_any_length_does_not_cost_the_place_of_the_watch) {
  by_pages(listed(10, {"a"}));
  transport.otherwise(Answer::code(502, "<html>Bad Gateway</html>"));
  start();
  clock.run_for(1h);
  EXPECT_GT(transport.requests.size(), 50U);
  transport.otherwise(watched());
  clock.run_for(31s);
  EXPECT_EQ(asked(transport.requests.size() - 1, "watch"), "true");
  EXPECT_EQ(asked(transport.requests.size() - 1, "resourceVersion"), "10");
  EXPECT_EQ(watcher->stats().relists, 0U);
}

TEST_F(WatcherTest, a_watch_that_fails_while_the_server_answers_others_is_listed_anew) {
  by_pages(listed(10, {"a"}));
  transport.otherwise(Answer::code(500));
  start();
  const auto run = [&](Duration time) {
    for (Duration passed{0}; passed < time; passed += 2s) {
      clock.run_for(2s);
      transport.then(Answer::ok("{}"));
      EXPECT_TRUE(await(client.get_path("/version")).has_value());
    }
  };
  const auto lists = [this] {
    return std::ranges::count_if(transport.requests, [](const auto& r) { return !r.path.contains("watch=true"); });
  };
  const auto others = [](Duration time) { return time / 2s; };
  run(options.list_after - 10s);
  EXPECT_EQ(lists(), 1 + others(options.list_after - 10s));
  run(60s);
  EXPECT_GT(lists(), 1 + others(options.list_after + 50s));
  EXPECT_EQ(watcher->stats().relists, 0U) << "nothing is distrusted";
}

TEST_F(WatcherTest, a_malformed_object_is_counted_reported_and_never_looks_like_a_deletion) {
  const std::string bad_item = R"({"metadata":{"name":"b","resourceVersion":"21"},"bad":1})";
  by_pages(listed(10, {"a", "b"}),
           watched({{1s, event("MODIFIED", "a", 11, R"(,"bad":1)") + event("ADDED", "c", 12)}, {1s, "garbage\n"}}),
           Answer::ok(R"({"metadata":{"resourceVersion":"20"},"items":[)" + bad_item +
                      R"(,{"metadata":{"name":"c","resourceVersion":"12"}}]})"),
           watched());
  start();
  clock.run_for(1s);
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b", "c"));
  EXPECT_EQ(store.find("a")->meta.resource_version, "10") << "the object stays as it was";
  clock.run_for(5s);
  EXPECT_THAT(names(), UnorderedElementsAre("b", "c")) << "a is gone, b is only unreadable";
  EXPECT_EQ(store.find("b")->meta.resource_version, "10");
  EXPECT_EQ(watcher->stats().malformed, 2U);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("watch nodes: a is kept as it was: spec.x"), HasSubstr("not a watch event"),
                                  HasSubstr("b is kept as it was")));
}

// etcd holds objects of 1.5 MiB; of a larger one nothing is kept but what was known before, also by a list.
TEST_F(WatcherTest, an_object_that_is_too_large_breaks_no_watch_and_stays_as_it_was) {
  options.max_line = 10'000;
  const std::string pad = R"(,"pad":")" + std::string(20'000, '<') + "\"";
  by_pages(listed(10, {"a", "b"}), watched({{1s, event("MODIFIED", "a", 11, pad) + event("DELETED", "b", 12, pad)},
                                            {1s, event("ADDED", "c", 13, pad) + event("ADDED", "d", 14)},
                                            {1s, "garbage\n"}}));
  // The page of what is left, an object and a half, in ever smaller pages; then its metadata.
  for (int i = 0; i < 4; ++i) transport.then(Answer::broken(Reason::too_large));
  transport.then(listed(20, {"a"}, "next"), listed(20, {"d"}), watched());
  start();
  clock.run_for(2500ms);
  EXPECT_EQ(watcher->stats().relists, 0U);
  EXPECT_FALSE(watcher->failing());
  EXPECT_THAT(names(), UnorderedElementsAre("a", "d")) << "b is gone, and c is not known";
  EXPECT_EQ(store.find("a")->meta.resource_version, "10");
  EXPECT_EQ(watcher->stats().too_large, 2U);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_THAT(errors[0], HasSubstr("watch nodes: a is kept as it was: 20"));
  clock.run_for(10s);
  EXPECT_THAT(names(), UnorderedElementsAre("a", "d"));
  EXPECT_EQ(store.find("a")->meta.resource_version, "10");
  EXPECT_EQ(watcher->stats().too_large, 3U);
  EXPECT_THAT(errors.back(), HasSubstr("watch nodes: nodes a is skipped: "));
  EXPECT_EQ(transport.left(), 0U);
}

TEST_F(WatcherTest, stop_ends_every_kind_of_wait_at_once) {
  const struct {
    const char* what;
    Answer first;
  } cases[] = {
      {"while a stream is read", watched()},
      {"while a request is under way", Answer::json(200, {}, 25s)},
      {"while it backs off", Answer::broken()},
      {"while the client retries", Answer::retry_after(503, "20")},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    options.watch_list = std::string_view(c.what) != "while the client retries";
    transport.then(c.first);
    start();
    EXPECT_FALSE(ended);
    EXPECT_TRUE(watcher->running());
    const MonoTime before = clock.monotonic();
    watcher->stop();
    stop();
    EXPECT_FALSE(watcher->running());
    EXPECT_EQ(clock.monotonic(), before);
  }
}

// Stops its watcher from within a callback and notes what comes afterwards.
struct StoppingSink final : WatchSink {
  std::unique_ptr<Watcher>* watcher = nullptr;
  std::string stop_at;
  std::vector<std::string> calls;
  Result<void> note(const char* call) {
    calls.emplace_back(call);
    if (stop_at == call) (*watcher)->stop();
    return fail(Reason::decode, "refused");
  }
  void init() override { (void)note("init").has_value(); }
  Result<void> init_apply(std::string_view) override { return note("init_apply"); }
  Result<void> init_remove(std::string_view) override { return note("init_remove"); }
  void init_done() override { (void)note("init_done").has_value(); }
  Result<void> apply(std::string_view) override { return note("apply"); }
  Result<void> remove(std::string_view) override { return note("remove"); }
};

TEST_F(WatcherTest, a_sink_may_stop_its_watcher_from_any_call_and_hears_nothing_after_it) {
  options.watch_list = false;
  transport.otherwise(listed(10, {"a", "b"}));
  for (const char* call : {"init", "init_apply", "failed", "init_done", "apply", "remove"}) {
    SCOPED_TRACE(call);
    StoppingSink stopping;
    stopping.stop_at = call;
    options.failed = [&stopping](const Error&) { (void)stopping.note("failed").has_value(); };
    transport.then(listed(10, {"a", "b"}),
                   watched({{1s, event("ADDED", "c", 11) + event("DELETED", "c", 12) + event("ADDED", "d", 13)}}));
    stopping.watcher = &watcher;
    start(&stopping);
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
  transport.then(watched());
  watcher = std::make_unique<Watcher>(&client, Gvr{"", "v1", "nodes"}, options, &sink);
  boost::asio::co_spawn(
      io, run_watcher(watcher.get()),
      boost::asio::bind_cancellation_slot(cancel.slot(), [this](std::exception_ptr) { ended = true; }));
  clock.run_ready();
  cancel.emit(boost::asio::cancellation_type::terminal);
  clock.run_ready();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace k8s::test::watcher_failures_test
