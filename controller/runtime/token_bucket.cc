#include "controller/runtime/token_bucket.h"

#include <algorithm>

namespace gso {

Duration RateLimiter::exponential(const std::string& key) {
  const int failures = failures_[key]++;
  // 2^62 ns is far beyond any limit; more would overflow.
  constexpr int kMostDoublings = 40;
  Duration wait = settings_.base;
  for (int i = 0; i < std::min(failures, kMostDoublings) && wait < settings_.longest; ++i) wait *= 2;
  return std::min(wait, settings_.longest);
}

Duration RateLimiter::when(const std::string& key, MonoTime now) {
  return std::max(exponential(key), bucket_.take(now));
}

int RateLimiter::num_requeues(const std::string& key) const {
  auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

}  // namespace gso
