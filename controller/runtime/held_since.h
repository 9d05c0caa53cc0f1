// Since when each timer that planners name has run. Measured with the clock since boot, handed out as wall times
// relative to now, so that a jump of the wall clock shortens no soak.
#pragma once

#include "k8sclient/clock.h"
#include "reconcilers/model/plan.h"

namespace gso {

class HeldSince {
 public:
  // Timers of the first pass count as having run for `credit` already.
  explicit HeldSince(k8s::Duration credit = k8s::Duration::zero()) : credit_(credit) {}

  // The timers that one pass named at this moment, in order and each once, as plan_all() returns them. A missing timer
  // has a gap: it starts again when a pass names it again. The first look is over with the first plan that could name
  // all of them (Plan::timers_complete): soaks and deadlines outlive a start during which the stores sync one after the
  // other. A stored time (Timer::stored_time) has no credit, and begins its timer whenever that is new.
  void observe(const Plan& plan, k8s::WallTime wall, k8s::MonoTime now);
  // Snapshot::timers at this moment: valid until the next call of either.
  [[nodiscard]] const Timers& timers(k8s::WallTime wall, k8s::MonoTime now) const;
  // Snapshot::now at this moment: the wall time as the clock since boot has counted it since the wall clock was last
  // set. It differs from `wall` by less than five milliseconds, and between two calls both clocks show the same time
  // passed.
  [[nodiscard]] k8s::WallTime at(k8s::WallTime wall, k8s::MonoTime now) const;
  // This replica did not lead for a while: every timer starts again, without credit except for stored times.
  void reset();
  // No complete plan has been observed since the start or the last reset().
  [[nodiscard]] bool first_look() const { return first_look_; }

 private:
  void follow_wall_clock(k8s::WallTime wall, k8s::MonoTime now) const;

  k8s::Duration credit_;
  bool first_look_ = true;
  // Starts, by the wall clock as it went until `wall_`, when the clock since boot showed `now_`.
  mutable Timers since_;
  mutable k8s::WallTime wall_{};
  mutable k8s::MonoTime now_{};
};

}  // namespace gso
