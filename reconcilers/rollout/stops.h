// Stops that outlive their objects: rollout switches in the record, and deleted policies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/fleet/pass.h"

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
// The reason of the finding that the annotation gpusharing.dev/forget-policies is not a time.
inline constexpr std::string_view kForgetUnreadable = "ForgetPoliciesUnreadable";

}  // namespace gso
