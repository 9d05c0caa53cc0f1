// How a SharingPolicy that is about to be edited differs from the present one: for `diff --file`.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct PolicyFieldChange {
  std::string field;  // "spec.rollout.maxUnavailable"
  std::string before;
  std::string after;
};

// As the operator reads both: a field that is left out has its default. The retry annotation counts, because it starts
// nodes.
[[nodiscard]] std::vector<PolicyFieldChange> policy_field_changes(const SharingPolicy& before,
                                                                  const SharingPolicy& after);
// The stops that the policy has only afterwards: "mode Observe, paused"; empty: none. A stricter mode is one unless the
// operator's own limit has it in effect already.
[[nodiscard]] std::string added_stops(const SharingPolicy& before, const SharingPolicy& after,
                                      const PlannerSettings& settings);

}  // namespace gso
