// The one Clock: every wait in the project (queue, backoff, lease, idle timers, soak) goes through it, so that the
// simulated cluster can own time. Nothing but clock.cc (and the simulator's clock) may use an Asio timer.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>

#include "k8sclient/value/time.h"

namespace k8s {

// Wakes coroutines: notify() ends every wait() in progress; a notify with nobody waiting is remembered once, so a
// notify between a check and its wait is never lost. One-thread only. Waits honour Asio cancellation.
class Signal {
 public:
  virtual ~Signal() = default;
  virtual void notify() = 0;
  // Returns true when notified, false when `deadline` passed (or the wait was cancelled).
  virtual boost::asio::awaitable<bool> wait_until(MonoTime deadline) = 0;
  boost::asio::awaitable<bool> wait() { return wait_until(MonoTime::never()); }
};

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual WallTime now() const = 0;
  [[nodiscard]] virtual MonoTime monotonic() const = 0;
  // Completes at or after `deadline`, or early when cancelled through the coroutine's cancellation slot (then it
  // throws boost::system::system_error(operation_aborted), as Asio operations do).
  virtual boost::asio::awaitable<void> sleep_until(MonoTime deadline) = 0;
  boost::asio::awaitable<void> sleep_for(Duration d) { return sleep_until(monotonic() + d); }
  [[nodiscard]] virtual std::unique_ptr<Signal> make_signal() = 0;
};

// The real clock on an io_context's executor: CLOCK_REALTIME and CLOCK_BOOTTIME, with one timerfd for all waits, which
// ends them at their deadline also after a suspend. It must go before the io_context.
[[nodiscard]] std::unique_ptr<Clock> make_real_clock(boost::asio::any_io_executor executor);

}  // namespace k8s
