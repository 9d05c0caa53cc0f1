// The one Clock: every wait in the project (queue, backoff, lease, idle timers, soak) goes through it, so that the
// simulated cluster can own time. Nothing but clock.cc (and the simulator's clock) may use an Asio timer.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

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

// --- The wall clock as the API server has it: creation times, the times of edits and what the operator stores beside
// them are compared with it, so that a machine whose clock is wrong neither sees objects from the future nor takes new
// ones for old. It is known from the header Date of the server's answers.

class ServerClock final : public Clock {
 public:
  // Clocks of one cluster may differ by that much, and creation times are whole seconds: beyond it, one of them is
  // wrong.
  static constexpr Duration kClocksDiffer = std::chrono::seconds(10);
  // For so long every answer must contradict the time in use, and agree with the others, before it is given up: one of
  // several servers, or a proxy, can have a wrong clock.
  static constexpr Duration kPersuades = std::chrono::minutes(1);
  // The same of a machine's clock that a server has agreed with, and that has not been set since: connections and
  // watches reach the other servers meanwhile.
  static constexpr Duration kPersuadesOtherwise = std::chrono::hours(1);

  // `own` must outlive this object. `on_switch` hears by how much the time in use is ahead of the machine's from now
  // on; it can be empty.
  explicit ServerClock(Clock* own, std::function<void(Duration ahead)> on_switch = {})
      : own_(own), on_switch_(std::move(on_switch)) {}

  // An answer of the server has just arrived, with that header ("Sun, 06 Nov 1994 08:49:37 GMT"); anything else is
  // ignored. One that agrees with the machine's clock proves that one right.
  void answered(std::string_view date);

  // The machine's own time, unless it differs by more than kClocksDiffer from the time that the servers' answers agree
  // with: then that time, to a second or two. So setting the machine's clock moves it only where a server agrees.
  [[nodiscard]] WallTime now() const override;
  // No server has agreed with the machine's clock yet, and one has contradicted it, for at most kPersuades: nothing
  // should be decided by the time.
  [[nodiscard]] bool in_doubt() const;
  [[nodiscard]] MonoTime monotonic() const override { return own_->monotonic(); }
  boost::asio::awaitable<void> sleep_until(MonoTime deadline) override { return own_->sleep_until(deadline); }
  [[nodiscard]] std::unique_ptr<Signal> make_signal() override { return own_->make_signal(); }

 private:
  // A wall clock that showed `time` at `since`, and has not been set since then.
  struct Line {
    WallTime time{};
    MonoTime since{};
    [[nodiscard]] WallTime at(MonoTime now) const;
  };

  [[nodiscard]] WallTime believed_or(WallTime own) const;

  Clock* own_;
  std::function<void(Duration)> on_switch_;
  std::optional<MonoTime> doubted_since_;  // The first answer that contradicted, before anything was believed.
  std::optional<Line> believed_;
  std::optional<Line> rival_;  // What has contradicted it ever since, or nothing has been believed yet.
};

}  // namespace k8s
