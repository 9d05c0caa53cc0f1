// Maintenance windows: cron fields, time zones, changes to and from summer time.
#include <gtest/gtest.h>

#include "reconcilers/model/rollout_spec.h"

namespace gso::test::windows_test {
namespace {

k8s::WallTime at(std::string_view text) {
  return *k8s::parse_rfc3339(text);
}

struct Case {
  std::string_view name, cron, duration, zone, now;
  bool open;
  std::string_view until;  // Empty: none.
};

class Window : public testing::TestWithParam<Case> {};

TEST_P(Window, IsOpenOrSaysWhenItOpens) {
  const Case& c = GetParam();
  const MaintenanceWindow window{std::string(c.cron), *k8s::parse_go_duration(c.duration), std::string(c.zone)};
  const WindowState state = windows_at({window}, at(c.now));
  EXPECT_EQ(state.problem, "");
  EXPECT_EQ(state.open, c.open);
  EXPECT_EQ(state.until ? k8s::format_time(*state.until) : "", c.until);
}

constexpr Case kCases[] = {
    {"OpensAtItsMinute", "0 2 * * *", "1h", "UTC", "2026-03-10T02:00:00Z", true, "2026-03-10T03:00:00Z"},
    {"IsClosedASecondBefore", "0 2 * * *", "1h", "UTC", "2026-03-10T01:59:59Z", false, "2026-03-10T02:00:00Z"},
    {"IsClosedAtItsEnd", "0 2 * * *", "1h", "UTC", "2026-03-10T03:00:00Z", false, "2026-03-11T02:00:00Z"},
    {"ReachesOverMidnight", "30 23 * * *", "2h", "UTC", "2026-03-10T01:00:00Z", true, "2026-03-10T01:30:00Z"},
    {"ReachesOverSeveralDays", "0 0 * * SAT", "48h", "UTC", "2026-03-15T12:00:00Z", true, "2026-03-16T00:00:00Z"},
    {"CountsInItsTimeZone", "0 2 * * *", "1h", "Europe/Berlin", "2026-01-10T01:30:00Z", true, "2026-01-10T02:00:00Z"},
    {"KeepsLocalTimeInSummer", "0 2 * * *", "1h", "Europe/Berlin", "2026-07-10T00:30:00Z", true,
     "2026-07-10T01:00:00Z"},
    // 2026-03-29 02:00 to 03:00 does not exist in Berlin: it opens when the clock jumps, at 01:00 UTC.
    {"AStartThatIsSkippedOpensAtTheChange", "30 2 * * *", "1h", "Europe/Berlin", "2026-03-29T01:10:00Z", true,
     "2026-03-29T02:00:00Z"},
    // 2026-10-25 02:30 comes twice: at 00:30 and at 01:30 UTC.
    {"AStartThatComesTwiceOpensOnce", "30 2 * * *", "30m", "Europe/Berlin", "2026-10-25T01:35:00Z", false,
     "2026-10-26T01:30:00Z"},
    {"OpensTheFirstTimeOfTwo", "30 2 * * *", "30m", "Europe/Berlin", "2026-10-25T00:35:00Z", true,
     "2026-10-25T01:00:00Z"},
    {"WeekdaysByName", "0 22 * * MON-FRI", "6h", "America/New_York", "2026-03-07T15:00:00Z", false,
     "2026-03-10T02:00:00Z"},
    {"SundayIsZeroAndSeven", "0 0 * * 7", "1h", "UTC", "2026-03-15T00:10:00Z", true, "2026-03-15T01:00:00Z"},
    {"SundayAsTheEndOfARange", "0 0 * * 5-7", "1h", "UTC", "2026-03-15T00:10:00Z", true, "2026-03-15T01:00:00Z"},
    {"DayOfMonthOrDayOfWeek", "0 0 1 * MON", "1h", "UTC", "2026-03-02T00:10:00Z", true, "2026-03-02T01:00:00Z"},
    {"EitherOneIsEnough", "0 0 1 * MON", "1h", "UTC", "2026-04-01T00:10:00Z", true, "2026-04-01T01:00:00Z"},
    {"StepsAndLists", "*/20 1,3 * * *", "5m", "UTC", "2026-03-10T03:41:00Z", true, "2026-03-10T03:45:00Z"},
    {"AStepFromAValue", "0 20/2 * * *", "30m", "UTC", "2026-03-10T22:10:00Z", true, "2026-03-10T22:30:00Z"},
    {"TheTwentyNinthOfFebruary", "0 0 29 2 *", "1h", "UTC", "2026-03-10T00:00:00Z", false, "2028-02-29T00:00:00Z"},
    {"ADayThatNeverComes", "0 0 31 FEB *", "1h", "UTC", "2026-03-10T00:00:00Z", false, ""},
};
INSTANTIATE_TEST_SUITE_P(Times, Window, testing::ValuesIn(kCases),
                         [](const auto& entry) { return std::string(entry.param.name); });

TEST(Windows, NoneMeansAlwaysAndOneOfSeveralIsEnough) {
  EXPECT_TRUE(windows_at({}, at("2026-03-10T00:00:00Z")).open);
  const std::vector<MaintenanceWindow> two{{"0 2 * * *", std::chrono::hours(1), "UTC"},
                                           {"30 2 * * *", std::chrono::hours(2), "UTC"}};
  EXPECT_EQ(*windows_at(two, at("2026-03-10T02:45:00Z")).until, at("2026-03-10T04:30:00Z")) << "the later end counts";
  EXPECT_EQ(*windows_at(two, at("2026-03-10T01:00:00Z")).until, at("2026-03-10T02:00:00Z"))
      << "the earlier start counts";
}

TEST(Windows, OneThatCannotBeReadIsNamedAndNeverOpens) {
  const struct {
    std::string_view cron, zone;
    k8s::Duration duration;
    std::string_view problem;
  } kBad[] = {{"0 2 * *", "UTC", std::chrono::hours(1), "must have five fields"},
              {"60 2 * * *", "UTC", std::chrono::hours(1), "minute \"60\" must be values from 0 to 59"},
              {"0 2 * * MONDAY", "UTC", std::chrono::hours(1), "day of week \"MONDAY\""},
              {"0 5-2 * * *", "UTC", std::chrono::hours(1), "hour \"5-2\""},
              {"*/0 * * * *", "UTC", std::chrono::hours(1), "minute \"*/0\""},
              {"0,, * * * *", "UTC", std::chrono::hours(1), "minute \"0,,\""},
              {"0 2 * * *", "Mars/Olympus", std::chrono::hours(1), "time zone \"Mars/Olympus\""},
              {"0 2 * * *", "zonenow.tab", std::chrono::hours(1), "time zone \"zonenow.tab\""},
              {"0 2 * * *", "UTC", std::chrono::seconds(1), "duration 1s must be from 1m to 168h"}};
  for (const auto& bad : kBad) {
    const MaintenanceWindow window{std::string(bad.cron), bad.duration, std::string(bad.zone)};
    const WindowState state = windows_at({window}, at("2026-03-10T02:00:00Z"));
    EXPECT_FALSE(state.open) << bad.cron;
    EXPECT_NE(state.problem.find(bad.problem), std::string::npos) << state.problem;
  }
}

}  // namespace
}  // namespace gso::test::windows_test
