// Tracking of timers over passes.
#include "controller/runtime/held_since.h"

#include <algorithm>
#include <utility>

namespace gso {

void HeldSince::observe(const Plan& plan, k8s::WallTime wall, k8s::MonoTime now) {
  std::map<TimerKey, k8s::MonoTime> next;
  for (const TimerKey& timer : plan.timers) {
    const auto known = since_.find(timer);
    if (known != since_.end()) {
      next[timer] = known->second;
      continue;
    }
    k8s::MonoTime start = first_look_ ? now - credit_ : now;
    const auto stored = plan.timer_starts.find(timer);
    if (first_look_ && stored != plan.timer_starts.end()) {
      const k8s::Duration age = std::max<k8s::Duration>(wall - stored->second, k8s::Duration::zero());
      start = std::min(start, now - age);
    }
    next[timer] = start;
  }
  since_ = std::move(next);
  if (plan.timers_complete) first_look_ = false;
}

Timers HeldSince::timers(k8s::WallTime now, k8s::MonoTime monotonic) const {
  Timers out;
  for (const auto& [timer, since] : since_) {
    out[timer] = now - std::chrono::duration_cast<std::chrono::milliseconds>(monotonic - since);
  }
  return out;
}

void HeldSince::reset() {
  since_.clear();
  credit_ = k8s::Duration::zero();
  first_look_ = true;
}

}  // namespace gso
