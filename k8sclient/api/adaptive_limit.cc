#include "k8sclient/api/adaptive_limit.h"

#include <algorithm>

namespace k8s {
namespace {

// One slow answer, of a webhook for one object, must not slow down the others: the median of so many decides.
constexpr std::size_t kAnswersOfAMedian = 16;
// The best median becomes worse by this part each time, so that a server that is slower for good is accepted.
constexpr double kForget = 1.02;
// A pause doubles so often at most; more would overflow.
constexpr int kMostDoublings = 10;

}  // namespace

void AdaptiveLimit::shrink(MonoTime now) {
  limit_ = std::max(settings_.least, limit_ * settings_.decrease);
  shrunk_at_ = now;
}

bool AdaptiveLimit::is_slow(Duration took) {
  round_.push_back(took);
  if (round_.size() < kAnswersOfAMedian) return false;
  const auto middle = round_.begin() + static_cast<std::ptrdiff_t>(round_.size() / 2);
  std::ranges::nth_element(round_, middle);
  const Duration median = *middle;
  round_.clear();
  if (!best_median_) best_median_ = median;
  best_median_ = std::min(median, std::chrono::duration_cast<Duration>(*best_median_ * kForget));
  const auto factored = std::chrono::duration_cast<Duration>(*best_median_ * settings_.slow_factor);
  return median > std::max(factored, settings_.slow_least);
}

void AdaptiveLimit::served(MonoTime begun, MonoTime now, bool full) {
  refused_rounds_ = 0;
  if (is_slow(now - begun) && begun >= shrunk_at_) return shrink(now);
  if (full) limit_ = std::min(settings_.most, limit_ + 1 / limit_);
}

void AdaptiveLimit::refused(MonoTime begun, MonoTime now, std::optional<Duration> retry_after) {
  if (retry_after) paused_until_ = std::max(paused_until_, now + std::min(*retry_after, settings_.longest_retry_after));
  if (begun < shrunk_at_) return;
  shrink(now);
  const Duration pause = settings_.first_pause * (1 << std::min(refused_rounds_++, kMostDoublings));
  paused_until_ = std::max(paused_until_, now + std::min(pause, settings_.longest_pause));
}

}  // namespace k8s
