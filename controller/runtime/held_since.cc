// Tracking of conditions over passes.
#include "controller/runtime/held_since.h"

#include <utility>

namespace gso {

void ConditionTracker::observe(const std::vector<ConditionName>& conditions, k8s::MonoTime now) {
  std::map<ConditionName, k8s::MonoTime> next;
  for (const ConditionName& condition : conditions) {
    auto it = since_.find(condition);
    next[condition] = it != since_.end() ? it->second : (first_ ? now - credit_ : now);
  }
  since_ = std::move(next);
  first_ = false;
}

std::map<std::string, k8s::WallTime> ConditionTracker::observed(k8s::WallTime now, k8s::MonoTime monotonic) const {
  std::map<std::string, k8s::WallTime> out;
  for (const auto& [condition, since] : since_) {
    out[condition] = now - std::chrono::duration_cast<std::chrono::milliseconds>(monotonic - since);
  }
  return out;
}

void ConditionTracker::reset() {
  since_.clear();
  first_ = false;
}

}  // namespace gso
