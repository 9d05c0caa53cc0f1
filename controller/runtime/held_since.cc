// Tracking of timers over passes.
#include "controller/runtime/held_since.h"

#include <algorithm>
#include <utility>

namespace gso {

// Thousands of timers run while a fleet changes: both sides are in order, so they are walked together, and what runs on
// keeps its memory.
void HeldSince::observe(const Plan& plan, k8s::WallTime wall, k8s::MonoTime now) {
  std::map<TimerKey, k8s::MonoTime> next;
  auto known = since_.begin();
  for (const TimerKey& timer : plan.timers) {
    while (known != since_.end() && known->first < timer) ++known;
    if (known != since_.end() && known->first == timer) {
      const auto running = known++;
      next.insert(next.end(), since_.extract(running));
      continue;
    }
    k8s::MonoTime start = first_look_ ? now - credit_ : now;
    const auto stored = plan.timer_starts.find(timer);
    if (first_look_ && stored != plan.timer_starts.end()) {
      const k8s::Duration age = std::max<k8s::Duration>(wall - stored->second, k8s::Duration::zero());
      start = std::min(start, now - age);
    }
    next.emplace_hint(next.end(), timer, start);
  }
  since_ = std::move(next);
  if (plan.timers_complete) first_look_ = false;
}

Timers HeldSince::timers(k8s::WallTime now, k8s::MonoTime monotonic) const {
  Timers out;
  for (const auto& [timer, since] : since_) {
    out.emplace_hint(out.end(), timer, now - std::chrono::duration_cast<std::chrono::milliseconds>(monotonic - since));
  }
  return out;
}

void HeldSince::reset() {
  since_.clear();
  credit_ = k8s::Duration::zero();
  first_look_ = true;
}

}  // namespace gso
