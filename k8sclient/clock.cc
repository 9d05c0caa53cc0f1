#include "k8sclient/clock.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

namespace k8s {

namespace {

namespace asio = boost::asio;

// CLOCK_BOOTTIME for Asio's timers.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
  }
};

// Asio waits by CLOCK_MONOTONIC, which stands still in suspend: it looks at the time again every second.
struct EverySecond {
  static Duration to_wait_duration(Duration left) { return std::min<Duration>(left, std::chrono::seconds(1)); }
};

class BootTimer : public asio::basic_waitable_timer<BootClock, EverySecond> {
 public:
  BootTimer(const asio::any_io_executor& executor, MonoTime deadline)
      : basic_waitable_timer(executor, BootClock::time_point(deadline.since_boot)) {}
};

MonoTime boot_time() {
  return {BootClock::now().time_since_epoch()};
}

class RealSignal final : public Signal {
 public:
  explicit RealSignal(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void notify() override {
    if (waits_->empty()) {
      pending_ = true;
      return;
    }
    for (Wait* wait : *waits_) {
      wait->notified = true;
      wait->timer.cancel();
    }
    waits_->clear();
  }

  asio::awaitable<bool> wait_until(MonoTime deadline) override {
    if (std::exchange(pending_, false)) co_return true;
    if (deadline <= boot_time()) co_return false;
    Wait wait(executor_, deadline, waits_);
    co_await wait.timer.async_wait(asio::as_tuple(asio::use_awaitable));  // Its deadline, notify() or Asio ends it.
    co_return wait.notified;
  }

 private:
  // Lives in a coroutine's frame, which may be destroyed in the middle of the wait, before or after the signal: either
  // finds the list and leaves it.
  struct Wait {
    using List = std::vector<Wait*>;
    Wait(const asio::any_io_executor& executor, MonoTime deadline, std::shared_ptr<List> waits)
        : timer(executor, deadline), list(std::move(waits)) {
      list->push_back(this);
    }
    ~Wait() { std::erase(*list, this); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    BootTimer timer;
    std::shared_ptr<List> list;
    bool notified = false;
  };
  asio::any_io_executor executor_;
  std::shared_ptr<Wait::List> waits_ = std::make_shared<Wait::List>();
  bool pending_ = false;
};

class RealClock final : public Clock {
 public:
  explicit RealClock(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  WallTime now() const override {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }
  MonoTime monotonic() const override { return boot_time(); }

  asio::awaitable<void> sleep_until(MonoTime deadline) override {
    if (deadline <= boot_time()) co_return;
    BootTimer timer(executor_, deadline);
    co_await timer.async_wait(asio::use_awaitable);
  }

  std::unique_ptr<Signal> make_signal() override { return std::make_unique<RealSignal>(executor_); }

 private:
  asio::any_io_executor executor_;
};

}  // namespace

std::unique_ptr<Clock> make_real_clock(asio::any_io_executor executor) {
  return std::make_unique<RealClock>(std::move(executor));
}

namespace {

bool is_same(WallTime a, WallTime b) {
  return std::chrono::abs(a - b) <= ServerClock::kClocksDiffer;
}

}  // namespace

WallTime ServerClock::Line::at(MonoTime now) const {
  return time + std::chrono::floor<WallTime::duration>(now - since);
}

void ServerClock::answered(std::string_view date) {
  const std::optional<WallTime> time = parse_http_date(date);
  if (!time) return;
  const MonoTime now = monotonic();
  const WallTime own = own_->now();
  const bool was_own = is_same(believed_or(own), own);
  if (is_same(*time, own)) believed_ = Line{own, now};
  if (!was_own && is_same(*time, own) && on_switch_) on_switch_(Duration::zero());
  if (believed_ && is_same(*time, believed_->at(now))) {
    rival_.reset();
    return;
  }
  if (!rival_ || !is_same(*time, rival_->at(now))) rival_ = Line{*time, now};
  if (!believed_ && !doubted_since_) doubted_since_ = now;
  if (now - rival_->since < (believed_ && was_own ? kPersuadesOtherwise : kPersuades)) return;
  believed_ = rival_;
  rival_.reset();
  if (on_switch_) on_switch_(std::chrono::duration_cast<Duration>(believed_or(own) - own));
}

bool ServerClock::in_doubt() const {
  return !believed_ && doubted_since_ && monotonic() - *doubted_since_ <= kPersuades;
}

WallTime ServerClock::believed_or(WallTime own) const {
  if (!believed_) return own;
  const WallTime believed = believed_->at(monotonic());
  return is_same(own, believed) ? own : believed;
}

WallTime ServerClock::now() const {
  return believed_or(own_->now());
}

}  // namespace k8s
