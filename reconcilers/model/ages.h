// How planners read for how long a condition has been true. Reading names the timer as running (timer.h): the runtime
// keeps it, and the plan requests another look when the first timer will have run long enough.
#pragma once

#include <optional>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class Ages {
 public:
  // Both outlive this; timers and the time of the next look are written into `plan`.
  Ages(const Snapshot& snapshot, Plan& plan) : snapshot_(&snapshot), plan_(&plan) {}

  // Names the timer as running now and returns for how long it has run (zero when it is new). `stored`: a time stamp
  // from the cluster; the timer has been running at least since then. It counts only in the first look of an operator,
  // which has not observed the condition itself; after that the clock counts. A time stamp in the future counts as now.
  Duration age(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt);
  // True once it has run for `wanted`; otherwise requests another look at the moment when it will have.
  bool held_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored = std::nullopt);
  // Since when it has run; now if it is new.
  [[nodiscard]] WallTime since(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt) const;
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
