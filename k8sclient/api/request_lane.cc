#include "k8sclient/api/request_lane.h"

#include <fmt/format.h>

#include <algorithm>

namespace k8s {

void RequestLane::Place::served() {
  lane_->limit_.served(begun_, lane_->clock_->monotonic(), full_);
}

void RequestLane::Place::refused(std::optional<Duration> retry_after) {
  lane_->limit_.refused(begun_, lane_->clock_->monotonic(), retry_after);
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

void RequestLane::close() {
  closed_ = true;
  line_.clear();
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
    if (!notified && clock_->monotonic() < next) {
      co_return fail(Reason::cancelled, "cancelled while it waited for its turn");
    }
    grant_next();
  }
  co_return Result<void>{};
}

}  // namespace k8s
