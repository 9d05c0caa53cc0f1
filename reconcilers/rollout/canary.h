// Canaries: before a revision is rolled out to all nodes of a group (same product and profile), some of them must show
// it for a while. The record holds which nodes these are, since when they soak and whether they have passed. So neither
// a restart of the operator changes the canary, nor a node that got the revision in another way: a node that was
// repaired, joined or loaded the profile by itself proves nothing (S12).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/record_writes.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// The node with that name is still the recorded machine.
[[nodiscard]] bool is_same_machine(const Pass& pass, const std::string& name, MachineId machine);
// A node of the group waits for its change and serves, so that it could be a canary (a node that serves nothing proves
// nothing, S12). `CanaryNodes::free`: only nodes that neither a person nor another actor holds now.
enum class CanaryNodes : std::uint8_t { any, free };
[[nodiscard]] bool has_candidate(const RolloutView& rollout, const std::string& product, CanaryNodes which);
// The node is a canary of this rollout, according to the record.
[[nodiscard]] bool is_recorded_canary(const RolloutView& rollout, const std::string& node);
// This rollout made the canary of some group, and that canary has passed.
[[nodiscard]] bool has_passed_canary(const RolloutView& rollout);
// The nodes of the group that are canaries in a change to the target, while the canary has not passed. By name.
[[nodiscard]] std::vector<std::string> canaries_in_progress(const RolloutView& rollout, const std::string& product);
// The node serves behind somebody else's cordon, and starts after the canary of its group: it is the canary only where
// no uncordoned node could be it.
[[nodiscard]] bool is_behind_canary(const RolloutView& rollout, const NodeAssessment& assessment);
// Recorded canaries of this attempt whose Node is gone while they restarted or verified, each with the name that it
// had. Another machine of that name is not the canary.
[[nodiscard]] std::map<MachineId, std::string> vanished_canaries(const RolloutView& rollout);
// How many more nodes the canary lets start in the group; all of them once it has passed.
[[nodiscard]] std::int64_t left_in_canary(const RolloutView& rollout, const std::string& product);
// A canary that was verified and stopped showing its profile before it passed: its node, and what it shows. Empty: no
// such canary.
[[nodiscard]] std::string drifting_canary(const RolloutView& rollout);

// What a node waits for that must be restarted to show what it should have loaded by itself, on a product where nobody
// has shown that revision yet: one such node after the other, or the canary of its group. A node that has stopped
// showing a revision does not wait. `started`: nodes of the group that start in this pass. nullopt: it waits for
// nothing.
[[nodiscard]] std::optional<Reason> awaited_canary(const RolloutView& rollout, const NodeAssessment& assessment,
                                                   std::int64_t started);

// Names the timers of verified canaries (recorded_timers.h).
void run_soaking_timers(Pass& pass);

// The canaries that the record must hold now. A node that served is recorded in the pass that begins its change, and
// that write precedes the change: a canary that ends its change before the record names it would not soak. An entry
// ends when its revision is verified on its product, or is not the target any more. While the rollout has no node, or
// its canary no labels, the entry stays as it is.
[[nodiscard]] std::vector<RecordedCanary> update_canaries(Pass& pass);

// --- Failures of a revision: nodes that did not verify on it, and the recorded failures.

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
