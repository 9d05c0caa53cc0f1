// Tracking of timers over passes.
#include "controller/runtime/held_since.h"

#include <algorithm>
#include <chrono>

namespace gso {
namespace {

using std::chrono::milliseconds;

// Less is what reading two clocks one after the other, and a clock that is being adjusted, make between two passes.
constexpr milliseconds kJump{5};

}  // namespace

// Thousands of timers run while a fleet changes, and the next pass names nearly all of them again: each keeps its place
// and its time, unless the wall clock has been set since.
void HeldSince::follow_wall_clock(k8s::WallTime wall, k8s::MonoTime now) const {
  const auto jump = (wall - wall_) - std::chrono::duration_cast<milliseconds>(now - now_);
  if (std::chrono::abs(jump) < kJump) return;
  for (auto& [timer, since] : since_) since += jump;
  wall_ = wall;
  now_ = now;
}

void HeldSince::observe(const Plan& plan, k8s::WallTime wall, k8s::MonoTime now) {
  const k8s::WallTime steady = at(wall, now);
  const auto in_milliseconds = [](k8s::Duration d) { return std::chrono::duration_cast<milliseconds>(d); };
  auto running = since_.begin();
  for (const TimerKey& timer : plan.timers) {
    while (running != since_.end() && running->first < timer) running = since_.erase(running);
    if (running != since_.end() && running->first == timer) {
      ++running;
      continue;
    }
    const bool is_stored = is_of_stored_time(timer.timer);
    k8s::WallTime start = first_look_ && !is_stored ? steady - in_milliseconds(credit_) : steady;
    const auto stored = plan.timer_starts.find(timer);
    if ((first_look_ || is_stored) && stored != plan.timer_starts.end())
      start = std::min({start, stored->second, steady});
    since_.emplace_hint(running, timer, start);
  }
  since_.erase(running, since_.end());
  if (plan.timers_complete) first_look_ = false;
}

const Timers& HeldSince::timers(k8s::WallTime wall, k8s::MonoTime now) const {
  follow_wall_clock(wall, now);
  return since_;
}

k8s::WallTime HeldSince::at(k8s::WallTime wall, k8s::MonoTime now) const {
  follow_wall_clock(wall, now);
  return wall_ + std::chrono::floor<milliseconds>(now - now_);
}

void HeldSince::reset() {
  since_.clear();
  credit_ = k8s::Duration::zero();
  first_look_ = true;
}

}  // namespace gso
