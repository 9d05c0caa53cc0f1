// The operator's own kinds, as planners read them: SharingPolicy (which nodes get which profile, and how it is rolled
// out) and SharingRollout (the rollout of one revision for one policy and profile key). Field meanings and defaults:
// crds/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"

namespace gso {

// A count, or a percentage that rounds up. At least 1 for a positive percentage of a non-empty set.
struct IntOrPercent {
  std::int64_t value = 0;
  bool percent = false;
  [[nodiscard]] std::int64_t of(std::int64_t total) const;
  // "3" or "10%" (0 to 100); nullopt for any other text.
  [[nodiscard]] static std::optional<IntOrPercent> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const IntOrPercent&, const IntOrPercent&) = default;
};

enum class PolicyMode { enforce, approve, observe };  // From the freest to the strictest.
enum class WorkloadMode { wait_for_idle, evict, interrupt };
enum class OnFailure { pause, rollback };
enum class Mechanism { node_by_node, daemonset_restart };
enum class DeletionPolicy { retain, revert };

// When nodes may start: opens at the times that `cron` names in `time_zone`, and stays open for `duration`.
struct MaintenanceWindow {
  std::string cron;  // Five fields; see reconcilers/model/maintenance_window.h.
  k8s::Duration duration{0};
  std::string time_zone = "UTC";
  friend bool operator==(const MaintenanceWindow&, const MaintenanceWindow&) = default;
};

// Defaults are those of the CRD, the chart and the flags (kept equal by a test).
struct RolloutSpec {
  Mechanism mechanism = Mechanism::node_by_node;
  IntOrPercent max_unavailable{10, true};
  IntOrPercent max_unavailable_per_group{25, true};
  std::int64_t canary_nodes_per_group = 1;
  k8s::Duration canary_soak = std::chrono::seconds(60);
  WorkloadMode workloads = WorkloadMode::wait_for_idle;
  std::optional<bool> cordon;    // Absent: cordon if clients would break.
  bool evict_bare_pods = false;  // Under Evict: also pods without a controller, which are not created again.
  k8s::Duration idle_timeout = std::chrono::hours(1);
  k8s::Duration verify_timeout = std::chrono::minutes(10);
  std::int64_t max_failures = 3;  // After the canary; in the canary one failure is enough.
  OnFailure on_failure = OnFailure::pause;
  std::vector<MaintenanceWindow> windows;  // Empty: always.
  bool paused = false;                     // Stops new rollouts only.
  friend bool operator==(const RolloutSpec&, const RolloutSpec&) = default;
};

// A profile written in the policy itself.
struct InlineProfile {
  std::string strategy = "none";  // none | mps | time-slicing
  std::int64_t replicas = 0;
  bool rename_by_default = false;
  std::string resource = "nvidia.com/gpu";
  std::optional<bool> fail_requests_greater_than_one;
  friend bool operator==(const InlineProfile&, const InlineProfile&) = default;
};

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
  // Set if the object is deleted, or is being deleted, and its stop still applies (cluster/recorded_policies.h).
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

// The policy's gpusharing.dev/retry: another value than at a failure or a deferral allows a new attempt.
[[nodiscard]] std::string_view retry_of(const SharingPolicy& policy);
// A person has restricted what the policy is allowed to start: mode Observe or Approve, paused, or maintenance windows.
[[nodiscard]] bool has_stop(const SharingPolicy& policy);
// Which of these, for people: "mode Approve, paused"; empty: none.
[[nodiscard]] std::string stops_of(const SharingPolicy& policy);

struct SharingRollout {
  k8s::ObjectMeta meta;
  std::string policy;
  std::string config_map;  // "namespace/name" of the ConfigMap that the plugin mounts (or rollout_subject.h).
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
// Phases of a SharingRollout that has ended: Completed, Superseded, Failed, RolledBack.
[[nodiscard]] bool has_ended(std::string_view phase);

}  // namespace gso
