// The phase of a node as people see it, its drift, who uses it, its faulty pods, and for how long its change is
// deferred.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

// --- The phase of a node: determined once, by its assessment (assess.h), and returned by phase_of(). `status`,
// `explain`, the SharingRollout, metrics and what-if format these values and derive no others. The phase does not
// depend on the rollout: gates, slots and budgets decide when a Pending node starts, not its phase.

// The phase that people see: Held while a holder prevents what the node needs.
[[nodiscard]] Phase phase_of(const NodeAssessment& facts);
// Why it is Blocked or Held, or why its change cannot continue, by the same rule; empty: none of these.
[[nodiscard]] std::string_view shown_reason(const NodeAssessment& facts);
// The phase of a node in a change. `pods`: the node's operand pods.
[[nodiscard]] Phase phase_in_change(const NodeAssessment& facts, const NodePods& pods);

// Pods that a change lists and that still exist. `terminating`: count terminating pods too.
[[nodiscard]] std::size_t pods_left(const NodeChange& change, const NodePods& pods, Component component,
                                    bool terminating);
// Any of them, of any component.
[[nodiscard]] bool any_listed_left(const NodeChange& change, const NodePods& pods, bool terminating);
// The same, of these components.
[[nodiscard]] bool any_left_of(const std::vector<Component>& components, const NodeChange& change, const NodePods& pods,
                               bool terminating);
// A listed pod is gone or terminating, or the annotation says that the change is touched: what is_touched() knows
// before the node's target is known. `without_mps`: its MPS pods do not count, unless the change lists no others.
[[nodiscard]] bool has_begun(const NodeChange& change, const NodePods& pods, bool without_mps);
// The change has had an effect on the node: a listed pod is gone or terminating, the label was written, or the pods
// were listed again after that. A node without such an effect can be uncordoned and queued again.
[[nodiscard]] bool is_touched(const NodeAssessment& facts, const NodePods& pods);
// --- Which pods use the GPUs of a node, as last listed, and what a change must wait for before its first pods are
// deleted.

// The GPU consumers of a node as last listed.
struct NodeUse {
  bool fresh = false;        // Listed a moment ago, or its list fails: nothing more is known of the present.
  bool listed = false;       // Listed a moment ago. If not, another list is wanted.
  std::string_view unknown;  // NodeConsumers::unknown. Not empty: the node counts as in use, whatever is in the lists.
  std::vector<const Pod*> waiting;  // Pods that a disruption would break and that can leave.
  // Pods of DaemonSets and static pods. Only reported: the operator neither waits for them nor evicts them.
  std::vector<const Pod*> daemonset_owned;
  [[nodiscard]] std::int64_t requested(std::string_view resource) const;
  // Of `waiting`; "pods that are not known" if it waits for no other.
  [[nodiscard]] std::string names() const;
  // No pod has to be waited for, as far as that listing says.
  [[nodiscard]] bool is_idle() const { return waiting.empty() && unknown.empty(); }
};
// "ns/a, ns/b and 3 more"
[[nodiscard]] std::string names_of(const std::vector<const Pod*>& pods);
// A listing older than this proves nothing about the present.
constexpr Duration kListingFresh = std::chrono::seconds(10);
// `within`: how long ago the listing can have begun at most; more than kListingFresh is that.
[[nodiscard]] NodeUse use_of(const Snapshot& snapshot, const std::string& node, Duration within = kListingFresh);

// The condition for a node's consumers before its first pods are deleted.
enum class Drain {
  nothing,
  fits,  // The node must still serve what they request of each resource afterwards.
  idle,  // No consumer remains.
};
[[nodiscard]] Drain drain_for(const NodeAssessment& assessment, Transition transition, WorkloadMode mode);
[[nodiscard]] bool drained(Drain drain, const NodeUse& use, const NodeAssessment& assessment);
// `serves`: how many of each resource the node has after the change.
[[nodiscard]] bool drained(Drain drain, const NodeUse& use, const std::map<std::string, std::int64_t>& serves);

// The first pods are deleted when the change begins. A node that must be idle is cordoned first and listed once more:
// pods could have been bound since. `is_drained`: the answer of drained() now.
[[nodiscard]] bool starts_live(Drain drain, bool is_drained);
// A change that begins cordons the node: new pods would delay it, or break with the MPS daemon. `asked`: what the
// policy says (RolloutSpec::cordon). `live`: the answer of starts_live().
[[nodiscard]] bool start_cordons(const std::optional<bool>& asked, Transition transition, bool live);

// --- What drift looks like, also in the state that people see, and drift that is left alone because of what the
// baseline knows about the node.

// Why drift of this node is not repaired although it could be: PreexistingDrift (it did not show its profile at the
// baseline either), or Unproven (it did, but its pods are older than the last change of the profile's text, which a
// restart would load; it still serves GPUs, and would lose what it serves). A node of unproven text that serves nothing
// has nothing to lose. Empty: neither, so that N7 repairs it.
[[nodiscard]] std::string_view baseline_excuse(const NodeAssessment& assessment);

// The state of a node in one word, as tables and metrics show it: UpToDate means the nodes that a policy counts as
// such.
[[nodiscard]] std::string_view state_name(const NodeAssessment& assessment);

// Of a drifting node, for people: what it shows instead of its profile, and why its pods are not restarted for that if
// they are not. Never empty.
[[nodiscard]] std::string drift_text(const NodeAssessment& assessment);

// --- What a node will certainly serve once it shows its target.

// How much of the resource is counted; 0: none.
[[nodiscard]] std::int64_t amount_of(const ResourceCounts& counts, std::string_view resource);

// What a node will serve that shows this: of a resource whose number of GPUs is not known, as many as `measured_gpus`,
// or one GPU's.
[[nodiscard]] std::map<std::string, std::int64_t> served_with(const NodeExpectation& expectation,
                                                              std::int64_t measured_gpus);
// How many of a resource. If the number of the node's GPUs is not known, as many as its capacity proves, else one
// GPU's. nullopt: the target says nothing about that resource.
[[nodiscard]] std::optional<std::int64_t> served_afterwards(const NodeAssessment& assessment,
                                                            std::string_view resource);
// The same of every resource that the target is about. Empty without a target.
[[nodiscard]] std::map<std::string, std::int64_t> served_afterwards(const NodeAssessment& assessment);

// How much of a resource nodes offer now and afterwards.
struct AmountChange {
  std::string resource;
  std::int64_t before = 0, after = 0;  // On one node.
  friend auto operator<=>(const AmountChange&, const AmountChange&) = default;
};
// Those that change, and on how many nodes.
using AmountChanges = std::map<AmountChange, std::int64_t>;
// Adds one node that will serve that much.
void count_amounts(const Node& node, const std::map<std::string, std::int64_t>& serves, AmountChanges& out);
// "nvidia.com/gpu 32 -> 48 on each of 11 nodes": one text for each.
[[nodiscard]] std::vector<std::string> describe(const AmountChanges& amounts);

// --- Pods with a fault that only a new pod fixes, recognised by the messages and states of their config-manager
// containers.

struct PodFault {
  std::string_view name;  // CamelCase: the reason of its finding.
  std::string what;       // For people.
  Duration patience;      // How long to wait, because the fault might end by itself.
  // The container runs again since then, after it has failed: between two crashes, or for good.
  std::optional<WallTime> runs_since{};
  // It has run for so long that the fault is over.
  [[nodiscard]] bool is_over(WallTime now) const { return runs_since && now - *runs_since >= kProvesRecovery; }
  static constexpr Duration kProvesRecovery = std::chrono::minutes(1);
};

// The init container and the sidecar that choose the profile: "config-manager-init" and "config-manager" of the GPU
// Operator, "nvidia-device-plugin-init", "…-sidecar" and their like of the device plugin's chart.
[[nodiscard]] bool is_config_manager(std::string_view container);

// The first fault found in the pod, also if it is over by now (is_over()). `projection`: how long a kubelet takes at
// most to show a new key.
[[nodiscard]] std::optional<PodFault> pod_fault_of(const Pod& pod, Duration projection);

// For people: the state of the first pod that does not serve, in the words of its first container with a message, else
// that it is not Ready. If every pod serves: that a pod is missing.
[[nodiscard]] std::string first_problem(const NodePods& pods);

// --- Whether a deferral on a node still applies, and for how long a change is deferred.

// The node's deferral, if it is of its present target and nobody has given its workloads another turn since: by
// another attempt (model/policy.h), or by a policy that evicts them now. `policy`: the one that governs the node; null:
// none.
[[nodiscard]] std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& assessment,
                                                        const SharingPolicy* policy);

// For as long as the policy lets a node wait for its workloads (idleTimeout). A node whose policy has no patience,
// which is less than ten seconds, is left alone for a minute: it is not cordoned and uncordoned in every pass.
[[nodiscard]] Duration deferral_length(Duration idle_timeout);

}  // namespace gso
