// SharingPolicies: their words, their fields, their conditions, the switches that people set, and the rollouts that
// they make.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"
#include "reconcilers/model/rollout_spec.h"

namespace gso {

// --- The operator's own kinds, as planners read them: SharingPolicy (which nodes get which profile, and how it is
// rolled out) and SharingRollout (the rollout of one revision for one policy and profile key). Field meanings and
// defaults: crds/.

// A profile written in the policy itself.
struct InlineProfile {
  std::string strategy = "none";  // none | mps | time-slicing
  std::int64_t replicas = 0;
  bool rename_by_default = false;
  std::string resource = "nvidia.com/gpu";
  std::optional<bool> fail_requests_greater_than_one;
  friend bool operator==(const InlineProfile&, const InlineProfile&) = default;
};

enum class DeletionPolicy { retain, revert };

struct SharingPolicy {
  k8s::ObjectMeta meta;
  k8s::LabelSelector node_selector;  // Empty selects all.
  std::int64_t priority = 0;
  std::optional<std::string> config_map_key;
  std::optional<InlineProfile> inline_profile;
  PolicyMode mode = PolicyMode::enforce;
  bool takeover = false;
  DeletionPolicy deletion_policy = DeletionPolicy::retain;
  std::optional<std::int64_t> revision_history_limit;  // Absent: the operator's setting.
  RolloutSpec rollout;
  std::vector<std::string> finalizers;  // All of them, in order: a patch replaces the list.
  std::string spec_json;                // spec as the server holds it, canonical text; the record keeps this.
  // Set if the object is deleted, or is being deleted, and its stop still applies (cluster/policy_match.h).
  struct Gone {
    // Uids of the policies that existed when it was deleted. A policy created later lifts the stop on the nodes that it
    // selects with at least this priority.
    std::vector<std::string> beside;
    friend bool operator==(const Gone&, const Gone&) = default;
  };
  std::optional<Gone> gone;
  std::string status_json;  // status as the server holds it, canonical text: written only when it would change.
  friend bool operator==(const SharingPolicy&, const SharingPolicy&) = default;
};

inline constexpr PolicyWord<DeletionPolicy> kDeletionPolicyWords[] = {{"Retain", DeletionPolicy::retain},
                                                                      {"Revert", DeletionPolicy::revert}};

// The policy's gpusharing.dev/retry: another value than at a failure or a deferral allows a new attempt.
[[nodiscard]] std::string_view retry_of(const SharingPolicy& policy);
// A person has restricted what the policy is allowed to start: mode Observe or Approve, paused, or maintenance windows.
[[nodiscard]] bool has_stop(const SharingPolicy& policy);
// Which of these, for people: "mode Approve, paused"; empty: none.
[[nodiscard]] std::string stops_of(const SharingPolicy& policy);

struct SharingRollout {
  k8s::ObjectMeta meta;
  std::string policy;
  std::string config_map;  // "namespace/name" of the ConfigMap that the plugin mounts (or policy.h).
  std::string key;
  std::string to_revision;
  std::string profile;  // The text that it rolls out; empty if it was longer than 64 KiB.
  bool paused = false;
  bool approved = false;
  bool aborted = false;
  std::string
      phase;  // AwaitingApproval, Progressing, Paused, Superseded, Completed, Failed, RolledBack; empty at first.
  std::string status_json;
  friend bool operator==(const SharingRollout&, const SharingRollout&) = default;
};
// A person has undone it (gpusharing.dev/undo).
[[nodiscard]] bool is_undone(const SharingRollout& rollout);
// The last retry of its policy ends the abort or the undo that a person has set: the operator replaces the object.
[[nodiscard]] bool is_retried(const SharingRollout& rollout, const SharingPolicy& policy);
// Phases of a SharingRollout that has ended: Completed, Superseded, Failed, RolledBack.
[[nodiscard]] bool has_ended(std::string_view phase);

// --- What a rollout is of: a key of a ConfigMap, or the template of a DaemonSet of standalone MPS daemons. A rollout
// of the second kind has no key, and SharingRollout::config_map and RolloutKey::config_map hold "DaemonSet
// namespace/name".

inline constexpr std::string_view kDaemonSetSubject = "DaemonSet ";

// `daemonset`: "namespace/name".
[[nodiscard]] inline std::string daemonset_subject(std::string_view daemonset) {
  return std::string(kDaemonSetSubject) += daemonset;
}
// "namespace/name" of the DaemonSet; empty: the rollout is of a ConfigMap's key.
[[nodiscard]] inline std::string_view daemonset_of(std::string_view config_map) {
  if (!config_map.starts_with(kDaemonSetSubject)) return {};
  config_map.remove_prefix(kDaemonSetSubject.size());
  return config_map;
}
// "gpu-operator/mps-config (key any)", "the template of DaemonSet gpu-sharing-operator/mps": for people.
[[nodiscard]] inline std::string describe_subject(std::string_view config_map, std::string_view key) {
  if (!daemonset_of(config_map).empty()) return std::string("the template of ") += config_map;
  std::string out(config_map);
  out += " (key ";
  out += key.empty() ? "(none)" : key;
  return out += ")";
}

// --- Reads conditions in the statuses of SharingPolicies and SharingRollouts. status/ writes them.

// Of a SharingRollout; False once another revision has replaced it, and absent before.
inline constexpr std::string_view kCurrentCondition = "Current";
// Of a SharingRollout; True once spec.aborted has ended it, absent before.
inline constexpr std::string_view kAbortedCondition = "Aborted";

// A status from its text; an empty object if the text is none.
[[nodiscard]] nlohmann::json parse_status(std::string_view text);
// The condition of that type in a status; null if absent.
[[nodiscard]] nlohmann::json condition_in(const nlohmann::json& status, std::string_view type);
// The lastTransitionTime of the condition of that type in a status; empty if the status has no such condition.
[[nodiscard]] std::string since_when(const nlohmann::json& status, std::string_view type);
// The condition of that type in a status as "reason: message", or empty if it is absent or True.
[[nodiscard]] std::string false_condition(const nlohmann::json& status, std::string_view type);

// --- What the value of a switch means that a person sets as an annotation or label (gpusharing.dev/hold, …).

// "false", "0", "no" and "off", in any case: the author says no.
[[nodiscard]] bool says_no(std::string_view value);

// For switches that stop the operator. Off: absent, empty, or a value that says no. Everything else is on ("True",
// "yes", "1", a typing error): in doubt the operator holds.
[[nodiscard]] bool is_switched_on(std::optional<std::string_view> value);

// --- Another attempt at a revision: the annotation gpusharing.dev/retry of a SharingPolicy.

// A person asks for another attempt than the one for which `recorded` was stored, by another value of the annotation
// (`rollout start`). An absent annotation asks for nothing: tools that apply the policy from files remove annotations
// that the files lack.
[[nodiscard]] inline bool asks_again(std::string_view recorded, std::string_view present) {
  return !present.empty() && present != recorded;
}

}  // namespace gso
