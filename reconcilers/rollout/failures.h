// Failures of a revision: nodes that did not verify on it, and the recorded failures.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

class RolloutView;

// Nodes of a rollout that failed during a change to `target`; failures on other targets are excluded.
[[nodiscard]] std::set<std::string> failed_on(const Index& index, const ProfileRollout& profile_rollout,
                                              std::string_view target);
// How many of these nodes count against the revision: they served when their change began, or lost their GPUs to the
// revision, which their pods had read before. A node that was broken before does not count (S12).
[[nodiscard]] std::int64_t count_failures(const Index& index, const std::set<std::string>& failed);
// The same for the nodes that failed during a change to `target`.
[[nodiscard]] std::int64_t failures_of(const Index& index, const ProfileRollout& profile_rollout,
                                       std::string_view target);
// The revision was never verified, and no more nodes show it than failed on it: it might be at fault, even if none of
// these failures counts.
[[nodiscard]] bool is_doubtful(const RolloutView& rollout);
// Why the rollout starts no further node: nodes that failed now, or a recorded failure. Empty: no such reason.
[[nodiscard]] std::string failures_that_stop(const RolloutView& rollout);
// Names the nodes that failed on the target, and the command that tries them again.
[[nodiscard]] std::string failed_nodes_text(const RolloutView& rollout);
// The recorded failure of that revision, or null. Where the operator replaces pods for a new template (OnDelete), that
// template is a new attempt: the image might have been at fault.
[[nodiscard]] const FleetRecord::Failure* remembered_failure(const Index& index, const RolloutKey& key,
                                                             const SharingPolicy& policy, std::string_view target);
// The last failure after which the policy's own inline profile, in its present content, was rolled back; null if it was
// not rolled back. `config_map`: only for that plugin ConfigMap; empty: for any.
[[nodiscard]] const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy,
                                                     std::string_view config_map = {});
// The key is the policy's own inline profile.
[[nodiscard]] bool owns_key(const SharingPolicy& policy, const RolloutKey& key);

}  // namespace gso
