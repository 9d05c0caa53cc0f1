// Watcher: what it concludes from APIs that discovery says are absent, and when that ends.
#include <gmock/gmock.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/k8sclient/watch/watcher_fixture.h"

namespace k8s::test::watcher_absent_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Answer kServesNothing = Answer::ok(R"({"kind":"APIVersions","versions":[]})");
const Answer kServesNodes = Answer::ok(R"({"kind":"APIResourceList","resources":[{"name":"nodes"}]})");
// To a list or watch, and to discovery of the version and of all of them.
const std::vector<Answer> kAbsent{Answer::code(404), Answer::code(404), kServesNothing};

// What becomes of the view of an absent API.
struct AfterAbsence {
  const char* what;
  std::vector<Answer> answers;  // Once discovery has named the API.
  ApiState api;
  ViewState view;
  double retried;  // Seconds until the next attempt, at most; 0: none is made.
};
void PrintTo(const AfterAbsence& row, std::ostream* out) {
  *out << row.what;
}
struct AfterAbsenceTest : WatcherTest, testing::WithParamInterface<AfterAbsence> {};

TEST_P(AfterAbsenceTest, a_view_is_current_only_by_what_discovery_or_a_list_has_said_since) {
  for (const Answer& answer : kAbsent) transport.then(answer);
  start();
  EXPECT_TRUE(store.synced());
  EXPECT_EQ(watcher->api(), ApiState::absent);
  EXPECT_EQ(watcher->view().state, ViewState::current);
  EXPECT_THAT(errors, IsEmpty());
  for (const Answer& answer : GetParam().answers) transport.then(answer);
  transport.otherwise(GetParam().answers.back());
  watcher->retry_now();
  clock.run_ready();
  EXPECT_EQ(watcher->api(), GetParam().api);
  EXPECT_EQ(watcher->view().state, GetParam().view);
  if (GetParam().retried == 0) return;
  const std::size_t asked = transport.requests.size();
  watcher->retry_now();
  clock.run_ready();
  EXPECT_EQ(transport.requests.size(), asked) << "no back-off is cut short";
  EXPECT_TRUE(clock.run_until([&] { return transport.requests.size() > asked; }, 10min));
  EXPECT_LE(gap(asked), GetParam().retried);
  clock.run_for(10min);
  EXPECT_EQ(watcher->view().state, GetParam().view);
}
INSTANTIATE_TEST_SUITE_P(
    rows, AfterAbsenceTest,
    testing::Values(
        AfterAbsence{"absent", kAbsent, ApiState::absent, ViewState::current, 0},
        AfterAbsence{"listed", {watched({{{}, bookmark(5, true)}})}, ApiState::served, ViewState::current, 0},
        AfterAbsence{"silent", {watched()}, ApiState::unknown, ViewState::unread, 0},
        AfterAbsence{"broken", {Answer::code(500)}, ApiState::unknown, ViewState::unread, 2},
        AfterAbsence{"forbidden", {Answer::status_of(403, "Forbidden")}, ApiState::unknown, ViewState::unread, 30},
        AfterAbsence{"unreachable", {Answer::broken()}, ApiState::unknown, ViewState::unread, 2},
        AfterAbsence{"a proxy's 404", {Answer::code(404, "<html>")}, ApiState::unknown, ViewState::unread, 90},
        AfterAbsence{"not served yet", {Answer::code(404), kServesNodes}, ApiState::unknown, ViewState::unread, 2}),
    [](const auto& row) { return "row" + std::to_string(row.index); });

TEST_F(WatcherTest, an_api_is_absent_for_as_long_as_discovery_says_so) {
  for (const Answer& answer : kAbsent) transport.then(answer);
  transport.otherwise(Answer::code(502));
  start();
  clock.run_for(59s);
  EXPECT_EQ(watcher->view().state, ViewState::current);
  clock.run_until([this] { return !errors.empty(); }, 5min);
  EXPECT_EQ(watcher->view().state, ViewState::unread) << "it can have been installed in the outage";
  for (const Answer& answer : kAbsent) transport.then(answer);
  clock.run_for(60s);
  EXPECT_EQ(watcher->view().state, ViewState::current);
  watcher->list_again();
  EXPECT_EQ(watcher->view().state, ViewState::unread) << "nor does it outlive a restore";
}

TEST_F(WatcherTest, the_view_of_an_absent_api_is_as_old_as_the_word_of_discovery) {
  for (const Answer& answer : kAbsent) transport.then(answer);
  Answer slow = Answer::code(502);
  slow.takes = 1h;
  transport.otherwise(slow);
  start();
  clock.run_for(options.max_age - 1s);
  EXPECT_EQ(watcher->view().state, ViewState::current);
  clock.run_for(2s);
  EXPECT_EQ(watcher->view().state, ViewState::unread);
}

TEST_F(WatcherTest, an_absent_api_costs_no_watch_until_discovery_names_it) {
  transport.then(Answer::code(404));  // The watch.
  for (int look = 0; look < 4; ++look) transport.then(Answer::code(404), kServesNothing);
  transport.then(kServesNodes, watched({{{}, event("ADDED", "a", 1) + bookmark(5, true)}}));
  start();
  clock.run_for(3min);
  const auto watches = [this] {
    return std::ranges::count_if(transport.requests, [](const auto& r) { return r.path.contains("watch="); });
  };
  EXPECT_EQ(watches(), 1) << "each has a connection of its own";
  clock.run_until([this] { return !names().empty(); }, 5min);
  EXPECT_EQ(watches(), 2);
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(WatcherTest, a_404_that_discovery_does_not_confirm_empties_nothing_and_does_not_cost_the_place_of_the_watch) {
  const Answer proxy = Answer::code(404, "<html>wrong door</html>");
  by_pages(listed(10, {"a"}), proxy, proxy, proxy);
  transport.otherwise(watched());
  start();
  clock.run_for(30s);
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_EQ(watcher->api(), ApiState::served);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("wrong door")));
  clock.run_for(70s);
  EXPECT_EQ(asked(transport.requests.size() - 1, "resourceVersion"), "10");
  EXPECT_EQ(watcher->stats().lists, 1U);
}

TEST_F(WatcherTest, an_api_that_is_removed_later_is_listed_again_when_it_comes_back) {
  by_pages(listed(10, {"a"}), Answer::code(404), Answer::code(404), kServesNothing);
  start();
  EXPECT_EQ(watcher->api(), ApiState::absent);
  EXPECT_THAT(names(), IsEmpty());
  transport.then(listed(20, {"b"}), watched());
  watcher->retry_now();
  clock.run_ready();
  EXPECT_EQ(watcher->api(), ApiState::served);
  EXPECT_THAT(names(), ElementsAre("b"));
}

}  // namespace
}  // namespace k8s::test::watcher_absent_test
