// Simulated time: a k8s::Clock over an io_context whose time stands still while handlers run and jumps to the next
// wakeup when nothing is left to run. A run never blocks on real time, and the same program gives the same order of
// wakeups every time.
//
//   asio::io_context io;
//   SimClock clock(io, *k8s::parse_rfc3339("2026-01-01T00:00:00Z"));
//   asio::co_spawn(io, program(clock), asio::detached);
//   bool done = clock.run_until([&] { return finished; }, 10min);
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "k8sclient/clock.h"

namespace gso::sim {

// One-thread only. Guarantees: wakeups fire in the order of their deadlines, equal deadlines in the order in which
// they were registered; before time moves, everything that can run has run.
class SimClock final : public k8s::Clock {
 public:
  SimClock(boost::asio::io_context& io, k8s::WallTime start);
  ~SimClock() override;
  SimClock(const SimClock&) = delete;
  SimClock& operator=(const SimClock&) = delete;

  [[nodiscard]] k8s::WallTime now() const override;
  [[nodiscard]] k8s::MonoTime monotonic() const override { return mono_; }
  boost::asio::awaitable<void> sleep_until(k8s::MonoTime deadline) override;
  [[nodiscard]] std::unique_ptr<k8s::Signal> make_signal() override;

  // Runs what is ready, and whatever that makes ready, without moving time. Throws std::runtime_error when it does
  // not come to rest (a loop that never waits).
  void run_ready();
  // run_ready(), then jumps to the earliest wakeup and runs that. False, with time unmoved, when nothing waits for a
  // time.
  bool advance_to_next();
  // Advances until `predicate` holds (checked whenever everything ready has run) or `limit` of simulated time has
  // passed; in the latter case time stands at the limit. Returns whether the predicate holds.
  bool run_until(const std::function<bool()>& predicate, k8s::Duration limit);
  // Advances by exactly this much, running every wakeup on the way.
  void run_for(k8s::Duration duration);
  // When the next wait ends, or nullopt when none waits for a time.
  [[nodiscard]] std::optional<k8s::MonoTime> earliest_wakeup() const;
  // Moves the wall clock only, as an administrator or NTP would: deadlines are not affected.
  void jump_wall_clock(k8s::Duration by) { wall_offset_ += by; }

 private:
  friend class SimSignal;
  struct Wait;
  using Schedule = std::multimap<k8s::MonoTime, Wait*>;

  // Suspends until fire() or the coroutine's cancellation; true when fired.
  boost::asio::awaitable<bool> suspend(std::shared_ptr<Wait> wait, k8s::MonoTime deadline);
  static void unschedule(Schedule& schedule, Wait& wait);
  static void fire(Wait& wait);

  boost::asio::io_context& io_;
  k8s::WallTime start_;
  k8s::Duration wall_offset_{0};
  k8s::MonoTime mono_{};
  // Only waits that have a deadline; equal keys keep their order of insertion. Shared with the suspended coroutines,
  // which the io_context may destroy after this clock.
  std::shared_ptr<Schedule> schedule_ = std::make_shared<Schedule>();
};

}  // namespace gso::sim
