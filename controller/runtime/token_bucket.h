// TokenBucket: so many at once, then so many a second. Pure: it gets the time with each call.
#pragma once

#include <algorithm>
#include <chrono>

#include "k8sclient/clock.h"

namespace gso {

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

}  // namespace gso
