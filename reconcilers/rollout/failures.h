// Failures of a revision: nodes that did not verify on it, and the memory of them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

class RolloutView;

// Nodes of a unit that failed on the way to `target`; those that failed on the way elsewhere are left out.
[[nodiscard]] std::set<std::string> failed_on(const Index& index, const Unit& unit, std::string_view target);
// How many nodes of these served when their change began: only they judge the revision (S12).
[[nodiscard]] std::int64_t count_served(const Index& index, const std::set<std::string>& failed);
// The same of those that failed on the way to `target`.
[[nodiscard]] std::int64_t failures_of(const Index& index, const Unit& unit, std::string_view target);
// Why the rollout's revision is not taken further: failed nodes now, or the memory of them. Empty: it may be.
[[nodiscard]] std::string failures_that_stop(RolloutView& rollout);
// The remembered failure of that revision, or null.
[[nodiscard]] const FleetRecord::Failure* remembered_failure(const Index& index, const RolloutKey& key,
                                                             const SharingPolicy& policy, std::string_view target);
// The last failure for which the policy's own inline profile, as it asks for it now, was taken back; null where it was
// not. `set`: of that operand set; empty: of any.
[[nodiscard]] const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy,
                                                     std::string_view set = {});
// The key is the policy's own inline profile.
[[nodiscard]] bool owns_key(const SharingPolicy& policy, const RolloutKey& key);

}  // namespace gso
