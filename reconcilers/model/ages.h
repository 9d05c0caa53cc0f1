// How planners name the timers that run, and read for how long they have run (timer.h). The runtime keeps what a pass
// names. Two ways, so that no timer depends on who happens to ask:
// - Timers with several readers are named once, at the top of the pass (rollout/running_timers.h), with run(). Their
//   readers call since() and has_run_for(), which name nothing.
// - A timer that one chain of steps owns, such as the steps of one node, is named there in every pass in which its
//   condition is true: held_for() names it and reads it.
#pragma once

#include <optional>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class Ages {
 public:
  // Both outlive this; timers and the time of the next look are written into `plan`.
  Ages(const Snapshot& snapshot, Plan& plan) : snapshot_(&snapshot), plan_(&plan) {}

  // Names the timer as running now. `stored`: a time stamp from the cluster; the timer has been running at least since
  // then. It counts only in the first look of an operator, which has not observed the condition itself; after that the
  // clock counts. A time stamp in the future counts as now. For Timer::stored_time it counts whenever the timer is new.
  void run(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt);
  // Since when it has run; now if it is new, or does not run. `stored`: as it was named with.
  [[nodiscard]] WallTime since(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt) const;
  // True once it has run for `wanted`; otherwise requests another look at the moment when it will have.
  bool has_run_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored = std::nullopt);
  // Both.
  bool held_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored = std::nullopt);
  // The time of a stored_time() timer by the wall clock as it goes now, never in the future: names the timer, which
  // this process measures from its first look at the time on, whatever the wall clock is set to meanwhile.
  WallTime stored(const TimerKey& timer, WallTime time);
  [[nodiscard]] WallTime now() const { return snapshot_->now; }
  // For a fact that counts for `lifetime` after it was seen, and that has just been seen again: the timer continues,
  // and another look is requested when it will have run out. A timer that has run out is left out of this plan, so that
  // it has a gap and starts again.
  void renew(const TimerKey& timer, Duration lifetime);
  // Requests another look after `wait`; a wait that has already passed counts as zero.
  void look_again_in(Duration wait);
  // Keeps a timer of an earlier pass running for an object that this pass does not look at.
  void keep(const TimerKey& timer);

 private:
  const Snapshot* snapshot_;
  Plan* plan_;
};

}  // namespace gso
