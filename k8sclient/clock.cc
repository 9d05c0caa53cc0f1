#include "k8sclient/clock.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <map>
#include <system_error>
#include <vector>

namespace k8s {

namespace {

namespace asio = boost::asio;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

MonoTime boot_time() {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return {std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec)};
}

// The one timer behind all waits of a clock: a timerfd of CLOCK_BOOTTIME, set to the next deadline. A steady_timer
// counts CLOCK_MONOTONIC, which stands still in suspend. While nothing has a deadline nothing is waited for, so that an
// io_context without work ends.
class BootTimer : public std::enable_shared_from_this<BootTimer> {
 public:
  explicit BootTimer(const asio::any_io_executor& executor)
      : fd_(executor, timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (!fd_.is_open()) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  }

  // Cancels `sleeper` at the deadline, while this lives. Lives in a coroutine's frame, which may be destroyed in the
  // middle of the wait, also after the clock.
  class Alarm {
   public:
    Alarm(std::weak_ptr<BootTimer> owner, MonoTime deadline, asio::steady_timer* sleeper)
        : owner_(std::move(owner)), sleeper_(sleeper) {
      const std::shared_ptr<BootTimer> timer = owner_.lock();
      if (timer == nullptr || deadline == MonoTime::never()) return;
      place_ = timer->alarms_.emplace(deadline, this);
      timer->arm();
    }
    ~Alarm() {
      const std::shared_ptr<BootTimer> timer = owner_.lock();
      if (timer == nullptr || !place_) return;
      timer->alarms_.erase(*place_);
      if (timer->alarms_.empty()) timer->rest();
    }
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    // The deadline has come.
    [[nodiscard]] bool rang() const { return rang_; }

   private:
    friend class BootTimer;
    std::weak_ptr<BootTimer> owner_;
    asio::steady_timer* sleeper_;
    std::optional<std::multimap<MonoTime, Alarm*>::iterator> place_;
    bool rang_ = false;
  };

 private:
  void arm() {
    const MonoTime next = alarms_.begin()->first;
    if (next != set_to_) {
      const auto seconds = std::chrono::floor<std::chrono::seconds>(next.since_boot);
      itimerspec when{};
      when.it_value.tv_sec = seconds.count();
      // All zero would switch it off.
      when.it_value.tv_nsec = std::max<long>(1, std::chrono::nanoseconds(next.since_boot - seconds).count());
      timerfd_settime(fd_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
      set_to_ = next;
    }
    if (std::exchange(waiting_, true)) return;
    fd_.async_wait(asio::posix::stream_descriptor::wait_read, [weak = weak_from_this()](const auto&) {
      if (const std::shared_ptr<BootTimer> timer = weak.lock()) timer->on_time();
    });
  }
  void rest() {
    boost::system::error_code ignored;
    if (waiting_) fd_.cancel(ignored);
  }
  // Also when the wait was ended by rest(), and somebody has come meanwhile.
  void on_time() {
    waiting_ = false;
    const MonoTime now = boot_time();
    while (!alarms_.empty() && alarms_.begin()->first <= now) {
      Alarm& alarm = *alarms_.begin()->second;
      alarms_.erase(alarms_.begin());
      alarm.place_.reset();
      alarm.rang_ = true;
      alarm.sleeper_->cancel();
    }
    std::uint64_t expirations = 0;
    if (read(fd_.native_handle(), &expirations, sizeof expirations) > 0) set_to_.reset();
    if (!alarms_.empty()) arm();
  }

  asio::posix::stream_descriptor fd_;
  std::multimap<MonoTime, Alarm*> alarms_;
  std::optional<MonoTime> set_to_;
  bool waiting_ = false;
};

class RealSignal final : public Signal {
 public:
  RealSignal(asio::any_io_executor executor, std::weak_ptr<BootTimer> timer)
      : executor_(std::move(executor)), timer_(std::move(timer)) {}

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
    Wait wait(executor_, waits_);
    const BootTimer::Alarm alarm(timer_, deadline, &wait.timer);
    co_await wait.timer.async_wait(kAsTuple);  // Until one of both, or Asio, cancels it.
    co_return wait.notified;
  }

 private:
  // Lives in a coroutine's frame, which may be destroyed in the middle of the wait, before or after the signal: either
  // finds the list and leaves it.
  struct Wait {
    using List = std::vector<Wait*>;
    Wait(const asio::any_io_executor& executor, std::shared_ptr<List> waits)
        : timer(executor, asio::steady_timer::time_point::max()), list(std::move(waits)) {
      list->push_back(this);
    }
    ~Wait() { std::erase(*list, this); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    asio::steady_timer timer;
    std::shared_ptr<List> list;
    bool notified = false;
  };
  asio::any_io_executor executor_;
  std::weak_ptr<BootTimer> timer_;  // The clock's. A signal can outlive it.
  std::shared_ptr<Wait::List> waits_ = std::make_shared<Wait::List>();
  bool pending_ = false;
};

class RealClock final : public Clock {
 public:
  explicit RealClock(asio::any_io_executor executor)
      : executor_(std::move(executor)), timer_(std::make_shared<BootTimer>(executor_)) {}

  WallTime now() const override {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }
  MonoTime monotonic() const override { return boot_time(); }

  asio::awaitable<void> sleep_until(MonoTime deadline) override {
    if (deadline <= boot_time()) co_return;
    asio::steady_timer sleeper(executor_, asio::steady_timer::time_point::max());
    const BootTimer::Alarm alarm(timer_, deadline, &sleeper);
    auto [ec] = co_await sleeper.async_wait(kAsTuple);
    if (!alarm.rang()) throw boost::system::system_error(ec);
  }

  std::unique_ptr<Signal> make_signal() override { return std::make_unique<RealSignal>(executor_, timer_); }

 private:
  asio::any_io_executor executor_;
  std::shared_ptr<BootTimer> timer_;
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
