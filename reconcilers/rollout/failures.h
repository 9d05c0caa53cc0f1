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

namespace gso {

class RolloutView;

// The present attempt at the rollout's target.
[[nodiscard]] RecordedAttempt attempt_at(const RolloutView& rollout);
// Nodes of a rollout that failed during a change to `target`; failures on other targets are excluded.
[[nodiscard]] std::set<std::string> failed_on(const Index& index, const ProfileRollout& profile_rollout,
                                              std::string_view target);
// How many of these nodes count against the revision: they served when their change began, or lost their GPUs to the
// revision, which their pods had read before. A node that was broken before does not count (S12).
[[nodiscard]] std::int64_t count_failures(const Index& index, const std::set<std::string>& failed);
// The machines whose failure counts against the rollout's target, with the names of their nodes: those that failed and
// are its nodes now, those that the record names, wherever they are by now, and canaries whose Node was deleted while
// they restarted or verified.
[[nodiscard]] std::map<MachineId, std::string> counted_failures(const RolloutView& rollout);
// The record's entry for the present attempt; null: there is none.
[[nodiscard]] const RecordedFailures* recorded_failures(const Index& index, const RolloutKey& key,
                                                        const SharingPolicy& policy, std::string_view target);
// The machine is that node, and shows the revision.
[[nodiscard]] bool shows_revision(const Pass& pass, const std::string& name, MachineId machine,
                                  std::string_view revision);
// The record's entries after this pass: with the nodes that have failed by now, and without machines that show the
// revision after all and attempts that have ended. `complete`: the rollouts whose nodes all show their revision.
[[nodiscard]] std::vector<RecordedFailures> failing_machines(const Pass& pass,
                                                             const std::vector<RecordedFailures>& known,
                                                             const std::set<RolloutKey>& complete);
// The failure of this node counts against the revision.
[[nodiscard]] bool is_counted(const NodeChange& change);
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
// template is a new attempt: the image might have been at fault. A failure under a policy that is deleted counts for
// the policy that governs the key's nodes now.
[[nodiscard]] const FleetRecord::Failure* remembered_failure(const Pass& pass, const RolloutKey& key,
                                                             const SharingPolicy& policy, std::string_view target);
// The recorded failures that end because a person asked for another attempt, and those of deleted policies for the same
// text. They end for good: a tool that applies the policy from files can remove the annotation that asked.
[[nodiscard]] std::vector<FleetRecord::Failure> retried_failures(const Pass& pass);
// The failure keeps a revision from being tried that a policy wants, or that nodes have to run.
[[nodiscard]] bool is_in_force(const Pass& pass, const FleetRecord::Failure& failure);
// The policy's object exists, or its last spec governs.
[[nodiscard]] bool is_known_policy(const Pass& pass, const std::string& policy);
// The last failure after which the policy's own inline profile, in its present content, was rolled back; null if it was
// not rolled back. `config_map`: only for that plugin ConfigMap; empty: for any.
[[nodiscard]] const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy,
                                                     std::string_view config_map = {});
// The key is the policy's own inline profile.
[[nodiscard]] bool owns_key(const SharingPolicy& policy, const RolloutKey& key);

// --- Records the failures of revisions, what a person has undone, and the end of both.

// `complete`: the rollouts whose nodes all show their revision.
void record_failures(Pass& pass, NextRecord& next, const std::set<RolloutKey>& complete);

}  // namespace gso
