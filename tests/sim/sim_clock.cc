// The simulated clock. Waits are Asio timers that never expire and are cancelled by the clock, so that coroutine
// cancellation works as with real timers.
#include "tests/sim/sim_clock.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <stdexcept>
#include <vector>

namespace gso::sim {
namespace {

namespace asio = boost::asio;
using k8s::Duration;
using k8s::MonoTime;

// More handlers than any instant of a simulation needs: reaching it means that a loop never waits.
constexpr std::uint64_t kMostHandlersPerInstant = 20'000'000;

}  // namespace

struct SimClock::Wait {
  explicit Wait(asio::io_context& io) : timer(io, asio::steady_timer::time_point::max()) {}
  asio::steady_timer timer;
  std::optional<Schedule::iterator> position;
  bool fired = false;
  bool notified = false;  // Fired by a Signal, not by its deadline.
};

// Wakes every wait in progress; remembers one notify when nobody waits.
class SimSignal final : public k8s::Signal {
 public:
  explicit SimSignal(SimClock& clock) : clock_(clock) {}

  void notify() override {
    if (waits_.empty()) {
      pending_ = true;
      return;
    }
    for (const auto& wait : std::exchange(waits_, {})) {
      wait->notified = true;
      SimClock::unschedule(*clock_.schedule_, *wait);
      SimClock::fire(*wait);
    }
  }

  asio::awaitable<bool> wait_until(MonoTime deadline) override {
    if (std::exchange(pending_, false)) co_return true;
    if (deadline <= clock_.monotonic()) co_return false;
    auto wait = std::make_shared<SimClock::Wait>(clock_.io_);
    waits_.push_back(wait);
    (void)co_await clock_.suspend(wait, deadline);
    std::erase(waits_, wait);
    co_return wait->notified;
  }

 private:
  SimClock& clock_;
  std::vector<std::shared_ptr<SimClock::Wait>> waits_;
  bool pending_ = false;
};

SimClock::SimClock(asio::io_context& io, k8s::WallTime start) : io_(io), start_(start) {}
SimClock::~SimClock() = default;

k8s::WallTime SimClock::now() const {
  return start_ + std::chrono::duration_cast<std::chrono::milliseconds>(mono_.since_boot + wall_offset_);
}

void SimClock::unschedule(Schedule& schedule, Wait& wait) {
  if (wait.position) schedule.erase(*wait.position);
  wait.position.reset();
}

void SimClock::fire(Wait& wait) {
  wait.fired = true;
  wait.timer.cancel();
}

asio::awaitable<bool> SimClock::suspend(std::shared_ptr<Wait> wait, MonoTime deadline) {
  if (deadline < MonoTime::never()) wait->position = schedule_->emplace(deadline, wait.get());
  // Removes the wait from the schedule also when the coroutine is destroyed while suspended.
  struct Guard {
    std::shared_ptr<Schedule> schedule;
    Wait* wait;
    ~Guard() { unschedule(*schedule, *wait); }
  } guard{schedule_, wait.get()};
  auto [ec] = co_await wait->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  (void)ec;  // Always operation_aborted: `fired` distinguishes a wakeup from a cancellation.
  co_return wait->fired;
}

asio::awaitable<void> SimClock::sleep_until(MonoTime deadline) {
  if (deadline <= mono_) co_return;
  auto wait = std::make_shared<Wait>(io_);
  const bool fired = co_await suspend(wait, deadline);
  if (!fired) throw boost::system::system_error(asio::error::operation_aborted);
}

std::unique_ptr<k8s::Signal> SimClock::make_signal() {
  return std::make_unique<SimSignal>(*this);
}

void SimClock::run_ready() {
  if (io_.stopped()) io_.restart();
  for (std::uint64_t count = 0; io_.poll_one() > 0; ++count)
    if (count >= kMostHandlersPerInstant)
      throw std::runtime_error("simulated time stands still: a coroutine runs in a loop without waiting");
}

std::optional<MonoTime> SimClock::earliest_wakeup() const {
  if (schedule_->empty()) return std::nullopt;
  return schedule_->begin()->first;
}

bool SimClock::advance_to_next() {
  run_ready();
  if (schedule_->empty()) return false;
  const MonoTime next = schedule_->begin()->first;
  mono_ = std::max(mono_, next);
  while (!schedule_->empty() && schedule_->begin()->first <= next) {
    Wait& wait = *schedule_->begin()->second;
    unschedule(*schedule_, wait);
    fire(wait);
  }
  run_ready();
  return true;
}

bool SimClock::run_until(const std::function<bool()>& predicate, Duration limit) {
  const MonoTime end = mono_ + limit;
  run_ready();
  while (!predicate()) {
    const auto next = earliest_wakeup();
    if (!next || *next > end) {
      mono_ = std::max(mono_, end);
      return predicate();
    }
    advance_to_next();
  }
  return true;
}

void SimClock::run_for(Duration duration) {
  const MonoTime end = mono_ + duration;
  run_ready();
  for (auto next = earliest_wakeup(); next && *next <= end; next = earliest_wakeup()) advance_to_next();
  mono_ = std::max(mono_, end);
}

}  // namespace gso::sim
