// The one command to continue with, for a node in its state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Checks of the key that a plugin loads where no label names one (checks/chain.cc).
inline constexpr std::string_view kDefaultKeyNotFound = "DefaultKeyNotFound";
inline constexpr std::string_view kDefaultMissing = "DefaultMissing";
inline constexpr std::string_view kDefaultInvalid = "DefaultInvalid";

inline constexpr std::string_view kRolloutStatusCommand = "gpu-sharing-operator rollout status";

// The command as it works in this cluster: without SharingRollouts `rollout status` has nothing to show, and `status`
// shows the nodes of a rollout.
[[nodiscard]] std::string command_here(const World& world, std::string command);

// The operator carries the command out (`rollout start`, `rollout approve`), or it shows what the operator does.
[[nodiscard]] bool needs_operator(std::string_view command);

// What would keep the node's pods from serving its profile if they were restarted.
struct ServingObstacle {
  std::string_view reason;  // Of labels.h, "Why a node is Blocked"; empty: none of them.
  std::string message;
};
// Of a node that runs its target as far as that is known: nothing blocks it, because it needs no change. nullopt: none.
[[nodiscard]] std::optional<ServingObstacle> obstacle_of(const NodeAssessment& assessment);

// For the node, as explain_node() shows it (`state`); `assessment` is null if no plugin serves the node. Empty: no
// action is needed. The command changes the node's profile where it is chosen: in the policy, by another owner's label,
// or in the ConfigMap.
[[nodiscard]] std::string next_step(const World& world, const FleetIndex::Impl& index, const PlannerSettings& settings,
                                    const Node& node, const NodeAssessment* assessment, std::string_view state);

// Shows why a node in a change does not come back: its kubelet, or a container that ends again and again. Empty:
// neither.
[[nodiscard]] std::string trouble_command(const FleetIndex::Impl& index, const Node& node,
                                          const NodeAssessment& assessment);
// For a node that failed: how its container ended, or else the first of its pods that is not Ready. Empty: all serve.
[[nodiscard]] std::string failed_pod_command(const FleetIndex::Impl& index, const Node& node,
                                             const NodeAssessment& assessment);
// For a node that failed although its pods serve: the log of the pod that writes what differs, GPU Feature Discovery
// for labels and else the plugin. Empty: nothing differs now, or there is no such pod.
[[nodiscard]] std::string writer_log_command(const FleetIndex::Impl& index, const Node& node,
                                             const NodeAssessment& assessment);
// The command of a reason for which a node is Blocked, completed for the node. Empty: it has none.
[[nodiscard]] std::string command_of_reason(const World& world, const FleetIndex::Impl& index,
                                            const PlannerSettings& settings, const Node& node,
                                            const NodeAssessment& assessment, std::string_view reason);

// remedy_of() for a finding about that object (a Node, SharingRollout or SharingPolicy), without what its policy says
// already.
[[nodiscard]] std::string_view remedy_here(const World& world, const FleetIndex::Impl& index, std::string_view reason,
                                           const ObjectRef& object);

// The text with these nodes where its commands say NODE, as texts that many nodes share do. kubectl takes several names
// in one command: of many nodes it has the first kMostNames, and the text ends with how many more need the same.
[[nodiscard]] std::string name_nodes_in(std::string text, const std::vector<std::string>& nodes);

// Lifts the hold of the node (gpusharing.dev/hold), for whoever set it. Empty: it has none.
[[nodiscard]] std::string lift_hold_command(const Node& node);
// "gpu-1 by annotation gpusharing.dev/hold=kernel-debug: whoever set it can lift it with kubectl annotate node …": who
// set it meant it, so the command is for nobody else. Empty: it has none.
[[nodiscard]] std::string hold_text(const Node& node);
// Why the hold of the node stays, and the command of whoever set it: it is no step for anyone else, unless the node is
// mid-change, where its GPUs cannot be used before the hold ends.
[[nodiscard]] std::string hold_remedy(const Node& node, const NodeAssessment& assessment);

// Its plugin finds no default key: the setting that holds it is wrong, and not the ConfigMap.
[[nodiscard]] bool misses_default(const NodeAssessment& assessment);
// Sets the default key of the node's plugin installation to the key that it had before, as far as nodes show it. If the
// node has loaded the present one, the ConfigMap has lost it: its correct_key_command().
[[nodiscard]] std::string default_key_command(const World& world, const FleetIndex::Impl& index,
                                              const NodeAssessment& assessment);
// Takes back an announced default key that would leave the node without GPUs; empty: something else would, or nothing.
[[nodiscard]] std::string announced_default_command(const FleetIndex::Impl& index, const NodeAssessment& assessment);
// Corrects an invalid or missing text in the ConfigMap, or creates a ConfigMap that does not exist. It names `rollout
// undo` only where that has a text to restore.
[[nodiscard]] std::string correct_key_command(const World& world, const FleetIndex::Impl& index,
                                              const ObjectKey& config_map);

}  // namespace gso
