#include "controller/runtime/pass_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gso {
namespace {

const Metrics::Labels kName{{"name", kFleet}, {"controller", kFleet}};

}  // namespace

PassQueue::PassQueue(k8s::Clock* clock, std::shared_ptr<Metrics> metrics)
    : clock_(clock), metrics_(std::move(metrics)), changed_(clock->make_signal()) {}

void PassQueue::set_depth(int queued) {
  metrics_->set("workqueue_depth", {{"name", kFleet}, {"controller", kFleet}, {"priority", ""}}, queued);
}

void PassQueue::add() {
  if (shutting_down_ || added_at_) return;
  metrics_->add("workqueue_adds_total", kName);
  added_at_ = clock_->monotonic();
  if (!running_since_) note_queued();
}

void PassQueue::note_queued() {
  set_depth(1);
  changed_->notify();
}

void PassQueue::add_after(Duration delay) {
  if (shutting_down_) return;
  metrics_->add("workqueue_retries_total", kName);
  if (delay <= Duration::zero()) return add();
  const MonoTime at = clock_->monotonic() + delay;
  if (due_ && *due_ <= at) return;
  due_ = at;
  changed_->notify();
}

void PassQueue::add_rate_limited() {
  constexpr k8s::Backoff kBackoff{std::chrono::milliseconds(5), std::chrono::seconds(1000)};
  add_after(std::max(kBackoff.after(failures_++), retries_.take(clock_->monotonic())));
}

void PassQueue::forget() {
  failures_ = 0;
}

void PassQueue::move_due() {
  if (!due_ || *due_ > clock_->monotonic()) return;
  due_.reset();
  add();
}

bool PassQueue::try_get() {
  if (!shutting_down_) move_due();
  if (!queued()) return false;
  const MonoTime now = clock_->monotonic();
  set_depth(0);
  metrics_->observe("workqueue_queue_duration_seconds", kName, in_seconds(now - *added_at_));
  added_at_.reset();
  running_since_ = now;
  return true;
}

boost::asio::awaitable<bool> PassQueue::get() {
  for (;;) {
    const bool taken = try_get();
    if (taken || shutting_down_) co_return taken;
    co_await changed_->wait_until(next_due());
  }
}

void PassQueue::done() {
  if (!running_since_) return;
  metrics_->observe("workqueue_work_duration_seconds", kName, in_seconds(running()));
  running_since_.reset();
  if (added_at_) note_queued();
}

void PassQueue::shut_down() {
  shutting_down_ = true;
  due_.reset();
  changed_->notify();
}

Duration PassQueue::running() const {
  return running_since_ ? clock_->monotonic() - *running_since_ : Duration::zero();
}

}  // namespace gso
