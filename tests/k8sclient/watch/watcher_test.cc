// Watcher: the protocol, from a first view by pages or by stream to bookmarks, dead peers and renewals.
#include <gmock/gmock.h>

#include <ostream>
#include <set>
#include <string>

#include "tests/k8sclient/watch/watcher_fixture.h"

namespace k8s::test::watcher_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(WatcherTest, lists_by_pages_then_watches_from_the_lists_version) {
  options.ns = "gpu";
  options.label_selector = *LabelSelector::parse("a=b");
  options.field_selector = FieldSelector::equals("metadata.name", "x");
  by_pages(listed(10, {"a", "b"}, "more"), listed(10, {"c"}),
           watched({{1s, event("ADDED", "d", 11) + event("DELETED", "a", 12)}, {1s, event("MODIFIED", "b", 13)}}));
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
    EXPECT_THAT(transport.requests[i].path, testing::StartsWith("/api/v1/namespaces/gpu/nodes?"));
    EXPECT_EQ(asked(i, "labelSelector"), "a=b");
    EXPECT_EQ(asked(i, "fieldSelector"), "metadata.name=x");
  }
  EXPECT_EQ(watcher->stats().lists, 1U);
  EXPECT_EQ(watcher->stats().events, 3U);
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(WatcherTest, streams_the_initial_view_where_the_server_offers_it) {
  transport.then(watched({{1s, event("ADDED", "a", 5) + event("ADDED", "b", 3)},
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
      {"ignored, with a plain bookmark", watched({{1s, event("ADDED", "x", 1) + bookmark(5)}})},
      {"ignored, then silence", watched({{1s, event("ADDED", "x", 1)}})},
      {"broken off", watched({{1s, event("ADDED", "x", 1)}, {1s, "{\"type\":"}, {1s, ""}})},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    transport.requests.clear();
    transport.then(c.first, listed(10, {"a"}), watched());
    start();
    clock.run_for(60s);
    EXPECT_TRUE(store.synced());
    EXPECT_THAT(names(), ElementsAre("a"));
    EXPECT_EQ(asked(1, "watch"), "");
    EXPECT_EQ(asked(2, "resourceVersion"), "10");
    EXPECT_THAT(errors, IsEmpty()) << "a fallback is no news";
    stop();
  }
}

TEST_F(WatcherTest, a_refusal_of_watch_list_is_remembered_and_a_break_is_not) {
  const Answer breaks = watched({{1s, event("ADDED", "x", 1)}, {1s, ""}});
  transport.then(breaks, listed(10, {"a"}), Answer::code(410));             // A list this time.
  transport.then(Answer::code(422), listed(20, {"a"}), Answer::code(410));  // Tried again, refused: never again.
  transport.then(listed(30, {"a"}), watched());
  start();
  clock.run_for(20s);
  EXPECT_EQ(asked(3, "sendInitialEvents"), "true");
  EXPECT_EQ(asked(6, "watch"), "");
  EXPECT_EQ(transport.left(), 0U);
}

TEST_F(WatcherTest, an_expired_version_relists_and_what_was_deleted_meanwhile_is_gone) {
  const std::string expired = R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})";
  for (const Answer& answer : {Answer::status_of(410, "Expired", "too old"),
                               watched({{1s, R"({"type":"ERROR","object":)" + expired + "}\n"}})}) {
    SCOPED_TRACE(answer.status);
    by_pages(listed(10, {"a", "b"}), answer, listed(20, {"b", "c"}), watched());
    start();
    EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
    clock.run_for(5s);
    EXPECT_THAT(names(), UnorderedElementsAre("b", "c"));
    EXPECT_EQ(watcher->stats().relists, 1U);
    EXPECT_THAT(errors.back(), HasSubstr("too old"));
    stop();
  }
}

TEST_F(WatcherTest, half_a_line_at_the_end_of_a_stream_is_dropped_and_comes_again) {
  const std::string line = event("ADDED", "b", 12);
  by_pages(listed(10, {"a"}), watched({{2s, event("MODIFIED", "a", 11) + line.substr(0, 30)}, {1s, ""}}),
           watched({{1s, line}}));
  start();
  clock.run_for(5s);
  EXPECT_EQ(asked(2, "resourceVersion"), "11");
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
}

TEST_F(WatcherTest, asks_the_server_for_a_random_end_and_does_not_outlive_it_by_much) {
  options.bookmark_gap = 10'000s;
  options.renew_after = 0s;
  const Answer hangs = watched({{1s, event("MODIFIED", "a", 11)}});
  by_pages(listed(10, {"a"}), hangs);
  for (int i = 0; i < 20; ++i) transport.then(hangs, listed(11, {"a"}));  // The server's version, after silence.
  start();
  clock.run_for(2h);
  std::set<int> timeouts;
  for (std::size_t i = 1, next = 2; next < transport.requests.size(); i = next, next += 2) {
    const int timeout = std::stoi(asked(i, "timeoutSeconds"));
    EXPECT_THAT(timeout, testing::AllOf(testing::Ge(290), testing::Le(580)));
    const auto lived = std::chrono::duration<double>(transport.times.at(next) - transport.times.at(i));
    EXPECT_NEAR(lived.count(), timeout + 5, 0.01);
    timeouts.insert(timeout);
  }
  EXPECT_GT(timeouts.size(), 5U) << "watches of a fleet must not end all at once";
}

TEST_F(WatcherTest, a_stream_silent_past_the_bookmark_gap_is_dead_and_the_next_starts_from_its_last_bookmark) {
  by_pages(listed(10, {"a"}), watched({{60s, bookmark(20)}}));
  transport.otherwise(watched({{60s, bookmark(21)}}));
  start();
  clock.run_for(215s);
  ASSERT_GE(transport.requests.size(), 3U);
  EXPECT_NEAR(gap(2), 60 + 150, 0.01);
  EXPECT_EQ(asked(2, "resourceVersion"), "20");
  EXPECT_EQ(watcher->stats().bookmarks, 1U);
}

TEST_F(WatcherTest, a_view_that_is_to_be_renewed_is_listed_again_at_the_end_of_a_watch) {
  options.renew_after = 4min;                                          // Times 0.8..1.
  by_pages(listed(10, {"a", "b"}), watched({{150s, bookmark(20)}}));   // Silent about b, which is gone: dead at 300 s.
  transport.then(listed(21, {"a"}), watched({{100s, bookmark(22)}}));  // Ends at 250 s, and the view is of then.
  transport.then(listed(23, {"a"}));
  transport.otherwise(watched());
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

TEST_F(WatcherTest, a_view_is_current_while_its_watch_brings_something) {
  by_pages(listed(10, {"a"}), watched());  // Dead at 150 s.
  transport.then(listed(21, {"a"}), watched({{60s, bookmark(22)}}));
  start();
  clock.run_for(145s);
  EXPECT_EQ(watcher->view().state, ViewState::current);
  clock.run_for(20s);
  EXPECT_EQ(watcher->stats().lists, 2U);
  EXPECT_EQ(watcher->view().state, ViewState::recent) << "a list does not show that the watch delivers";
  clock.run_for(60s);
  EXPECT_EQ(watcher->view().state, ViewState::current);
}

TEST_F(WatcherTest, a_watch_that_is_refused_is_replaced_by_lists_which_make_no_view_current) {
  options.refused_retry = 70s;  // Times 1..3.
  transport.then(watched({{{}, event("ADDED", "a", 1) + bookmark(10, true)}, {30s, bookmark(11)}, {1s, ""}}),
                 Answer::status_of(403, "Forbidden", "no watch"), listed(30, {"b"}));
  transport.otherwise(Answer::status_of(403, "Forbidden", "no watch, no list"));
  start();
  EXPECT_EQ(watcher->view().state, ViewState::current);
  clock.run_for(40s);
  EXPECT_EQ(watcher->view().state, ViewState::recent);
  const MonoTime confirmed = *watcher->view().confirmed_at;
  EXPECT_TRUE(clock.run_until([this] { return names() == std::vector<std::string>{"b"}; }, 5min));
  EXPECT_EQ(watcher->view().state, ViewState::recent) << "a list does not show that the watch delivers";
  clock.run_for(options.max_age + 1s);
  EXPECT_EQ(watcher->view().state, ViewState::stale) << "the lists are refused as well";
  EXPECT_EQ(*watcher->view().confirmed_at, confirmed);
  EXPECT_EQ(watcher->stats().relists, 0U) << "nothing is distrusted";
}

TEST_F(WatcherTest, what_is_not_trusted_any_more_is_unread_until_it_is_listed_again) {
  by_pages(listed(1000, {"a"}), watched());
  start();
  clock.run_for(1s);
  Answer slow = listed(900, {"b"});
  slow.takes = 5s;
  transport.then(slow, watched({{60s, bookmark(901)}}));
  watcher->list_again();
  clock.run_for(1s);
  EXPECT_EQ(watcher->view().state, ViewState::unread);
  clock.run_for(5s);
  EXPECT_EQ(watcher->view().state, ViewState::current);
  EXPECT_THAT(names(), ElementsAre("b"));
  EXPECT_THAT(errors, testing::IsEmpty()) << "nothing is compared with what is not trusted";
}

// It has caught up by the time at which a watch from the old version would notice.
TEST_F(WatcherTest, a_server_that_lost_its_last_second_is_noticed_when_the_connection_breaks) {
  const Error broke{Reason::transport, 0, "connection reset"};
  by_pages(listed(1000, {"a", "lost"}), watched({{10s, bookmark(1001)}, {10s, "", broke}}),
           watched({{10s, bookmark(1002)}, {10s, "", broke}}),
           Answer::ok(one_object(1001, "lost", 1000)));  // Its version: only a connection that broke.
  transport.then(watched(), listed(999, {}));            // Its version,
  transport.then(listed(1003, {"a"}));                   // and the list, by which it has caught up.
  transport.otherwise(watched());
  start();
  clock.run_for(35s);
  EXPECT_EQ(asked(2, "resourceVersion"), "1001");
  EXPECT_THAT(names(), UnorderedElementsAre("a", "lost"));
  clock.run_for(15s);
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_THAT(errors, testing::Contains(HasSubstr("the server went back in time")));
}

// The newest change is `line`; then the connection breaks, and a list of its object is answered by `found`. When the
// server answers again it is past the versions that it has lost.
struct Loss {
  const char* what;
  std::string line, found;
  unsigned lists;
  bool went_back = false;
};
void PrintTo(const Loss& row, std::ostream* out) {
  *out << row.what;
}
struct LossTest : WatcherTest, testing::WithParamInterface<Loss> {};

TEST_P(LossTest, is_noticed_by_the_newest_change_which_proves_nothing_where_it_can_have_other_reasons) {
  const Error broke{Reason::transport, 0, "connection reset"};
  by_pages(listed(1000, {"a", "b"}), watched({{10s, GetParam().line}, {10s, bookmark(1005)}, {1s, "", broke}}),
           watched(), Answer::ok(GetParam().found), listed(2001, {"b"}));
  transport.otherwise(watched());
  start();
  clock.run_for(30s);
  EXPECT_EQ(asked(3, "fieldSelector"), "metadata.name=a");
  EXPECT_EQ(asked(3, "limit"), "1");
  EXPECT_EQ(asked(3, "resourceVersion"), "") << "a consistent read";
  EXPECT_EQ(watcher->stats().lists, GetParam().lists);
  EXPECT_EQ(watcher->stats().relists, GetParam().went_back ? 1U : 0U);
  EXPECT_EQ(names() == std::vector<std::string>{"b"}, GetParam().lists == 2 || GetParam().line.contains("DELETED"));
  if (GetParam().went_back)
    EXPECT_THAT(errors, testing::Contains(HasSubstr("went back in time")));
  else
    EXPECT_THAT(errors, ElementsAre(HasSubstr("connection reset")));
}
const std::string kModified = event("MODIFIED", "a", 1004);
const std::string kDeleted = event("DELETED", "a", 1004);
INSTANTIATE_TEST_SUITE_P(rows, LossTest,
                         testing::Values(Loss{"a change was lost", kModified, one_object(2000, "a", 999), 2, true},
                                         Loss{"a deletion was lost", kDeleted, one_object(2000, "a", 999), 2, true},
                                         Loss{"it is as it was", kModified, one_object(2000, "a", 1004), 1},
                                         Loss{"it is deleted still", kDeleted, page(2000, {}), 1},
                                         Loss{"a server without the selector lists another", kModified,
                                              one_object(2000, "b", 1000), 2},
                                         Loss{"it is gone meanwhile", kModified, page(2000, {}), 2}),
                         [](const auto& row) { return "row" + std::to_string(row.index); });

}  // namespace
}  // namespace k8s::test::watcher_test
