// The real clock: what a Signal promises, and sleeping.
#include "k8sclient/clock.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace k8s::test::clock_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

class ClockTest : public testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<bool>>;

  Answer start(asio::awaitable<bool> wait, asio::cancellation_slot slot = {}) {
    auto answer = std::make_shared<std::optional<bool>>();
    asio::co_spawn(io, std::move(wait),
                   asio::bind_cancellation_slot(slot, [answer](std::exception_ptr error, bool value) {
                     if (!error) *answer = value;
                   }));
    return answer;
  }
  void settle() {
    io.restart();
    while (io.poll() > 0) {
    }
  }

  asio::io_context io;
  std::unique_ptr<Clock> clock = make_real_clock(io.get_executor());
  std::unique_ptr<Signal> signal = clock->make_signal();
};

TEST_F(ClockTest, ANotifyEndsEveryWaitInProgress) {
  const auto first = start(signal->wait());
  const auto second = start(signal->wait_until(clock->monotonic() + 1h));
  settle();
  EXPECT_FALSE(first->has_value());
  signal->notify();
  settle();
  EXPECT_EQ(*first, true);
  EXPECT_EQ(*second, true);
}

TEST_F(ClockTest, ANotifyIsRememberedOnceAndOnlyIfItEndedNoWait) {
  signal->notify();
  signal->notify();
  const auto remembered = start(signal->wait());
  settle();
  EXPECT_EQ(*remembered, true);
  const auto waiting = start(signal->wait());
  settle();
  EXPECT_FALSE(waiting->has_value());
  signal->notify();
  settle();
  EXPECT_EQ(*waiting, true);
  const auto next = start(signal->wait());
  settle();
  EXPECT_FALSE(next->has_value());
}

TEST_F(ClockTest, ADeadlineEndsAWaitUnnotified) {
  const auto past = start(signal->wait_until(clock->monotonic() - 1s));
  const auto soon = start(signal->wait_until(clock->monotonic() + 1ms));
  io.run();
  EXPECT_EQ(*past, false);
  EXPECT_EQ(*soon, false);
}

TEST_F(ClockTest, AWaitCancelledByAsioEndsAndTheOthersGoOn) {
  asio::cancellation_signal cancel;
  const auto cancelled = start(signal->wait(), cancel.slot());
  const auto other = start(signal->wait());
  settle();
  cancel.emit(asio::cancellation_type::terminal);
  settle();
  EXPECT_EQ(cancelled->value_or(false), false);
  EXPECT_FALSE(other->has_value());
  signal->notify();
  settle();
  EXPECT_EQ(*other, true);
}

TEST_F(ClockTest, ASignalOutlivesTheCoroutinesThatWaitedOnIt) {
  {
    asio::io_context doomed;
    const auto doomed_clock = make_real_clock(doomed.get_executor());
    auto survivor = doomed_clock->make_signal();
    asio::co_spawn(doomed, survivor->wait(), [](std::exception_ptr, bool) {});
    doomed.poll();
    signal = std::move(survivor);
  }
  signal->notify();  // The waiting frame died with its io_context.
}

asio::awaitable<bool> sleep_and_report(Clock* clock, MonoTime deadline) {
  co_await clock->sleep_until(deadline);
  co_return clock->monotonic() >= deadline;
}

TEST_F(ClockTest, ASleepEndsNoEarlierThanItsDeadlineAndAtOnceWhereThatHasPassed) {
  const auto past = start(sleep_and_report(clock.get(), clock->monotonic() - 1h));
  settle();
  EXPECT_EQ(*past, true);
  const auto slept = start(sleep_and_report(clock.get(), clock->monotonic() + 2ms));
  io.restart();
  io.run();
  EXPECT_EQ(*slept, true);
}

TEST_F(ClockTest, ACancelledSleepThrowsOperationAborted) {
  asio::cancellation_signal cancel;
  boost::system::error_code seen;
  asio::co_spawn(io, sleep_and_report(clock.get(), clock->monotonic() + 1h),
                 asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr error, bool) {
                   try {
                     if (error) std::rethrow_exception(error);
                   } catch (const boost::system::system_error& thrown) {
                     seen = thrown.code();
                   }
                 }));
  settle();
  cancel.emit(asio::cancellation_type::terminal);
  settle();
  EXPECT_EQ(seen, asio::error::operation_aborted);
}

// Each deadline ends its own waits, in whatever order they were begun, and a wait that is over keeps no program from
// its end.
TEST_F(ClockTest, EachOfManyDeadlinesIsKept) {
  std::vector<int> ended;
  const auto sleep = [this, &ended](int number, Duration duration) {
    asio::co_spawn(io, sleep_and_report(clock.get(), clock->monotonic() + duration),
                   [&ended, number](std::exception_ptr error, bool late_enough) {
                     if (!error && late_enough) ended.push_back(number);
                   });
  };
  sleep(3, 60ms);
  sleep(1, 1ms);
  sleep(2, 30ms);
  asio::cancellation_signal cancel;
  const auto cancelled = start(signal->wait_until(clock->monotonic() + 1h), cancel.slot());
  settle();
  cancel.emit(asio::cancellation_type::terminal);
  io.restart();
  io.run();
  EXPECT_EQ(ended, (std::vector{1, 2, 3}));
  EXPECT_FALSE(cancelled->value_or(false));
  sleep(4, 1ms);  // After a rest.
  io.restart();
  io.run();
  EXPECT_EQ(ended.back(), 4);
}

TEST_F(ClockTest, NeverIsLaterThanEveryDeadline) {
  EXPECT_LT(clock->monotonic() + 24h * 365 * 100, MonoTime::never());
  EXPECT_GE(clock->monotonic(), clock->monotonic() - 1ns);
}

}  // namespace
}  // namespace k8s::test::clock_test
