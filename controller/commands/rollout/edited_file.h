// The file that `rollout diff --file` compares with: a profile, a whole ConfigMap, a SharingPolicy that is about to be
// created or edited, or a ClusterPolicy; and what it concerns.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/commands/rollout/rollout.h"
#include "k8sclient/value/error.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// A key that goes while nodes use it.
struct DroppedKey {
  std::string config_map;
  std::string key;
  std::vector<std::string> nodes;
};
// --- A SharingPolicy: how it differs from the present one, and what it would do.

// As the operator reads both: a field that is left out has its default. The retry annotation counts, because it starts
// nodes.
[[nodiscard]] std::vector<FieldChange> policy_field_changes(const SharingPolicy& before, const SharingPolicy& after);
[[nodiscard]] nlohmann::ordered_json fields_json(const std::vector<FieldChange>& fields);
// The stops that the policy has only afterwards: "mode Observe, paused"; empty: none. A stricter mode is one unless the
// operator's own limit has it in effect already.
[[nodiscard]] std::string added_stops(const SharingPolicy& before, const SharingPolicy& after,
                                      const PlannerSettings& settings);

// Pods that the change of a node would break, under `workloads: Evict`.
struct EvictedPods {
  std::string node;
  std::vector<std::string> pods;  // "namespace/name"
  std::string why_not;            // Why the operator evicts too few of them, and waits; empty: it evicts enough.
};

struct PolicyPreview {
  using NodesOf = std::map<std::string, std::vector<std::string>>;  // By policy.

  std::vector<LintedDocument> documents;  // Of the file, as `lint` reads it.
  std::string policy;
  std::string refused_by;           // Who refuses one that is invalid: "the API server", "the operator".
  bool is_new = false;              // No policy of that name exists.
  std::vector<FieldChange> fields;  // That differ from the present object; none of a new one.
  std::string new_stops;            // That the present object does not have: added_stops().
  std::int64_t selected = 0;        // GPU nodes.
  std::int64_t governed = 0;        // Those that no other policy governs instead.
  NodesOf joins;                    // By the policy that governs them now.
  NodesOf leaves;                   // By the policy that governs them then.
  // Of the nodes that change or wait for a change, with the file: how many there are of this policy, and how many of
  // these do the same without it. And those that would change without the file alone, of all policies.
  std::int64_t changing = 0;
  std::int64_t as_now = 0;
  std::vector<std::string> no_longer;
  std::string overlap;    // Which selected nodes other policies govern, and why.
  std::string waves;      // Canary and budgets; empty: none of its nodes would change.
  std::string workloads;  // What happens to the pods that block changes; empty: there are none, or some are evicted.
  std::vector<EvictedPods> evicted;
  std::vector<std::string> in_change;  // Its nodes that are in a change now.
};

// A ClusterPolicy that is about to be edited or patched.
struct ClusterPolicyPreview {
  std::vector<LintedDocument> documents;  // As `lint` reads it.
  std::string name;
  std::vector<FieldChange> fields;         // That differ from the present object.
  std::string given = "{}";                // The spec of its text or patch, JSON.
  std::vector<std::string> not_previewed;  // Fields that differ besides: read_announced().
  std::vector<std::string> left_out;       // Those of them that a file does not have, and the present object has.
  bool staged = false;                     // The operator replaces the pods, in waves (updateStrategy OnDelete).
};

// What the file says, once it is in the world.
struct EditedFile {
  // Of a text that no plugin would take: each key and its first error. Of a SharingPolicy: the first error for which it
  // is refused, and the world is unchanged then.
  std::string invalid;
  std::vector<std::string> invalid_keys;               // "key any", "SharingPolicy default"
  std::set<std::string> profiles;                      // That it holds, as "configmap/key".
  std::vector<DroppedKey> dropped;                     // What a whole ConfigMap leaves out.
  std::optional<PolicyPreview> policy;                 // It is a SharingPolicy.
  std::optional<ClusterPolicyPreview> cluster_policy;  // It is a ClusterPolicy, or a patch of one.
};
// Puts what call.input holds into call.world, as `kubectl apply` would. Errors (`invalid`): it is neither a
// SharingPolicy nor a profile nor a ConfigMap that a device plugin mounts, or its key is unknown; it has several
// documents, and only the first would be read; or --key goes with a SharingPolicy, which has no key.
[[nodiscard]] k8s::Result<EditedFile> apply_file(RolloutCall& call, k8s::WallTime now);
// The same for a ClusterPolicy, which the cluster must have, or for call.options.cluster_policy_patch.
[[nodiscard]] k8s::Result<EditedFile> apply_cluster_policy(RolloutCall& call, const k8s::Result<std::string>& json);
// Reads the ConfigMap that call->world announces then, and that no plugin mounts yet, and which fields of the present
// ClusterPolicy differ that the preview does not follow.
boost::asio::awaitable<k8s::Result<void>> read_announced(RolloutCall* call, ClusterPolicyPreview* preview);
void print_announced(const ClusterPolicyPreview& preview, std::ostream& out);
// Compares the changes with those without the file. `with`: of all nodes of the world with the policy.
void compare_changes(const std::vector<NodeDifference>& without, const std::vector<NodeDifference>& with,
                     PolicyPreview& preview);
// One of the others is the same change of the same node, under the same policy.
[[nodiscard]] bool is_same_change(const NodeDifference& d, const std::vector<NodeDifference>& others);
// Adds what the changes of its nodes mean, and returns which of them start first. `nodes`: all that would change;
// `consumers`: of these nodes, as just listed. call.world is changed: the nodes that start first are in their change
// then.
[[nodiscard]] FirstStarts add_changes(RolloutCall& call, const std::vector<NodeDifference>& nodes,
                                      const std::map<std::string, NodeConsumers>& consumers, k8s::WallTime now,
                                      PolicyPreview& preview);

// For people, line by line: which nodes it selects, and that they change as now, before the table of changes.
void print_selection(const PolicyPreview& preview, bool has_crds, std::ostream& out);
// And after it: what ends, waves and pods. The order is printed by `diff`.
void print_waves(const PolicyPreview& preview, const FirstStarts& order, std::ostream& out);
[[nodiscard]] nlohmann::ordered_json preview_json(const PolicyPreview& preview, const FirstStarts& order);

}  // namespace gso
