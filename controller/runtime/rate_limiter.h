// RateLimiter: how long something that fails waits before it is tried again.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "controller/runtime/token_bucket.h"
#include "k8sclient/clock.h"

namespace gso {

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
