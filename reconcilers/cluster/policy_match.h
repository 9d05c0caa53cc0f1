// Which SharingPolicy governs a node, and the policies that govern although their objects are gone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/record.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// --- Which SharingPolicy governs a node. Policies are matched only here.

// Whether the policy's selector selects the node. Products (nvidia.com/gpu.product and similar labels) are compared
// without the suffix -SHARED, which sharing adds, on the node and in the selector: otherwise a node would leave its
// policy by being shared. A selector with a problem selects no node, unless the policy has a stop (has_stop()): the
// stop must not end because of the selector. Such a policy starts no change (rollout/gates.h), so it does not lose its
// nodes.
[[nodiscard]] bool policy_selects(const SharingPolicy& policy, const Node& node);
// The first policy that selects the node; null if none does. A deleted one (SharingPolicy::gone) is skipped if a policy
// that was created after the deletion selects the node with at least its priority.
[[nodiscard]] const SharingPolicy* governing_policy(const std::vector<const SharingPolicy*>& policies,
                                                    const Node& node);
// Policies that might select the node while labels of GPU Feature Discovery and Node Feature
// Discovery are missing on it: the rest of their selector matches, and it uses a label of these two that the node
// lacks. In order of precedence, down to the first policy that selects the node in any case.
[[nodiscard]] std::vector<const SharingPolicy*> policies_in_doubt(const std::vector<const SharingPolicy*>& policies,
                                                                  const Node& node);
// The other policies that select the node and do not govern it, except `default`, which selects every node.
[[nodiscard]] std::vector<const SharingPolicy*> losing_policies(const std::vector<const SharingPolicy*>& policies,
                                                                const Node& node, const SharingPolicy* governing);

// Why a selector must not use this label: sharing itself, or the operator, changes it, so the policy would lose its
// nodes by changing them, and select them again after it lost them. For people; empty if the selector can use it.
// `own_key`: the profile key that the policy itself puts into nvidia.com/device-plugin.config (empty: it chooses none),
// and `values`: those that the selector asks for.
[[nodiscard]] std::string sharing_label_problem(std::string_view label, const std::vector<std::string>& values,
                                                std::string_view own_key);
// The first such label of the policy's selector; empty: none.
[[nodiscard]] std::string selector_problem(const SharingPolicy& policy);

// What a selector does that its author might not mean; the policy governs its nodes all the same. For people.
[[nodiscard]] std::vector<Reason> selector_notes(std::string_view label, k8s::LabelOperator op,
                                                 const std::vector<std::string>& values);
// Of the policy's whole selector.
[[nodiscard]] std::vector<Reason> selector_notes(const SharingPolicy& policy);

// The name of a product without the sharing suffix.
[[nodiscard]] std::string_view unshared_product(std::string_view product);

// --- Policies that govern although their objects are not there: a stop that a person has set does not end because its
// object, or the CRD of its kind, is deleted (S10).

// By name, from the record's last specs:
//  - without the CRDs: all policies that are not in the view, so that modes, pauses, windows and budgets apply;
//  - while the view has no policy at all, as when the CRDs are being deleted: the API server deletes the objects first
//    and their kind some seconds later;
//  - one that was deleted less than kDeletionGrace ago, for the same reason: its objects do not go all at once;
//  - `default`, until it is created again with that spec;
//  - one that was deleted, or is being deleted, with a stop in its spec or on one of its rollouts (SharingPolicy::gone
//    is set), until its stop is lifted: by creating it again, by a policy created later (governing_policy()), or by the
// annotation gpusharing.dev/forget-policies. Pointers into the result stay valid as long as the result.
[[nodiscard]] std::map<std::string, SharingPolicy> policies_that_hold(const FleetRecord& record, const World& world,
                                                                      const std::optional<WallTime>& forget_until);

// How long a deleted policy without a stop governs on. One with deletionPolicy Revert does not: its nodes were reverted
// before its object went.
inline constexpr Duration kDeletionGrace = std::chrono::seconds(30);

// A stop of the policy itself, or of one of its rollouts.
[[nodiscard]] bool has_recorded_stop(const FleetRecord& record, const SharingPolicy& policy);

// The policies that the record must contain now: `record.policies` updated from the view. The present time counts as
// the deletion time of policies that are first found deleted in this pass. `governs`: the policy governs a node.
struct PolicyUpdate {
  std::map<std::string, RecordedPolicy> policies;
  std::optional<WallTime> crds_gone_since;
  std::vector<std::string> gone;       // First found deleted in this pass, with a stop.
  bool crds_gone = false;              // First found in this pass.
  std::optional<Duration> grace_left;  // Of the deleted policy whose grace ends first.
  bool forgotten = false;              // The stops of policies, and of rollouts whose objects are deleted, are dropped.
};
[[nodiscard]] PolicyUpdate update_policies(const FleetRecord& record, const World& world, Ages& ages,
                                           const std::optional<WallTime>& forget_until,
                                           const std::function<bool(const std::string& policy)>& governs);

}  // namespace gso
