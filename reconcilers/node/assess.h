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
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/phase.h"
#include "reconcilers/node/replace_order.h"

namespace gso {

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

// Who writes the node's sharing labels.
enum class Labeller : std::uint8_t {
  us,
  gfd,          // A GFD DaemonSet of the node's installation: labels are verified, not written.
  foreign_gfd,  // One of none of the node's set, which loads what it likes: labels are its own, and prove nothing.
};

// What the baseline says of the node: whether it showed what its pods must have loaded.
enum class AtInstall : std::uint8_t { shown, unproven, drifted };

// The node has left the policy that wrote its label.
enum class LeftPolicy : std::uint8_t {
  no,
  revert,   // NodeAssessment::label is what stood before.
  release,  // The label stays, and is ours no longer.
};

struct NodeAssessment {
  // What there is one of for every node in memory: kept small, flags together.
  Phase phase = Phase::unmanaged;            // Whoever holds the node; phase_of() (node_phase.h) is what people see.
  Transition transition = Transition::none;  // Pending, or Verifying when that does not succeed: what the change takes,
  ChangeCause cause = ChangeCause::none;     // and by which way it came.
  EffectiveKey::Source source = EffectiveKey::Source::error;
  Labeller labeller = Labeller::us;
  AtInstall at_install = AtInstall::shown;
  LeftPolicy left_policy = LeftPolicy::no;
  bool ready = false;
  bool unavailable = false;    // NotReady, cordoned by whomever, or nothing allocatable where GPUs are expected.
  bool fresh_pods = false;     // Every pod that loads the profile did so after the content's last change.
  bool pods_ready = false;     // The newest pods of plugin, GFD and MPS (where due) are Ready and not crash-looping.
  bool shrinks = false;        // The target advertises less of something than the node does now.
  bool wrong_key = false;      // The policy names a key that the ConfigMap does not have: blocked at what it has.
  bool write_blocked = false;  // The reason concerns this node: it is written to the node, once.
  bool announced_map_missing = false;  // would_break: it is that the announced ConfigMap does not exist.

  // A change of ours is under way, and has not failed.
  [[nodiscard]] bool in_change() const;
  // It runs something that it loaded by itself (reboot, label, template, new node): to be verified and recorded, not
  // restarted.
  [[nodiscard]] bool loads_by_itself() const { return phase == Phase::verifying && change == nullptr; }
  // Cannot be changed now, for `reason`.
  [[nodiscard]] bool is_blocked() const { return phase == Phase::blocked || phase == Phase::held; }
  // What is under way there is not known.
  [[nodiscard]] bool is_unreadable() const;
  // A person holds it (gpusharing.dev/hold).
  [[nodiscard]] bool is_held() const;
  // Shows its target, with pods that serve.
  [[nodiscard]] bool matches() const { return pods_ready && verified.ok; }
  [[nodiscard]] bool has_labeller() const { return labeller != Labeller::us; }
  // Somebody's label names a key that the ConfigMap never had: no fault of the ConfigMap.
  [[nodiscard]] bool has_unknown_label() const;
  // So many GPUs fewer than the machine has had; 0 where that is not known.
  [[nodiscard]] std::int64_t missing_devices() const;
  // The machine shows more GPUs than the record knows of.
  [[nodiscard]] bool is_uncounted() const;

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
  std::int64_t had_devices = 0;              // The most that the machine has counted before; 0: not known.
  std::vector<Interned> losers;              // Policies that select the node as well, and lose.
  std::optional<std::string> label;          // nvidia.com/device-plugin.config to be written; empty text removes it.
  std::shared_ptr<const NodeChange> change;  // Null: no change of the node is in progress.
  // Who keeps the operator off the node: Held (a person), DriverUpgrade or MIGChange. Empty: nobody.
  std::string_view holder;
  // Why the node is blocked, or why its change cannot go on:
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
  const std::vector<PluginInstallation>& sets;
  const std::vector<const SharingPolicy*>& policies;  // In order of precedence; the built-in one last.
  const FleetRecord* record = nullptr;                // Null: none yet.
  ProfileCache& book;
  ExpectationCache& expectations;
  const std::vector<Operand>& strays;  // Discovery::strays
  PreflightCache& setups;
};

// `use`: what others do with the node's GPUs. nullopt: no device plugin selects the node, it has no GPUs, or nos
// partitions them and no change of ours has to be finished there (cluster/nos.h).
[[nodiscard]] std::optional<NodeAssessment> assess_node(const AssessContext& context, const Node& node,
                                                        const std::vector<const Pod*>& operand_pods,
                                                        const ForeignUse& use);

// Pieces that the planners share.
// Runs what it should, as far as its devices go: sick hardware is no reason to hold anything up.
[[nodiscard]] bool is_settled(const NodeAssessment& assessment);
// Fewer devices than there should be, with the rest as it should be.
[[nodiscard]] bool has_missing_devices(const NodeAssessment& assessment);
[[nodiscard]] std::string missing_devices_text(const NodeAssessment& assessment);
// How a node that does not match differs from what it should show: never empty.
[[nodiscard]] std::string shown_difference(const NodeAssessment& assessment);
[[nodiscard]] NodePods sort_pods(const PluginInstallation& set, const std::vector<const Pod*>& operand_pods);
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
[[nodiscard]] std::string_view foreign_holder(const Node& node, const PluginInstallation& set);
// Such an actor, or a person by gpusharing.dev/hold, relies on a cordon of ours: it stays (S7).
[[nodiscard]] bool cordon_is_relied_on(const Node& node, const PluginInstallation& set);
}  // namespace gso
