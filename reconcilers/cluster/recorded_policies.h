// Policies that govern although their objects are not there: a stop that a person has set does not end because its
// object, or the CRD of its kind, is deleted (S10).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "reconcilers/cluster/record.h"
#include "reconcilers/model/ages.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// By name, from the record's last specs:
//  - without the CRDs: all policies that are not in the view, so that modes, pauses, windows and budgets apply;
//  - while the view has no policy at all, as when the CRDs are being deleted: the API server deletes the objects first
//    and their kind some seconds later;
//  - one that was deleted less than kDeletionGrace ago, for the same reason: its objects do not go all at once;
//  - `default`, until it is created again with that spec;
//  - one that was deleted, or is being deleted, with a stop in its spec or on one of its rollouts (SharingPolicy::gone
//    is set), until its stop is lifted: by creating it again, by a policy created later (governing_policy()), or by the
// annotation gpusharing.dev/forget-policies. Pointers into the result stay valid as long as the result.
[[nodiscard]] std::map<std::string, SharingPolicy> policies_that_hold(const FleetRecord& record, const World& world,
                                                                      const std::optional<WallTime>& forget_until);

// How long a deleted policy without a stop governs on. One with deletionPolicy Revert does not: its nodes were reverted
// before its object went.
inline constexpr Duration kDeletionGrace = std::chrono::seconds(30);

// A stop of the policy itself, or of one of its rollouts.
[[nodiscard]] bool has_recorded_stop(const FleetRecord& record, const SharingPolicy& policy);

// The policies that the record must contain now: `record.policies` updated from the view. The present time counts as
// the deletion time of policies that are first found deleted in this pass. `governs`: the policy governs a node.
struct PolicyUpdate {
  std::map<std::string, RecordedPolicy> policies;
  std::optional<WallTime> crds_gone_since;
  std::vector<std::string> gone;       // First found deleted in this pass, with a stop.
  bool crds_gone = false;              // First found in this pass.
  std::optional<Duration> grace_left;  // Of the deleted policy whose grace ends first.
  bool forgotten = false;              // The stops of policies, and of rollouts whose objects are deleted, are dropped.
};
[[nodiscard]] PolicyUpdate update_policies(const FleetRecord& record, const World& world, Ages& ages,
                                           const std::optional<WallTime>& forget_until,
                                           const std::function<bool(const std::string& policy)>& governs);

}  // namespace gso
