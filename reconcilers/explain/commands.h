// What to type next: for a node in its state, for a stop, for a wait for pods, and for the Helm release of the
// operator.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/command.h"
#include "reconcilers/reasons/reason.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

struct Cure {
  // Ends a trouble, or shows more. Can be empty.
  Command command = {};
  // Where the cure is a decision: what can be done, and who decides.
  std::vector<std::string> options = {};
};

// --- The one command to continue with, for a node in its state.

// Checks of the key that a plugin loads where no label names one (checks/chain.cc).
inline constexpr std::string_view kDefaultKeyNotFound = "DefaultKeyNotFound";
inline constexpr std::string_view kDefaultMissing = "DefaultMissing";
inline constexpr std::string_view kDefaultInvalid = "DefaultInvalid";

// "run `COMMAND`": a command that sets a SharingPolicy or SharingRollout, which a cluster without the CRDs does not
// have.
[[nodiscard]] std::string to_run(const World& world, const Command& command);

// A command that changes an object when it is typed.
[[nodiscard]] Command changing(std::string line, std::string comment = {});
// How kubectl calls the kind: "deployment".
[[nodiscard]] std::string kubectl_name(std::string_view kind);
[[nodiscard]] Command describe_node_command(std::string_view node);
[[nodiscard]] Command describe_pod_command(const ObjectKey& pod);
[[nodiscard]] Command explain_command(std::string_view node);
[[nodiscard]] Command edit_config_map_command(const ObjectKey& config_map, std::string comment = {});
[[nodiscard]] Command edit_policy_command(std::string_view policy, std::string comment = {});
[[nodiscard]] Command install_crds_command();
// Shows the rollouts; command_here() has it where no rollout can be shown.
[[nodiscard]] Command rollout_status_command();
// The command as it works in this cluster: without SharingRollouts `rollout status` has nothing to show, and `status`
// shows the nodes of a rollout.
[[nodiscard]] Command command_here(const World& world, Command command);

// What would keep the node's pods from serving its profile if they were restarted: a reason of labels.h, "Why a node is
// Blocked", or without a code none of them.
// Of a node that runs its target as far as that is known: nothing blocks it, because it needs no change. nullopt: none.
[[nodiscard]] std::optional<Reason> obstacle_of(const NodeAssessment& assessment);

// For the node, as explain_node() shows it (`state`); `assessment` is null if no plugin serves the node. Empty: no
// action is needed. The command changes the node's profile where it is chosen: in the policy, by another owner's label,
// or in the ConfigMap.
[[nodiscard]] Command next_step(const ReadingPass& pass, const Node& node, const NodeAssessment* assessment,
                                std::string_view state);

// Shows why the GPUs of a node of nos are not cut: of the first one for which `concerns` is true and that has a finding
// of node.partitioning among these. Empty: none has.
[[nodiscard]] Command slices_command(const World& world, const FleetIndex::Impl& index,
                                     const std::vector<Finding>& findings,
                                     const std::function<bool(const Node&)>& concerns);

// Shows why a node that a rollout names for that reason (without a code: it is in a change) does not come back; empty:
// it is in no trouble. Not the retry of a failed node, which is for all of them together, nor the end of a hold.
[[nodiscard]] Command trouble_command(const ReadingPass& pass, const Node& node, const NodeAssessment& assessment,
                                      const Reason& why);
// For a node that failed although its pods serve: the log of the pod that writes what differs, GPU Feature Discovery
// for labels and else the plugin. Empty: nothing differs now, or there is no such pod.
[[nodiscard]] Command writer_log_command(const FleetIndex::Impl& index, const Node& node,
                                         const NodeAssessment& assessment);
// The command of a reason for which a node is Blocked, completed for the node. Empty: it has none.
[[nodiscard]] Command command_of_reason(const ReadingPass& pass, const Node& node, const NodeAssessment& assessment,
                                        std::string_view reason);

// remedy_of() for a finding about that object (a Node, SharingRollout or SharingPolicy), without what its policy says
// already.
[[nodiscard]] std::string_view remedy_here(const World& world, const FleetIndex::Impl& index, std::string_view reason,
                                           const ObjectRef& object);

// The text with these nodes where its commands say NODE, as texts that many nodes share do. kubectl takes several names
// in one command: of many nodes it has the first kMostNames, and the text ends with how many more need the same.
[[nodiscard]] std::string name_nodes_in(std::string text, const std::vector<std::string>& nodes);

// Lifts the hold of the node (gpusharing.dev/hold), for whoever set it. Empty: it has none.
[[nodiscard]] Command lift_hold_command(const Node& node);
// "gpu-1 by annotation gpusharing.dev/hold=kernel-debug: whoever set it can lift it with kubectl annotate node …": who
// set it meant it, so the command is for nobody else. Empty: it has none.
[[nodiscard]] std::string hold_text(const Node& node);
// Why the hold of the node stays, and the command of whoever set it: it is no step for anyone else, unless the node is
// mid-change, where its GPUs cannot be used before the hold ends.
[[nodiscard]] std::string hold_remedy(const Node& node, const NodeAssessment& assessment);

// Sets the default key of the node's plugin installation to the key that it had before, as far as nodes show it. If the
// node has loaded the present one, the ConfigMap has lost it: its correct_key_command().
[[nodiscard]] Command default_key_command(const World& world, const FleetIndex::Impl& index,
                                          const NodeAssessment& assessment);
// Takes back an announced default key that would leave the node without GPUs; empty: something else would, or nothing.
[[nodiscard]] Command announced_default_command(const FleetIndex::Impl& index, const NodeAssessment& assessment);
// Corrects an invalid or missing text in the ConfigMap, or creates a ConfigMap that does not exist. It names `rollout
// undo` only where that has a text to restore.
[[nodiscard]] Command correct_key_command(const World& world, const FleetIndex::Impl& index,
                                          const ObjectKey& config_map);

// --- What ends the stop of a rollout.

// The command that lifts the first pause of the rollout, for whoever decides that: of its policy, of its ConfigMap, or
// its own. Empty: it is not paused by a switch.
[[nodiscard]] Command resume_command(const RolloutView& rollout);
// Resumes what `rollout resume` calls so: "policy/NAME", or a SharingRollout; empty: the only ConfigMap.
[[nodiscard]] Command resume_command(std::string_view what = {}, std::string comment = {});
// Ends the pause of the ConfigMap, also without the CRDs.
[[nodiscard]] Command resume_command(const World& world, const ObjectKey& config_map);
[[nodiscard]] Command approve_command(std::string_view policy);

// The nodes that the policy governs now; of a policy without any: none of each kind.
[[nodiscard]] const Tally& nodes_of_policy(const FleetIndex::Impl& index, const std::string& policy);
// The policy has no object any more, and governs its nodes by its last spec (FleetIndex::Impl::held_policies).
[[nodiscard]] bool policy_is_gone(const World& world, const FleetIndex::Impl& index, std::string_view policy);

// The command that changes what the spec of the policy, or the setting of the operator, forbids now (`reason`: Observe,
// OutsideWindow), for whoever decides that. Empty: another reason.
[[nodiscard]] Command spec_command(const World& world, std::string_view reason, const SharingPolicy& policy,
                                   const PlannerSettings& settings);

// The gate that a status names by this reason; Gate::open: none.
[[nodiscard]] Gate named_gate(std::string_view reason);
// A gate that starts no node until a person or a calendar ends that, and that a retry does not end.
[[nodiscard]] bool outlasts_retry(Gate gate);

// The command that ends the stop of a SharingPolicy that does not exist any more, whom its nodes follow then, and what
// else ends it. Without the CRDs: the one that installs them.
[[nodiscard]] Command gone_policy_command(const World& world, const FleetIndex::Impl& index,
                                          const PlannerSettings& settings, std::string_view policy);

// Tries the rollouts of the policy again: failed nodes, and what was aborted or undone. `resume`: what must follow,
// because a pause stops it as well; empty: none does.
[[nodiscard]] Command start_command(std::string_view policy, const Command& resume = {});

// `rollout start --adopt` of the policy: also changes nodes that the operator has left alone since its installation.
[[nodiscard]] Command adopt_command(std::string_view policy);

// The stop that only a retry, or another profile, ends: failures, an undo, or an abort, whatever else holds the
// rollout. Open: none of them.
[[nodiscard]] GateState ended_by(const RolloutView& rollout);

// The command that ends what a person has to end: mode Observe, a closed window, a pause, a missing approval, an abort
// or an undo. Empty: nothing of that kind stops the rollout.
[[nodiscard]] Command stop_command(const RolloutView& rollout);

// --- Commands about the Helm release of the operator's chart: what its objects do not show is said in words.

// The chart's ConfigMap has it, beside Helm's own annotations.
inline constexpr std::string_view kChartConfigAnnotation = "gpusharing.dev/crds";

// Shows which chart the release has, because no object knows where that chart came from. The comment behind it says
// what an upgrade must set (`values`: "--set modes.rollouts=Enforce").
[[nodiscard]] Command upgrade_chart_command(const World& world, const PlannerSettings& settings,
                                            std::string_view values);
// Takes the release back to its former values. Where the release is unknown: shows its name.
[[nodiscard]] Command roll_back_chart_command(const World& world, const PlannerSettings& settings);

// --- A node whose change waits for pods: nothing is wrong, and what ends the wait is a decision. `explain` and
// `rollout status` both say what is decided here.

// Something that ends the wait, and who decides it.
struct PodDecision {
  std::string decision;     // "the administrator of policy default sets spec.rollout.workloads: Evict"
  Command command = {};     // Carries it out; empty: no command of this cluster does.
  std::string effect = {};  // May be empty.
  // For a list of what can be decided.
  [[nodiscard]] std::string text() const;
  // The command, with the rest as its comment; empty if there is no command.
  [[nodiscard]] Command next() const;
};

// What ends a node's wait for pods.
struct PodAdvice {
  Command command;                     // Shows the pods, or the budget that keeps them, or lets the operator evict.
  std::string owners;                  // What the owners of the pods, or of what keeps them, can do.
  std::vector<PodDecision> decisions;  // Of administrators, the mildest first.
  // The command, with what the owners can do as its comment.
  [[nodiscard]] Command next() const;
};

// A node waits for pods, or has been deferred because of them, where a status gives this reason.
[[nodiscard]] bool is_about_pods(std::string_view reason);
// `blocked`: such a reason, and what the operator, or a listing of the pods, says of them. Who can do what follows from
// the policy's `rollout`, from why the pods stay and, where the pass has listed the pods, from what each setting would
// bring.
[[nodiscard]] PodAdvice advice_on_pods(const ReadingPass& pass, const Node& node, const NodeAssessment& assessment,
                                       const Reason& blocked);

// Of a node that waits for pods: the command of the advice, and the alternatives as `explain` lists them, one a line.
// Empty: the node does not wait for pods, or its rollout is stopped as well.
[[nodiscard]] Cure pod_choices(ReadingPass& pass, const Node& node, const NodeAssessment& assessment);

}  // namespace gso
