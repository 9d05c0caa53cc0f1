// Failures of a revision: nodes that did not verify on it, and the recorded failures.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/record_writes.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// Nodes of a rollout that failed during a change to `target`; failures on other targets are excluded.
[[nodiscard]] std::set<std::string> failed_on(const Index& index, const ProfileRollout& profile_rollout,
                                              std::string_view target);
// The machines whose failure counts against the rollout's target, with the names of their nodes: those that failed and
// are its nodes now, those that the record names, wherever they are by now, and canaries whose Node was deleted while
// they restarted or verified.
[[nodiscard]] std::map<MachineId, std::string> counted_failures(const RolloutView& rollout);
// The failure of this node counts against the revision: it served when its change began, or lost its GPUs to the
// revision, which its pods had read before. A node that was broken before does not count (S12).
[[nodiscard]] bool is_counted(const NodeChange& change);
// The revision was never verified, and no more nodes show it than failed on it: it might be at fault, even if none of
// these failures counts.
[[nodiscard]] bool is_doubtful(const RolloutView& rollout);
// Names the nodes that failed on the target, and the command that tries them again.
[[nodiscard]] std::string failed_nodes_text(const RolloutView& rollout);
// The recorded failure of that revision, or null. Where the operator replaces pods for a new template (OnDelete), that
// template is a new attempt: the image might have been at fault. A failure under a policy that is deleted counts for
// the policy that governs the key's nodes now.
[[nodiscard]] const FleetRecord::Failure* remembered_failure(const Pass& pass, const RolloutKey& key,
                                                             const SharingPolicy& policy, std::string_view target);
// --- Records the failures of revisions, what a person has undone, and the end of both.

// `complete`: the rollouts whose nodes all show their revision.
void record_failures(Pass& pass, NextRecord& next, const std::set<RolloutKey>& complete);

}  // namespace gso
