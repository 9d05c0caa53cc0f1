#include "k8sclient/clock.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <ctime>
#include <utility>
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

// A steady_timer counts CLOCK_MONOTONIC, which stands still in suspend: a longer wait is cut into pieces and checked
// against CLOCK_BOOTTIME after each, so that after a suspend a deadline is late by this much at most.
constexpr Duration kLongestTimer = std::chrono::seconds(5);

Duration piece_until(MonoTime deadline) {
  return std::min(deadline - boot_time(), kLongestTimer);
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
    Wait wait(executor_, waits_);
    bool cancelled = false;
    while (!wait.notified && !cancelled) {
      const Duration left = piece_until(deadline);
      if (left <= Duration::zero()) break;
      wait.timer.expires_after(left);
      auto [ec] = co_await wait.timer.async_wait(kAsTuple);
      cancelled = ec == asio::error::operation_aborted;
    }
    co_return wait.notified;
  }

 private:
  // Lives in a coroutine's frame, which may be destroyed in the middle of the wait, before or after the signal: either
  // finds the list and leaves it.
  struct Wait {
    using List = std::vector<Wait*>;
    Wait(const asio::any_io_executor& executor, std::shared_ptr<List> waits) : timer(executor), list(std::move(waits)) {
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
    asio::steady_timer timer(executor_);
    for (Duration left = piece_until(deadline); left > Duration::zero(); left = piece_until(deadline)) {
      timer.expires_after(left);
      auto [ec] = co_await timer.async_wait(kAsTuple);
      if (ec) throw boost::system::system_error(ec);
    }
  }

  std::unique_ptr<Signal> make_signal() override { return std::make_unique<RealSignal>(executor_); }

 private:
  asio::any_io_executor executor_;
};

}  // namespace

std::unique_ptr<Clock> make_real_clock(asio::any_io_executor executor) {
  return std::make_unique<RealClock>(std::move(executor));
}

}  // namespace k8s
