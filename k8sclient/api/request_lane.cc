#include "k8sclient/api/request_lane.h"

#include <fmt/format.h>

#include <algorithm>

#include "k8sclient/backoff.h"

namespace k8s {

namespace {

// One slow answer, of a webhook for one object, must not slow down the others: the median of so many decides.
constexpr std::size_t kAnswersOfAMedian = 16;
// The best median becomes worse by this part each time, so that a server that is slower for good is accepted.
constexpr double kForget = 1.02;

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
  const Backoff backoff{settings_.first_pause, settings_.longest_pause};
  paused_until_ = std::max(paused_until_, now + backoff.after(refused_rounds_++));
}

void RequestLane::grant_next() {
  if (line_.empty()) return;
  const MonoTime now = clock_->monotonic();
  while (!line_.empty() && open_ < limit_.limit() && now >= limit_.paused_until()) {
    Place* const next = line_.front();
    line_.pop_front();
    next->waits_ = false;
    next->granted_ = true;
    next->begun_ = now;
    next->full_ = ++open_ >= limit_.limit();
    next->signal_->notify();
  }
}

void RequestLane::leave(Place& place) {
  if (closed_) return;
  if (place.waits_) std::erase(line_, &place);
  if (place.granted_) --open_;
  grant_next();
  // The first in line, which may have begun to wait before this pause, looks for its end.
  if (!line_.empty() && clock_->monotonic() < limit_.paused_until()) line_.front()->signal_->notify();
}

Error RequestLane::not_sent(MonoTime now) const {
  const Duration pause = std::max<Duration>(limit_.paused_until() - now, std::chrono::seconds(1));
  Error error{
      Reason::too_many_requests, 0,
      fmt::format("not sent: the API server is overloaded; {} requests were open and {} waited", open_, line_.size())};
  error.retry_after = std::chrono::ceil<std::chrono::milliseconds>(pause);
  error.never_sent = true;
  return error;
}

boost::asio::awaitable<Result<void>> RequestLane::enter(std::shared_ptr<Place> place, MonoTime deadline) {
  if (line_.size() >= kMostWaiting) co_return std::unexpected(not_sent(clock_->monotonic()));
  place->signal_ = clock_->make_signal();
  place->waits_ = true;
  line_.push_back(place.get());
  grant_next();
  while (!place->granted_) {
    const MonoTime now = clock_->monotonic();
    if (now >= deadline) co_return std::unexpected(not_sent(now));
    // Nobody else looks when a pause ends.
    const MonoTime next = now < limit_.paused_until() ? std::min(deadline, limit_.paused_until()) : deadline;
    const bool notified = co_await place->signal_->wait_until(next);
    if (!notified && clock_->monotonic() < next)
      co_return fail(Reason::cancelled, "cancelled while it waited for its turn");
    grant_next();
  }
  co_return Result<void>{};
}

}  // namespace k8s
