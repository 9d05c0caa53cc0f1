// One node, assessed: what it should run, what it has loaded and how that is known, whether it shows it, and what the
// difference needs. A pure function of the objects; nothing here depends on time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/preflight.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/profile_book.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/replace_order.h"

namespace gso {

// Where a node stands, as far as objects tell. Draining, Restarting and Verifying are parts of `in_flight`.
enum class Situation : std::uint8_t {
  unmanaged,   // The plugin there runs without profiles.
  first_seen,  // No record of the fleet yet: the baseline comes first.
  current,     // Loaded is what it should be, and recorded so.
  to_record,   // Loaded by itself (reboot, label, template, new node): to be verified and recorded, not restarted.
  following,   // The DaemonSet controller replaces its pods by a newer template: followed, never doubled.
  change,      // Needs a change by us.
  in_flight,   // Our annotations say that a change is under way.
  unreadable,  // The annotation of its change cannot be read: nothing is known, and nothing is done (S11).
  failed,      // Did not verify; not tried again until its target changes.
  blocked,
};
inline constexpr std::size_t kSituations = 10;
[[nodiscard]] std::string_view to_string(Situation situation);

// How the loaded revision is known.
enum class Proof : std::uint8_t { none, fresh_pods, annotation, baseline };

struct Loaded {
  Interned revision;  // Empty: not known.
  Interned profile;   // "<configmap>/<key>"
  Proof proof = Proof::none;
};

// Pods of one node by component, newest first; terminating ones included.
struct NodePods {
  std::vector<const Pod*> plugin, gfd, mps;
  [[nodiscard]] const std::vector<const Pod*>& of(Component component) const;
};

struct NodeAssessment {
  // What there is one of for every node in memory: kept small, flags together.
  Situation situation = Situation::unmanaged;
  Transition transition = Transition::none;  // situation change, or to_record when that does not verify: what it takes,
  WayIn way = WayIn::none;                   // and by which way it came.
  EffectiveKey::Source source = EffectiveKey::Source::error;
  bool ready = false;
  bool held = false;
  bool unavailable = false;  // NotReady, cordoned by whomever, or nothing allocatable where GPUs are expected.
  bool gfd = false;          // A GFD DaemonSet selects the node: labels are verified, not written.
  // One that is none of the node's set does, which loads what it likes: labels are its own, and prove nothing.
  bool gfd_elsewhere = false;
  bool fresh_pods = false;     // Every pod that loads the profile did so after the content's last change.
  bool pods_ready = false;     // The newest pods of plugin, GFD and MPS (where due) are Ready and not crash-looping.
  bool matches = false;        // pods_ready and verified.ok
  bool shrinks = false;        // The target advertises less of something than the node does now.
  bool reverts = false;        // `label` is what stood before ours: the node has left a policy with Revert.
  bool releases = false;       // Our label stays and is ours no longer: the node has left a policy with Retain.
  bool rolled_back = false;    // The policy's inline profile failed: `label` is what was good before.
  bool wrong_key = false;      // The policy names a key that the ConfigMap does not have: blocked at what it has.
  bool unknown_label = false;  // Somebody's label names a key that the ConfigMap never had: no fault of the ConfigMap.
  bool only_held = false;      // Blocked by a driver upgrade or MIG change, and by nothing else.
  bool write_blocked = false;  // The reason concerns this node: it is written to the node, once.
  // The node shows something that is ours to clean: a Blocked state or a cordon that has no reason any more.
  bool stale_state = false;
  bool announced_map_missing = false;  // would_break: it is that the announced ConfigMap does not exist.
  bool drift_at_install = false;       // As recorded in the baseline: drifted, or unproven.
  bool drifted_at_install = false;     // Drifted.
  bool uncounted = false;              // The machine shows more GPUs (`counted_devices`) than the record knows of.
  [[nodiscard]] bool has_labeller() const { return gfd || gfd_elsewhere; }

  std::size_t set = 0;   // Index into the operand sets.
  Interned policy;       // The SharingPolicy that governs the node.
  Interned key;          // Target profile's key.
  Interned target;       // Its revision; empty when nothing resolves.
  Interned profile_ref;  // "<configmap>/<key>" of the target.
  Interned product;
  // "maintenance=true:NoSchedule, which DaemonSet a/b does not tolerate": a pod that is deleted there does not come
  // back.
  Interned taint;
  Interned other_plugins;  // DaemonSets whose device plugin runs here, too: "a/b, c/d". Empty: none.
  Interned label_by;       // The policy that wrote the node's label; empty: it is not ours.
  ProfilePtr profile;      // Target; null when nothing resolves.
  std::shared_ptr<const NodeExpectation> expectation;  // Of the target; null when there is none.
  Loaded loaded;
  Verification verified;                     // Against the target.
  std::int64_t recorded_gpus = 0;            // The count in the fleet's record; 0: none.
  std::int64_t measured_gpus = 0;            // Devices, as what is served tells; 0 where that proves nothing.
  std::int64_t counted_devices = 0;          // GPUs, as GFD's label tells; 0 where that proves nothing.
  std::int64_t missing_devices = 0;          // So many fewer than the machine has had.
  std::vector<Interned> losers;              // Policies that select the node as well, and lose.
  std::optional<std::string> label;          // nvidia.com/device-plugin.config to be written; empty text removes it.
  std::shared_ptr<const NodeChange> change;  // Null: no change of the node is in progress.
  // situation blocked, or why `change` cannot start:
  std::string_view reason;
  const Check* blocked_by = nullptr;  // The check that says so; null: another holder of the node does.
  std::string message;
  // Why the node would break under what the ClusterPolicy announces, or under the new templates once its pods restart.
  std::string would_break;
  // What preflight finds; null where the plugin runs without profiles.
  PreflightCache::Answer setup;
};

struct AssessContext {
  const World& world;
  const PlannerSettings& settings;
  const std::vector<OperandSet>& sets;
  const std::vector<const SharingPolicy*>& policies;  // In order of precedence; the built-in one last.
  const FleetRecord* record = nullptr;                // Null: none yet.
  ProfileBook& book;
  ExpectationCache& expectations;
  const std::vector<Operand>& strays;  // Discovery::strays
  PreflightCache& setups;
};

// `use`: what others do with the node's GPUs. nullopt: no device plugin selects the node, or it has no GPUs.
[[nodiscard]] std::optional<NodeAssessment> assess_node(const AssessContext& context, const Node& node,
                                                        const std::vector<const Pod*>& operand_pods,
                                                        const ForeignUse& use);

// Pieces that the planners share.
// Runs what it should, as far as its devices go: sick hardware is no reason to hold anything up.
[[nodiscard]] bool is_settled(const NodeAssessment& assessment);
// Fewer devices than there should be, with the rest as it should be.
[[nodiscard]] bool is_sick(const NodeAssessment& assessment);
[[nodiscard]] std::string sickness_of(const NodeAssessment& assessment);
// How a node that does not match differs from what it should show: never empty.
[[nodiscard]] std::string shown_difference(const NodeAssessment& assessment);
[[nodiscard]] NodePods sort_pods(const OperandSet& set, const std::vector<const Pod*>& operand_pods);
[[nodiscard]] bool is_crash_looping(const Pod& pod);
// Running, Ready, not being deleted, no container in back-off.
[[nodiscard]] bool is_serving(const Pod& pod);
// True when the pod was certainly created after that moment. Kubernetes' times have whole seconds: equal proves
// nothing.
[[nodiscard]] bool created_after(const Pod& pod, WallTime moment);
// True when what the pod runs was certainly read after that moment: it was created then, or its main container was
// started again (crash, reboot of the node) so long after that the kubelet had shown it the new content.
[[nodiscard]] bool loaded_after(const Pod& pod, WallTime moment, Duration projection);
// The pod was made from another template than its DaemonSet's newest one (updateStrategy OnDelete, or being rolled):
// its default key, environment and image are that one's.
[[nodiscard]] bool is_old_template(const Operand& operand, const Pod& pod);
// Higher priority first, then older, then by name; the built-in `default` where the cluster has none. `held`: policies
// that govern without an object (cluster/recorded_policies.h).
[[nodiscard]] std::vector<const SharingPolicy*> policies_in_order(const World& world, const SharingPolicy& built_in,
                                                                  const std::map<std::string, SharingPolicy>& held);
// Another actor holds the node: driver upgrade or MIG change under way. Empty: nobody.
[[nodiscard]] std::string_view foreign_holder(const Node& node, const OperandSet& set);
// Such an actor, or a person by gpusharing.dev/hold, relies on a cordon of ours: it stays (S7).
[[nodiscard]] bool cordon_is_relied_on(const Node& node, const OperandSet& set);
}  // namespace gso
