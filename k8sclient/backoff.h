// How long something that fails waits before it is tried again, and at most so many of something in a time.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <random>
#include <system_error>

#include "k8sclient/value/time.h"

namespace k8s {

// The waits of something that fails again and again: `first`, twice as long after each further failure, up to
// `longest`.
struct Backoff {
  Duration first;
  Duration longest;
  // `failures`: those before the one that is waited for now.
  [[nodiscard]] constexpr Duration after(int failures) const {
    Duration wait = first;
    for (int i = 0; i < failures && wait < longest; ++i) wait = wait > longest / 2 ? longest : wait * 2;
    return std::min(wait, longest);
  }
};

// Of the kernel, unlike that of any other process. Not of std::random_device, whose part of libstdc++ needs glibc 2.36.
[[nodiscard]] inline std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getentropy(&seed, sizeof(seed)) != 0) throw std::system_error(errno, std::generic_category(), "getentropy");
  return seed;
}

// Makes waits of a random length, so that those who began together do not come back together.
class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : random_(seed) {}
  // From `least` to `most` times as long.
  [[nodiscard]] Duration operator()(Duration wait, double least, double most) {
    std::uniform_real_distribution<double> factor(least, most);
    return std::chrono::duration_cast<Duration>(wait * factor(random_));
  }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
};

// So many at once, then so many a second. Pure: it gets the time with each call.
class TokenBucket {
 public:
  // Begins full. `per_second` and `burst` are greater than 0.
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  // Takes one if there is one.
  [[nodiscard]] bool try_take(MonoTime now) {
    refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  // Takes so many, on credit if there are too few: returns how long to wait for them. Who comes later waits longer.
  Duration take(MonoTime now, double count = 1) {
    refill(now);
    tokens_ -= count;
    if (tokens_ >= 0) return Duration::zero();
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
  }

  // Nothing is owed.
  [[nodiscard]] bool has_credit(MonoTime now) const { return tokens_at(now) >= 0; }

  // It is as if nothing had been taken ever.
  [[nodiscard]] bool is_full(MonoTime now) const { return tokens_at(now) >= burst_; }

 private:
  [[nodiscard]] double tokens_at(MonoTime now) const {
    const double passed = std::chrono::duration<double>(now - refilled_at_).count();
    return std::min(burst_, tokens_ + passed * per_second_);
  }
  void refill(MonoTime now) {
    tokens_ = tokens_at(now);
    refilled_at_ = now;
  }

  double per_second_;
  double burst_;
  double tokens_;
  MonoTime refilled_at_;
};

}  // namespace k8s
