// Since when each condition that planners see has held. Measured with the clock since boot, handed out as wall times
// relative to now, so that a jump of the wall clock shortens no soak.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "k8sclient/clock.h"
#include "reconcilers/model/plan.h"

namespace gso {

class ConditionTracker {
 public:
  // Conditions of the first pass count as having held for `credit` already.
  explicit ConditionTracker(k8s::Duration credit = k8s::Duration::zero()) : credit_(credit) {}

  // What the planners of one pass saw. A condition that is missing has a gap: it starts afresh when it comes back.
  void observe(const std::vector<ConditionName>& conditions, k8s::MonoTime now);
  // Snapshot::observed at this moment.
  [[nodiscard]] std::map<std::string, k8s::WallTime> observed(k8s::WallTime now, k8s::MonoTime monotonic) const;
  // Nobody watched for a while (we did not lead): everything starts afresh, without credit.
  void reset();

 private:
  k8s::Duration credit_;
  bool first_ = true;
  std::map<ConditionName, k8s::MonoTime> since_;
};

}  // namespace gso
