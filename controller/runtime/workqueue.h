// Workqueue: keys that wait to be reconciled, with client-go's guarantees (util/workqueue).
//
//   co_await queue.get()  ->  reconcile(key)  ->  queue.forget(key) | queue.add_rate_limited(key)  ->  queue.done(key)
//
// Guarantees
//  - A key is handed to one worker at a time. Adding it meanwhile hands it out again after done(), once.
//  - Adding a key many times before it is taken hands it out once.
//  - Order is first in, first out; delayed keys enter when they are due.
// One thread only. Every wait goes through the Clock.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

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

// Observes a queue; metrics.h connects it to workqueue_*. All durations are of the Clock.
struct WorkqueueHooks {
  std::function<void(std::size_t depth)> depth = [](std::size_t) {};
  std::function<void()> added = [] {};
  std::function<void()> retried = [] {};
  std::function<void(Duration in_queue)> taken = [](Duration) {};
  std::function<void(Duration working)> finished = [](Duration) {};
};

class Workqueue {
 public:
  explicit Workqueue(k8s::Clock* clock, RateLimiter limiter = {}, WorkqueueHooks hooks = {});

  // Marks the key as needing work. No effect after shut_down.
  void add(const std::string& key);
  // add() once `delay` has passed. A key already waiting is moved only to an earlier time.
  void add_after(const std::string& key, Duration delay);
  // add_after() with the rate limiter's answer for one more failure of the key.
  void add_rate_limited(const std::string& key);
  void forget(const std::string& key) { limiter_.forget(key); }
  [[nodiscard]] int num_requeues(const std::string& key) const { return limiter_.num_requeues(key); }

  // The next key; nullopt once shut down and empty. Every key taken must be passed to done().
  boost::asio::awaitable<std::optional<std::string>> get();
  // The same without waiting: nullopt when no key is due now.
  [[nodiscard]] std::optional<std::string> try_get();
  void done(const std::string& key);

  // get() hands out what is queued already, then ends. Delayed keys are dropped.
  void shut_down();
  // Ends when no key is queued or being worked on. Call shut_down first, or it may never end.
  boost::asio::awaitable<void> drained();

  [[nodiscard]] std::size_t size() const { return queue_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] bool shutting_down() const { return shutting_down_; }
  // Longest time that a key has been with its worker so far; zero when none is.
  [[nodiscard]] Duration longest_running() const;
  // Sum of the times that keys have been with their workers so far.
  [[nodiscard]] Duration unfinished_work() const;
  // When the next delayed key is due; never() without one.
  [[nodiscard]] MonoTime next_due() const;

 private:
  void push(const std::string& key);
  void move_due();

  k8s::Clock* clock_;
  RateLimiter limiter_;
  WorkqueueHooks hooks_;
  // Invariant: every key in queue_ is in dirty_ and not in processing_.
  std::deque<std::string> queue_;
  std::unordered_set<std::string> dirty_;
  std::unordered_map<std::string, MonoTime> processing_;  // Since when.
  std::unordered_map<std::string, MonoTime> added_at_;    // Of keys in dirty_.
  // Delayed keys, by time; `sequence` keeps the order of equal times.
  struct Due {
    MonoTime at;
    std::uint64_t sequence;
    friend auto operator<=>(const Due&, const Due&) = default;
  };
  std::map<Due, std::string> waiting_;
  std::unordered_map<std::string, Due> waiting_for_;
  std::uint64_t sequence_ = 0;
  bool shutting_down_ = false;
  std::unique_ptr<k8s::Signal> changed_;
  std::unique_ptr<k8s::Signal> drained_;
};

}  // namespace gso
