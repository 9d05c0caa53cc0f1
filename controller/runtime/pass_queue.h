// PassQueue: when the next planning pass is due. A pass plans the whole fleet, so there is one thing to wait for, with
// the guarantees that client-go gives to a key of its workqueue (util/workqueue):
//
//   co_await queue.get()  ->  pass  ->  queue.forget() | queue.add_rate_limited()  ->  queue.done()
//
//  - One pass at a time. What is added while it runs makes another one due after done(), once.
//  - Adding many times before a pass begins makes one pass due.
// One thread only. Every wait goes through the Clock.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "controller/serving/metrics.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"

namespace gso {

using k8s::Duration;
using k8s::MonoTime;

// The queue's name in metrics, and that of its controller.
inline const std::string kFleet = "fleet";

class PassQueue {
 public:
  // `metrics` gets workqueue_*.
  explicit PassQueue(k8s::Clock* clock, std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>());

  // A pass is due now. No effect after shut_down().
  void add();
  // add() once `delay` has passed. A time that is set already is only replaced by an earlier one.
  void add_after(Duration delay);
  // A pass failed: add_after() once more, as client-go does it (DefaultTypedControllerRateLimiter): after 5 ms, twice
  // as long after each further failure up to 1000 s, and 10 a second at most after 100 at once.
  void add_rate_limited();
  // A pass succeeded: the next failure waits shortly again.
  void forget();
  [[nodiscard]] int num_requeues() const { return failures_; }

  // True: a pass begins, and done() must follow. False: shut down, and nothing was queued any more.
  boost::asio::awaitable<bool> get();
  // The same without waiting: false when no pass is due now, or one is running.
  [[nodiscard]] bool try_get();
  void done();

  // get() hands out what is queued already, then ends. What waits for its time is dropped.
  void shut_down();

  // A pass is due, and none is running.
  [[nodiscard]] bool queued() const { return added_at_ && !running_since_; }
  // When the next pass is due that waits for its time; never() without one.
  [[nodiscard]] MonoTime next_due() const { return due_.value_or(MonoTime::never()); }
  // How long the pass that is running has taken so far; zero when none is.
  [[nodiscard]] Duration running() const;

 private:
  void set_depth(int queued);
  void note_queued();
  void move_due();

  k8s::Clock* clock_;
  int failures_ = 0;                   // Of passes, in a row.
  k8s::TokenBucket retries_{10, 100};  // So many a second, and at once.
  std::shared_ptr<Metrics> metrics_;
  std::optional<MonoTime> added_at_;       // Since when a pass is due that has not begun.
  std::optional<MonoTime> running_since_;  // Of the pass that is running.
  std::optional<MonoTime> due_;
  bool shutting_down_ = false;
  std::unique_ptr<k8s::Signal> changed_;
};

}  // namespace gso
