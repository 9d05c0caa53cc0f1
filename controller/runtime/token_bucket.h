// At most so many of something in a time, and longer and longer pauses after failures.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "k8sclient/clock.h"

namespace gso {

// --- TokenBucket: so many at once, then so many a second. Pure: it gets the time with each call.

class TokenBucket {
 public:
  // Begins full. `per_second` and `burst` are greater than 0.
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  // Takes one if there is one.
  [[nodiscard]] bool try_take(k8s::MonoTime now) {
    refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  // Takes so many, on credit if there are too few: returns how long to wait for them. Who comes later waits longer.
  k8s::Duration take(k8s::MonoTime now, double count = 1) {
    refill(now);
    tokens_ -= count;
    if (tokens_ >= 0) return k8s::Duration::zero();
    return std::chrono::duration_cast<k8s::Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
  }

  // Nothing is owed.
  [[nodiscard]] bool has_credit(k8s::MonoTime now) const { return tokens_at(now) >= 0; }

  // It is as if nothing had been taken ever.
  [[nodiscard]] bool is_full(k8s::MonoTime now) const { return tokens_at(now) >= burst_; }

 private:
  [[nodiscard]] double tokens_at(k8s::MonoTime now) const {
    const double passed = std::chrono::duration<double>(now - refilled_at_).count();
    return std::min(burst_, tokens_ + passed * per_second_);
  }
  void refill(k8s::MonoTime now) {
    tokens_ = tokens_at(now);
    refilled_at_ = now;
  }

  double per_second_;
  double burst_;
  double tokens_;
  k8s::MonoTime refilled_at_;
};

// --- RateLimiter: how long something that fails waits before it is tried again.

using k8s::Duration;
using k8s::MonoTime;

// How long a failing key waits: 5 ms, doubling to 1000 s, but together no faster than a bucket of 100 keys that refills
// with 10 per second. Source: client-go DefaultTypedControllerRateLimiter.
class RateLimiter {
 public:
  struct Settings {
    Duration base = std::chrono::milliseconds(5);
    Duration longest = std::chrono::seconds(1000);
    double refill_per_second = 10;
    double burst = 100;
  };
  RateLimiter() = default;
  explicit RateLimiter(Settings settings) : settings_(settings), bucket_(settings.refill_per_second, settings.burst) {}

  // The wait for this failure of `key`; counts it.
  [[nodiscard]] Duration when(const std::string& key, MonoTime now);
  // The key succeeded (or gave up): the next failure starts at `base`.
  void forget(const std::string& key) { failures_.erase(key); }
  [[nodiscard]] int num_requeues(const std::string& key) const;
  // Keys whose failures are counted.
  [[nodiscard]] std::size_t size() const { return failures_.size(); }

 private:
  Duration exponential(const std::string& key);

  Settings settings_;
  std::unordered_map<std::string, int> failures_;
  TokenBucket bucket_{settings_.refill_per_second, settings_.burst};
};

}  // namespace gso
