// How planners ask for how long something has been so. Asking names the timer as running (timer.h): it is kept, and the
// plan asks to be looked at again when the first of them will have run long enough.
#pragma once

#include <optional>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class Ages {
 public:
  // Both outlive this; timers and the time to look again go into `plan`.
  Ages(const Snapshot& snapshot, Plan& plan) : snapshot_(&snapshot), plan_(&plan) {}

  // Names the timer as running now and returns for how long it has run (zero when it is new). `stored`: a time stamp of
  // the cluster's from which it has run at the latest. It counts only in the first look of an operator, which has seen
  // nothing of it: after that the clock counts. A stamp in the future counts as now.
  Duration age(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt);
  // The same: true once it has run for `wanted`; else another look is asked for when it will have.
  bool held_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored = std::nullopt);
  // Since when it has run; now when it is new.
  [[nodiscard]] WallTime since(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt) const;
  // Asks for another look after `wait`; a wait that has passed already counts as none.
  void look_again_in(Duration wait);
  // Lets a timer that ran before run on, of something that is not looked at now.
  void keep(const TimerKey& timer);

 private:
  const Snapshot* snapshot_;
  Plan* plan_;
};

}  // namespace gso
