// What stops a rollout whatever became of the object that says so: the switches of SharingRollouts, which the record
// keeps; the specs of deleted policies; and profiles that were taken back. Also the SharingRollouts that a pass
// creates, with the stops that the record has for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

// The switches in effect for one revision of a rollout: those of its SharingRollout combined with the record.
struct Switches {
  bool paused = false;
  bool approved = false;
  bool aborted = false;
  bool undone = false;
};
// `rollout`: its object, or null. An abort and an undo apply if the object or the record has them. A pause in the
// record applies if the object is gone; an approval in the record applies only if the CRDs are not installed any more.
[[nodiscard]] Switches switches_of(const Pass& pass, const RolloutKey& key, const std::string& target,
                                   const SharingRollout* rollout);
// The recorded switches of a rollout whose object is gone: the new object is created with them.
[[nodiscard]] std::optional<RecordedSwitches> switches_to_restore(const Pass& pass, const RolloutKey& key,
                                                                  const std::string& target);
// The switches that the record must hold now: an entry ends when another valid revision of its key is the target, when
// a new attempt begins, or by `rollout start`.
[[nodiscard]] std::vector<RecordedSwitches> update_switches(const Pass& pass, const PolicyUpdate& policies);

// Installs the operator's CRDs, from its repository or an unpacked release.
inline constexpr std::string_view kInstallCrds = "kubectl apply --server-side -f crds/";
// The command that lifts the stops of all deleted policies.
[[nodiscard]] std::string forget_policies_command(const PlannerSettings& settings);

// A target that nodes can run: neither unknown nor invalid.
[[nodiscard]] bool is_valid(std::string_view target);
// Whether a switch of this rollout is still in effect: then its object is not history.
[[nodiscard]] bool holds_a_switch(const Pass& pass, const SharingRollout& rollout);
// Another valid revision, or template, has replaced this one, or its policy is deleted and forgotten. While the policy
// governs no node, its own key and the ConfigMap's text decide: nodes without their labels, a wrong selector or missing
// DaemonSets end no attempt and clear no switches, nor does an invalid text.
[[nodiscard]] bool is_left(const Pass& pass, const RolloutKey& key, std::string_view revision);

// Events for what was just deleted, and findings for as long as its stops are in effect.
void report_gone_policy(Pass& pass, const std::string& name);
void report_gone_crds(Pass& pass);
void find_held_policies(Pass& pass);

// The policy's object exists, or its last spec governs.
[[nodiscard]] bool is_known_policy(const Pass& pass, const std::string& policy);
// The last failure after which the policy's own inline profile, in its present content, was rolled back; null if it was
// not rolled back. `config_map`: only for that plugin ConfigMap; empty: for any.
[[nodiscard]] const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy,
                                                     std::string_view config_map = {});
// The key is the policy's own inline profile.
[[nodiscard]] bool owns_key(const SharingPolicy& policy, const RolloutKey& key);

// --- Which SharingRollouts a pass creates: one for each rollout that starts nodes or waits for an approval.

// Plans the SharingRollout of that revision, unless it exists, this pass has planned it already, or the CRDs are not
// served. A stop that the record keeps for it is set in the new object.
void ensure_object(Pass& pass, const RolloutView& rollout, const std::string& target);
// The same of a rollout of another kind. `profile`: the text that it rolls out; empty: none, or too long.
void ensure_object(Pass& pass, const RolloutKey& key, const std::string& target, std::string_view profile = {});

}  // namespace gso
