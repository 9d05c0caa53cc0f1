// What one node adds to the sums and the sets over the fleet. The rule is stated once, in share_of(): adding a node is
// `+=` of its share, removing it is `-=` of the share that was stored when it was added.
#pragma once

#include <array>
#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/mps_ready.h"

namespace gso {

// Counts of nodes: of a group, a unit, a policy or the cluster.
struct Tally {
  std::int64_t total = 0;
  std::int64_t busy = 0;          // Changing or unavailable, whoever caused it: these hold a slot of every budget (S1).
  std::int64_t settled = 0;       // Run the target and show it.
  std::int64_t drifting = 0;      // Were verified on the target and no longer show it (Bucket::drifting).
  std::int64_t held = 0;          // Carry gpusharing.dev/hold.
  std::int64_t new_template = 0;  // Wait for pods of a new template (updateStrategy OnDelete), whatever their profile.
  std::int64_t changing = 0;      // In a change of ours that has not failed.
  std::int64_t loading = 0;       // Verifying what they have loaded by themselves.
  std::array<std::int64_t, kPhases> phases{};  // Whoever holds them.

  [[nodiscard]] std::int64_t of(Phase phase) const { return phases[static_cast<std::size_t>(phase)]; }
  // Cannot be changed now, each with a reason.
  [[nodiscard]] std::int64_t blocked() const { return of(Phase::blocked) + of(Phase::held); }
  Tally& operator+=(const Tally& other) { return add(other, 1); }
  Tally& operator-=(const Tally& other) { return add(other, -1); }

 private:
  Tally& add(const Tally& other, std::int64_t sign);
};

// One policy taking one profile key to its present revision.
struct RolloutKey {
  std::string policy;
  std::string set;  // "namespace/configmap"
  std::string key;
  friend auto operator<=>(const RolloutKey&, const RolloutKey&) = default;
};

// Sets of nodes that planners walk, each sorted by name.
enum class Bucket : std::uint8_t {
  unavailable,         // Out of service, and no change of ours is the reason.
  changing,            // A change of ours is in progress.
  failed,              // The last change did not verify.
  self_loaded,         // Loaded a profile by themselves: to be verified and recorded.
  following,           // Their DaemonSet controller replaces the pods.
  block_to_write,      // Blocked, and the node does not say so yet.
  stale_marks,         // Carry a Blocked state, a cordon or a guard of ours that has no reason any more.
  unrecorded,          // No baseline yet.
  drifting,            // Verified before, and do not show their profile now.
  would_break,         // Would lose their GPUs by what is announced.
  drifted_at_install,  // Did not show their profile at the baseline.
  missing_devices,     // Serve fewer devices than they should.
  uncounted,           // Have more GPUs than the record knows of.
  label_work,          // Sharing labels that are ours to write differ.
  unwritable,          // A label that is ours to write has no valid value.
  releases,            // Left a policy with Retain.
  deferred,            // Pending, and at the back of the queue (Deferral).
  contested,           // Another device plugin runs there, too.
  pod_faults,          // Have a pod that may need to be made anew (pod_faults.h).
  count_,
};
inline constexpr std::size_t kBuckets = static_cast<std::size_t>(Bucket::count_);

// The same within one unit.
enum class RolloutBucket : std::uint8_t {
  set_aside,  // Neither settled, changing nor blocked, and out of reach: held, NotReady, or another actor's.
  stuck,      // Changing, and held or another actor's.
  failed,     // Failed on any target.
  count_,
};
inline constexpr std::size_t kRolloutBuckets = static_cast<std::size_t>(RolloutBucket::count_);

// Nodes of which preflight says the same, at one operand set, and that are blocked for one reason (empty: not blocked).
using SetupKey = std::tuple<PreflightCache::Answer, std::string, std::string>;

// The share of one node. Texts are interned: there is one of these for every node in memory.
struct NodeShare {
  Tally tally;
  std::bitset<kBuckets> buckets;
  std::bitset<kRolloutBuckets> rollout_buckets;
  Interned policy, set, key, product;  // The unit and the group; an empty set: in none.
  std::size_t set_index = 0;           // Of the operand set.
  Interned target;                     // Revision.
  Interned loaded;                     // "namespace/configmap/key"
  Interned label_by;                   // The policy that wrote its label.
  std::vector<Interned> losers;        // Policies that select it as well.
  // Waiting for a change: true for those that need a slot, which come after those that are busy anyway.
  std::optional<bool> pending;
  std::string_view blocked;  // Reason; empty: not blocked.
  PreflightCache::Answer setup;
  // Policies that select it, the first of them that would govern it, where nos partitions its GPUs instead.
  std::vector<Interned> left_to_nos_by;
  std::optional<MpsMark> mark;    // How its mark for KAI differs from what its MPS daemon is.
  std::optional<bool> abandoned;  // No plugin with profiles serves it, and a change has left marks; true: keeps a slot.

  [[nodiscard]] RolloutKey unit() const;
  [[nodiscard]] SetupKey setup_key() const;
  [[nodiscard]] bool has(Bucket bucket) const { return buckets.test(static_cast<std::size_t>(bucket)); }
  // Adds nothing to anything.
  [[nodiscard]] bool empty() const;
};

// `assessment`: null where no plugin DaemonSet selects the node. `marks`: MPS nodes are marked for KAI.
[[nodiscard]] NodeShare share_of(const AssessContext& context, const Node& node, const NodeAssessment* assessment,
                                 const std::vector<const Pod*>& pods, bool marks);

}  // namespace gso
