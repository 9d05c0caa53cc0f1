#include "reconcilers/model/ages.h"

#include <algorithm>

namespace gso {

namespace {

// A stored time begins its timer; the timers of conditions begin when they are seen, but for the first look.
bool counts_stored(const Snapshot& snapshot, const TimerKey& timer) {
  return timer.timer == Timer::stored_time ? !snapshot.timers.contains(timer) : snapshot.first_look;
}

}  // namespace

WallTime Ages::since(const TimerKey& timer, std::optional<WallTime> stored) const {
  const auto it = snapshot_->timers.find(timer);
  WallTime out = it == snapshot_->timers.end() ? snapshot_->now : std::min(it->second, snapshot_->now);
  if (stored && counts_stored(*snapshot_, timer)) out = std::min(out, *stored);
  return out;
}

void Ages::run(const TimerKey& timer, std::optional<WallTime> stored) {
  plan_->timers.push_back(timer);
  if (stored && counts_stored(*snapshot_, timer)) plan_->timer_starts[timer] = since(timer, stored);
}

WallTime Ages::stored(const TimerKey& timer, WallTime time) {
  run(timer, time);
  return since(timer, time);
}

bool Ages::has_run_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored) {
  const Duration age_now = snapshot_->now - since(timer, stored);
  if (age_now >= wanted) return true;
  look_again_in(wanted - age_now);
  return false;
}

bool Ages::held_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored) {
  run(timer, stored);
  return has_run_for(timer, wanted, stored);
}

void Ages::renew(const TimerKey& timer, Duration lifetime) {
  const Duration age_now = snapshot_->now - since(timer);
  if (age_now >= lifetime) return look_again_in(lifetime);
  plan_->timers.push_back(timer);
  look_again_in(lifetime - age_now);
}

void Ages::look_again_in(Duration wait) {
  wait = std::max(wait, Duration::zero());
  plan_->requeue_after = plan_->requeue_after ? std::min(*plan_->requeue_after, wait) : wait;
}

void Ages::keep(const TimerKey& timer) {
  if (snapshot_->timers.contains(timer)) plan_->timers.push_back(timer);
}

}  // namespace gso
