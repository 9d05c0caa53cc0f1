// The three-set queue, the delayed keys, and the rate limiter.
#include "controller/runtime/workqueue.h"

#include <algorithm>
#include <utility>

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

Workqueue::Workqueue(k8s::Clock* clock, RateLimiter limiter, WorkqueueHooks hooks)
    : clock_(clock),
      limiter_(std::move(limiter)),
      hooks_(std::move(hooks)),
      changed_(clock->make_signal()),
      drained_(clock->make_signal()) {}

void Workqueue::add(const std::string& key) {
  if (shutting_down_ || !dirty_.insert(key).second) return;
  hooks_.added();
  added_at_[key] = clock_->monotonic();
  if (processing_.contains(key)) return;
  push(key);
}

void Workqueue::push(const std::string& key) {
  queue_.push_back(key);
  hooks_.depth(queue_.size());
  changed_->notify();
}

void Workqueue::add_after(const std::string& key, Duration delay) {
  if (shutting_down_) return;
  hooks_.retried();
  if (delay <= Duration::zero()) return add(key);
  const Due due{clock_->monotonic() + delay, sequence_++};
  auto it = waiting_for_.find(key);
  if (it != waiting_for_.end()) {
    if (it->second.at <= due.at) return;
    waiting_.erase(it->second);
    it->second = due;
  } else {
    waiting_for_.emplace(key, due);
  }
  waiting_.emplace(due, key);
  changed_->notify();
}

void Workqueue::add_rate_limited(const std::string& key) {
  add_after(key, limiter_.when(key, clock_->monotonic()));
}

void Workqueue::move_due() {
  const MonoTime now = clock_->monotonic();
  while (!waiting_.empty() && waiting_.begin()->first.at <= now) {
    const std::string key = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    waiting_for_.erase(key);
    add(key);
  }
}

std::optional<std::string> Workqueue::try_get() {
  if (!shutting_down_) move_due();
  if (queue_.empty()) return std::nullopt;
  std::string key = std::move(queue_.front());
  queue_.pop_front();
  const MonoTime now = clock_->monotonic();
  hooks_.depth(queue_.size());
  if (auto since = added_at_.extract(key)) hooks_.taken(now - since.mapped());
  processing_.emplace(key, now);
  dirty_.erase(key);
  return key;
}

boost::asio::awaitable<std::optional<std::string>> Workqueue::get() {
  for (;;) {
    std::optional<std::string> key = try_get();
    if (key.has_value() || shutting_down_) co_return key;
    co_await changed_->wait_until(next_due());
  }
}

void Workqueue::done(const std::string& key) {
  auto it = processing_.find(key);
  if (it != processing_.end()) {
    hooks_.finished(clock_->monotonic() - it->second);
    processing_.erase(it);
    if (dirty_.contains(key)) push(key);
  }
  if (processing_.empty() && queue_.empty()) drained_->notify();
}

void Workqueue::shut_down() {
  shutting_down_ = true;
  waiting_.clear();
  waiting_for_.clear();
  changed_->notify();
}

boost::asio::awaitable<void> Workqueue::drained() {
  while (!processing_.empty() || !queue_.empty()) co_await drained_->wait();
}

Duration Workqueue::longest_running() const {
  Duration longest{0};
  for (const auto& [key, since] : processing_) longest = std::max(longest, clock_->monotonic() - since);
  return longest;
}

Duration Workqueue::unfinished_work() const {
  Duration sum{0};
  for (const auto& [key, since] : processing_) sum += clock_->monotonic() - since;
  return sum;
}

MonoTime Workqueue::next_due() const {
  return waiting_.empty() ? MonoTime::never() : waiting_.begin()->first.at;
}

}  // namespace gso
