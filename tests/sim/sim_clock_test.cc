// Simulated time: order of wakeups, jumps, limits, signals and cancellation.
#include "tests/sim/sim_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/system/system_error.hpp>
#include <string>
#include <vector>

namespace gso::sim::sim_clock_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using testing::ElementsAre;

struct SimClockTest : testing::Test {
  asio::io_context io;
  SimClock clock{io, *k8s::parse_rfc3339("2026-01-01T00:00:00Z")};
  std::vector<std::string> log;

  void note(std::string what) { log.push_back(what + "@" + k8s::format_go_duration(clock.monotonic().since_boot)); }
};

asio::awaitable<void> sleep_then_note(SimClockTest* test, std::string name, k8s::Duration time) {
  co_await test->clock.sleep_for(time);
  test->note(std::move(name));
}

asio::awaitable<void> wait_then_note(SimClockTest* test, k8s::Signal* signal, std::string name,
                                     k8s::MonoTime deadline) {
  const bool notified = co_await signal->wait_until(deadline);
  test->note(name + (notified ? "=notified" : "=deadline"));
}

asio::awaitable<void> sleep_until_cancelled(SimClockTest* test) {
  try {
    co_await test->clock.sleep_for(1h);
    test->note("slept");
  } catch (const boost::system::system_error& e) {
    test->note(e.code() == asio::error::operation_aborted ? "cancelled" : "other");
  }
}

TEST_F(SimClockTest, wakes_in_the_order_of_deadlines_and_equal_ones_in_order_of_registration) {
  asio::co_spawn(io, sleep_then_note(this, "late", 5s), asio::detached);
  asio::co_spawn(io, sleep_then_note(this, "first", 2s), asio::detached);
  asio::co_spawn(io, sleep_then_note(this, "second", 2s), asio::detached);
  while (clock.advance_to_next()) {
  }
  EXPECT_THAT(log, ElementsAre("first@2s", "second@2s", "late@5s"));
  EXPECT_EQ(k8s::format_time(clock.now()), "2026-01-01T00:00:05Z");
}

TEST_F(SimClockTest, run_for_stops_exactly_where_asked_and_leaves_later_waits_alone) {
  asio::co_spawn(io, sleep_then_note(this, "early", 1s), asio::detached);
  asio::co_spawn(io, sleep_then_note(this, "late", 1h), asio::detached);
  clock.run_for(10s);
  EXPECT_THAT(log, ElementsAre("early@1s"));
  EXPECT_EQ(clock.monotonic().since_boot, 10s);
  EXPECT_EQ(clock.earliest_wakeup(), k8s::MonoTime{1h});
}

TEST_F(SimClockTest, run_until_ends_when_the_predicate_holds_or_at_its_limit) {
  asio::co_spawn(io, sleep_then_note(this, "a", 3s), asio::detached);
  asio::co_spawn(io, sleep_then_note(this, "b", 1h), asio::detached);
  EXPECT_TRUE(clock.run_until([&] { return !log.empty(); }, 1min));
  EXPECT_EQ(clock.monotonic().since_boot, 3s);
  EXPECT_FALSE(clock.run_until([&] { return log.size() == 2; }, 1min));
  EXPECT_EQ(clock.monotonic().since_boot, 63s);
}

TEST_F(SimClockTest, a_signal_wakes_all_waiters_and_a_notify_nobody_waited_for_is_kept_once) {
  auto signal = clock.make_signal();
  signal->notify();
  signal->notify();
  asio::co_spawn(io, wait_then_note(this, signal.get(), "kept", k8s::MonoTime::never()), asio::detached);
  clock.run_ready();
  asio::co_spawn(io, wait_then_note(this, signal.get(), "x", k8s::MonoTime::never()), asio::detached);
  asio::co_spawn(io, wait_then_note(this, signal.get(), "y", {5s}), asio::detached);
  clock.run_for(1s);
  signal->notify();
  clock.run_for(10s);
  asio::co_spawn(io, wait_then_note(this, signal.get(), "z", {20s}), asio::detached);
  clock.run_for(1min);
  EXPECT_THAT(log, ElementsAre("kept=notified@0s", "x=notified@1s", "y=notified@1s", "z=deadline@20s"));
}

TEST_F(SimClockTest, a_cancelled_sleep_throws_and_leaves_no_wakeup_behind) {
  asio::cancellation_signal cancel;
  asio::co_spawn(io, sleep_until_cancelled(this), asio::bind_cancellation_slot(cancel.slot(), asio::detached));
  clock.run_for(1s);
  cancel.emit(asio::cancellation_type::terminal);
  clock.run_ready();
  EXPECT_THAT(log, ElementsAre("cancelled@1s"));
  EXPECT_EQ(clock.earliest_wakeup(), std::nullopt);
}

TEST_F(SimClockTest, a_jump_of_the_wall_clock_moves_no_deadline) {
  asio::co_spawn(io, sleep_then_note(this, "a", 3s), asio::detached);
  clock.run_for(1s);
  clock.jump_wall_clock(-1h);
  clock.run_for(5s);
  EXPECT_THAT(log, ElementsAre("a@3s"));
  EXPECT_EQ(k8s::format_time(clock.now()), "2025-12-31T23:00:06Z");
}

}  // namespace
}  // namespace gso::sim::sim_clock_test
