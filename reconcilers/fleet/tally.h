// What one node contributes to the sums and the sets over the fleet. The rule is stated once, in share_of(): adding a
// node adds its share, removing it subtracts the share that was stored when it was added.
#pragma once

#include <array>
#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

// --- What /metrics shows of the nodes, kept up to date as they change: a page of a fleet of any size costs the same.

// Of the nodes that a plugin serves.
struct ShownSums {
  using Counts = std::map<std::string, std::int64_t, std::less<>>;
  using Names = std::set<std::string>;
  Counts states;                                        // By state_name().
  std::map<std::string, Counts, std::less<>> profiles;  // "<configmap>/<key>" of the target -> nodes by state_name().
  std::map<std::string, Names, std::less<>> reasons;    // Why they are Blocked or Held -> nodes.
  Names failed;                                         // In the phase that people see.
  Names drifting;                                       // They showed their profile at the baseline.

  // Adds a node (sign 1), or subtracts it (sign -1). What has become zero or empty is removed.
  void add(const std::string& name, const NodeAssessment& assessment, std::int64_t sign);
};

// Node counts of a group, a rollout, a policy or the cluster.
template <class Count>
struct NodeCounts {
  Count total = 0;
  Count busy = 0;           // Changing or unavailable, for any cause: each holds a slot of every budget (S1).
  Count cordoned = 0;       // Of these: they serve, and somebody other than the operator has cordoned them.
  Count settled = 0;        // Run the target and show it.
  Count held = 0;           // Have gpusharing.dev/hold.
  Count unproven = 0;       // Show their target since the installation, with pods that may be older than its text.
  Count new_template = 0;   // Wait for pods of a new template (updateStrategy OnDelete), with any profile.
  Count shrinking = 0;      // Pending, and the target serves less of some resource than the node does now.
  Count changing = 0;       // In a change of the operator that has not failed.
  Count loading = 0;        // Verifying a profile that they have loaded by themselves.
  Count repairable = 0;     // Bucket::repairable.
  Count failed_before = 0;  // Pending, and their last change failed: they are Failed until the next one begins.
};

struct Tally : NodeCounts<std::int64_t> {
  // By NodeAssessment::phase, which answers another question than phase_of(): what a node needs or goes through, which
  // a holder only delays. A change that a holder stops keeps its slot and keeps its rollout in progress, and a failure
  // still counts against its revision. phase_of() is what people see of one node.
  std::array<std::int64_t, kPhases> phases{};
  [[nodiscard]] std::int64_t of(Phase phase) const { return phases[static_cast<std::size_t>(phase)]; }
  // As people see them: a node whose last change failed is Failed until the next one begins.
  [[nodiscard]] std::int64_t shown_failed() const { return of(Phase::failed) + failed_before; }
  [[nodiscard]] std::int64_t shown_pending() const { return of(Phase::pending) - failed_before; }
  // In progress for any cause: changed by the operator, by their DaemonSets, or by what they loaded themselves.
  [[nodiscard]] std::int64_t moving() const { return changing + loading + of(Phase::following_daemonset); }
  // Cannot be changed now, each with a reason.
  [[nodiscard]] std::int64_t blocked() const { return of(Phase::blocked) + of(Phase::held); }
  // Run their target according to the record and show something else, for whatever reason: Bucket::drifting and
  // Bucket::excused_drift.
  [[nodiscard]] std::int64_t unshown() const { return of(Phase::up_to_date) - settled; }
  // Adds the counts of one node or of many (sign 1), or subtracts them (sign -1).
  template <class Count>
  void add(const NodeCounts<Count>& other, std::int64_t sign) {
    total += sign * other.total;
    busy += sign * other.busy;
    cordoned += sign * other.cordoned;
    settled += sign * other.settled;
    held += sign * other.held;
    unproven += sign * other.unproven;
    new_template += sign * other.new_template;
    shrinking += sign * other.shrinking;
    changing += sign * other.changing;
    loading += sign * other.loading;
    repairable += sign * other.repairable;
    failed_before += sign * other.failed_before;
  }
  void add(Phase phase, std::int64_t sign) { phases[static_cast<std::size_t>(phase)] += sign; }
  void add(const Tally& other, std::int64_t sign) {
    add<std::int64_t>(other, sign);
    for (std::size_t i = 0; i < phases.size(); ++i) phases[i] += sign * other.phases[i];
  }
};

// Identifies a ProfileRollout: policy, plugin ConfigMap and profile key.
struct RolloutKey {
  std::string policy;
  std::string config_map;  // "namespace/configmap" (or model/policy.h)
  std::string key;
  friend auto operator<=>(const RolloutKey&, const RolloutKey&) = default;
};

// Sets of nodes that planners visit, each sorted by name.
enum class Bucket : std::uint8_t {
  changing,        // In a change of the operator.
  failed,          // The last change did not verify.
  self_loaded,     // Loaded a profile by themselves, which the operator verifies and records.
  following,       // Their DaemonSet controller replaces the pods.
  block_to_write,  // Blocked, and the state is not written to the node yet.
  stale_marks,     // Have a state or a deferral that has no reason any more.
  unrecorded,      // No baseline yet.
  drifting,        // Verified before, and do not show their profile now.
  // Of these: the operator restarts them if the drift lasts for verifyTimeout. Not nodes for which a check of the chain
  // would block a change (NodeAssessment::reload_obstacle), for example MIG under an MPS profile or missing labels.
  repairable,
  excused_drift,  // Drifting as well, and NotReady, held by somebody, or drifted at the installation: not repaired.
  busy,           // Hold a slot of every budget.
  would_break,    // Would lose their GPUs with the announced settings.
  would_shrink,   // Would serve less with them.
  drifted_at_install,  // Did not show their profile at the baseline.
  missing_devices,     // Serve fewer devices than the profile that they have loaded needs.
  early_text,          // Show an edited text before their change to it (NodeAssessment::early_text).
  uncounted,           // Have more GPUs than the record has for them.
  label_work,          // Sharing labels that the operator must write differ.
  unwritable,          // A label that the operator must write has no valid value.
  label_problems,      // Sharing labels that no component corrects, or an unknown label mode (label_problems()).
  releases,            // Left a policy with Retain.
  deferred,            // Pending, and at the back of the queue (Deferral).
  contested,           // Another device plugin also runs there.
  partitioned,         // Labelled for partitioning: node.partitioning serves them.
  pod_faults,          // Have a pod with a possible fault that only a new pod fixes (pod_fault_of()).
  standalone_mps,      // Have a pod of a standalone MPS daemon, or its replacement is in progress.
  mps_directory,       // Have such a pod, or the label that names where its clients find the daemon.
  without_gpus,        // Ready, and offer no GPU although nothing explains that for now.
  cordoned,            // By the operator.
  count_,
};
inline constexpr std::size_t kBuckets = static_cast<std::size_t>(Bucket::count_);

// The same within one rollout.
enum class RolloutBucket : std::uint8_t {
  set_aside,  // Neither settled, changing nor blocked, and not usable now: held, NotReady, or held by another actor.
  stuck,      // Changing, and held by a person or another actor.
  failed,     // The last change failed, on any target, and the next one has not begun.
  count_,
};
inline constexpr std::size_t kRolloutBuckets = static_cast<std::size_t>(RolloutBucket::count_);

// The buckets of both kinds that one node is in.
class BucketSet {
 public:
  void put(Bucket bucket, bool belongs = true) { bits_.set(index(bucket), belongs); }
  void put(RolloutBucket bucket, bool belongs) { bits_.set(index(bucket), belongs); }
  [[nodiscard]] bool has(Bucket bucket) const { return bits_.test(index(bucket)); }
  [[nodiscard]] bool has(RolloutBucket bucket) const { return bits_.test(index(bucket)); }
  [[nodiscard]] bool empty() const { return bits_.none(); }

 private:
  static std::size_t index(Bucket bucket) { return static_cast<std::size_t>(bucket); }
  static std::size_t index(RolloutBucket bucket) { return kBuckets + static_cast<std::size_t>(bucket); }
  std::bitset<kBuckets + kRolloutBuckets> bits_;
};

// Nodes with the same preflight answer, installation and Blocked reason (empty: not Blocked).
using SetupKey = std::tuple<PreflightCache::Answer, std::string, std::string>;

// The share of one node, beside what its assessment says: a fleet has one of each per node, so no field is in both.
struct NodeShare {
  BucketSet buckets;
  // If nos partitions its GPUs: the policies that select it; the first one would otherwise govern it.
  RareList<Interned> left_to_nos_by;
  NodeCounts<std::int8_t> counts;
  // Waiting for a change: true if the node needs a slot; such nodes come after those that are already busy.
  std::optional<bool> pending;
  std::optional<MpsMark> mark;    // How its mark for KAI differs from its standalone MPS daemon.
  std::optional<bool> abandoned;  // No plugin with profiles serves it, and a change has left marks; true: keeps a slot.
  // Of a node of a standalone MPS daemon that no plugin serves: the policy that governs it. Empty: it is another node.
  Interned unserved_by;

  // The node adds nothing: no plugin serves it, and nothing must be done there.
  [[nodiscard]] bool empty() const;
};

// `assessment`: null if no plugin DaemonSet selects the node. `marks`: MPS nodes are marked for KAI.
[[nodiscard]] NodeShare share_of(const AssessContext& context, const Node& node, const NodeAssessment* assessment,
                                 const std::vector<const Pod*>& pods, bool marks);

}  // namespace gso
