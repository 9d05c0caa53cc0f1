// The assessment of one node: what it should run, what it has loaded and how that is known, whether it shows its
// profile, and which steps the difference needs. A pure function of the objects; nothing here depends on time.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/checks/check.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/replace_order.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

struct FleetRecord;  // reconcilers/cluster/record.h
struct ReadingTime;  // reconcilers/cluster/record.h

// The phases of a node, by the names that people are shown everywhere.
enum class Phase : std::uint8_t {
  unmanaged,   // No plugin installation with profiles serves the node.
  unrecorded,  // No baseline yet.
  up_to_date,  // Runs its target.
  pending,     // Needs a change and waits for the rollout.
  draining,    // In a change; no pod of it has been deleted yet.
  restarting,  // In a change; pods remain to be replaced, or their successors are not Ready yet.
  verifying,   // The operator checks that it shows its profile, after a change or after it loaded one by itself.
  following_daemonset,  // Its DaemonSet controller replaces the pods (RollingUpdate).
  failed,               // Its last change did not verify.
  blocked,              // Cannot be changed now, for a reason.
  held,                 // Another actor or a person holds it, or its change cannot be read.
};
inline constexpr std::size_t kPhases = 11;

// Unmanaged, Unrecorded, UpToDate, Pending, …
[[nodiscard]] std::string_view to_string(Phase phase);

// How the loaded revision is known.
enum class Proof : std::uint8_t {
  none,
  annotation,
  baseline,
  pods,  // Its pods were created while the key had that text, after the node was recorded with the present one.
};

struct Loaded {
  Interned revision;  // Empty: unknown.
  Interned profile;   // "<configmap>/<key>"
  Proof proof = Proof::none;
};

// Pods of one node by component, newest first; terminating ones included.
struct NodePods {
  std::vector<const Pod*> plugin, gfd, mps;
  [[nodiscard]] const std::vector<const Pod*>& of(Component component) const {
    return component == Component::gfd ? gfd : component == Component::mps ? mps : plugin;
  }
  [[nodiscard]] std::vector<const Pod*>& of(Component component) {
    return component == Component::gfd ? gfd : component == Component::mps ? mps : plugin;
  }
};

// Who writes the node's sharing labels.
enum class Labeller : std::uint8_t {
  us,
  gfd,          // A GFD DaemonSet of the node's installation: labels are verified, not written.
  foreign_gfd,  // A GFD DaemonSet that belongs to no plugin installation of the node: its labels are not compared.
};

// What the baseline records about the node: whether it showed the profile that its pods must have loaded.
enum class AtInstall : std::uint8_t { shown, unproven, drifted };

// The node has left the policy that wrote its label.
enum class LeftPolicy : std::uint8_t {
  no,
  revert,   // NodeAssessment::label is the value before the policy.
  release,  // The label stays; the operator no longer owns it.
};

// Whether pods can get the GPUs of a node, by what its Node shows now: the last value that is true of it.
enum class Availability : std::uint8_t {
  available,
  cordoned,   // By any client. What runs there keeps its GPUs.
  no_gpus,    // Ready, and nothing is allocatable although GPUs are expected.
  not_ready,  // What the status shows proves nothing.
};

struct NodeAssessment {
  // One object per node is in memory: keep it small, with the flags together.
  Phase phase = Phase::unmanaged;  // Without regard to holders; people see phase_of() (node_phase.h).
  Transition transition =
      Transition::none;  // For Pending (and for Verifying if verification fails): which pods the change replaces,
  ChangeCause cause = ChangeCause::none;  // and the cause of the change.
  EffectiveKey::Source source = EffectiveKey::Source::error;
  Labeller labeller = Labeller::us;
  AtInstall at_install = AtInstall::shown;
  LeftPolicy left_policy = LeftPolicy::no;
  Availability availability = Availability::available;
  bool ready = false;
  bool fresh_pods = false;  // Every pod that loads the profile did so after the content's last change.
  bool pods_ready = false;  // The newest pods of plugin, GFD and MPS (if needed) are Ready and not crash-looping.
  bool shrinks = false;     // The target advertises less of some resource than the node does now.
  bool wrong_key =
      false;  // The policy names a key that the ConfigMap lacks: the node is blocked at its present profile.
  bool write_blocked = false;  // The reason concerns this node only: it is written to the node, once.

  // NotReady, cordoned, or without a GPU to give: it counts against every budget.
  [[nodiscard]] bool is_unavailable() const { return availability != Availability::available; }
  // A change of the operator is in progress and has not failed.
  [[nodiscard]] bool in_change() const {
    return change && !change->failed &&
           (phase == Phase::draining || phase == Phase::restarting || phase == Phase::verifying);
  }
  // It runs a profile that it loaded by itself (reboot, label, template, new node): the operator verifies and records
  // it, and restarts nothing.
  [[nodiscard]] bool loads_by_itself() const { return phase == Phase::verifying && change == nullptr; }
  // Cannot be changed now, because of `obstacle`.
  [[nodiscard]] bool is_blocked() const { return phase == Phase::blocked || phase == Phase::held; }
  // The change in progress cannot be read.
  [[nodiscard]] bool is_unreadable() const;
  // A person holds it (gpusharing.dev/hold).
  [[nodiscard]] bool is_held() const;
  // Shows its target, and its pods serve.
  [[nodiscard]] bool matches() const { return pods_ready && verified.ok; }
  // former_label is taken back now: what is to select the profile instead is written first.
  [[nodiscard]] bool takes_label_back() const { return !former_label.empty() && !label && change == nullptr; }
  [[nodiscard]] bool has_labeller() const { return labeller != Labeller::us; }
  // A person's label names a key that the ConfigMap never had; the ConfigMap is not at fault.
  [[nodiscard]] bool has_unknown_label() const {
    return blocked_by != nullptr && blocked_by->code == "KeyNotFound" && write_blocked;
  }
  // How many devices are missing compared with the most the machine has had; 0 if unknown.
  [[nodiscard]] std::int64_t missing_devices() const {
    return counted_devices > 0 ? std::max<std::int64_t>(0, had_devices - counted_devices) : 0;
  }

  std::size_t installation = 0;  // Index into the installations.
  Interned policy;               // The SharingPolicy that governs the node.
  Interned key;                  // Target profile's key.
  Interned target;               // Its revision; empty if no key resolves.
  Interned profile_ref;          // "<configmap>/<key>" of the target.
  Interned product;
  // "maintenance=true:NoSchedule, which DaemonSet a/b does not tolerate": a deleted pod is not created again there.
  Interned taint;
  Interned other_plugins;  // DaemonSets whose device plugin also runs here: "a/b, c/d". Empty: none.
  // DaemonSets of the installations that claim it, if there are several and none is recorded for it: "a/b, c/d".
  Interned claimants;
  [[nodiscard]] bool is_contested() const { return !claimants.empty(); }
  Interned label_by;  // The policy that wrote the node's label; empty: the operator did not write it.
  // A label that a policy selected the profile with, and that no pod of the node reads any more, because NODE_LABEL was
  // renamed; empty: none.
  Interned former_label;
  ProfilePtr profile;                                  // Target; null if no key resolves.
  std::shared_ptr<const NodeExpectation> expectation;  // Of the target; null without a target.
  Loaded loaded;
  Verification verified;  // Against the target.
  // Which devices are missing of the profile that it has loaded, be it held or blocked or waiting for a change, or
  // draining. Empty: none, or unknown, as of a node in a touched change, that loads a profile now, or that is not
  // Ready.
  Interned missing_of_loaded;
  // It waits for its change to an edited text, and shows that text already, because something other than the operator
  // made its pods read it: how it differs from what it has loaded. Empty: it does not.
  Interned early_text;
  std::int64_t recorded_gpus = 0;    // The count in the fleet's record; 0: none.
  std::int64_t measured_gpus = 0;    // Devices computed from the served capacity; 0 if the capacity proves nothing.
  std::int64_t counted_devices = 0;  // GPUs according to GFD's label; 0 if the label proves nothing.
  std::int64_t had_devices = 0;      // The most devices that the machine has had before; 0: unknown.
  RareList<Interned> losers;         // Policies that also select the node and do not govern it.
  // Policies that might govern the node once the labels of its GFD are back (policies_in_doubt()).
  RareList<Interned> awaited_by;
  // Why no pod is replaced to make the node show what it runs: its labels are missing. Empty: they are there, or the
  // node is repaired without them.
  Interned labels_missing;
  // What would block a change of a node that runs its target and does not show it, or that shows what it has loaded by
  // itself, so that no pod of it is replaced (S5). Empty: nothing would, or it shows the target that it runs.
  Interned reload_obstacle;
  // The value of nvidia.com/device-plugin.config to write; an empty text removes the label.
  std::optional<Interned> label;
  std::shared_ptr<const NodeChange> change;  // Null: no change of the node is in progress.
  // Who holds the node: Held (a person), DriverUpgrade, MIGChange or Quarantined. Empty: nobody.
  std::string_view holder;
  // Why the node is blocked, or why its change cannot continue; without a code: neither. Of an unrecorded node, the
  // message alone: what is wrong with the key that a policy wants.
  Reason obstacle;
  const Check* blocked_by = nullptr;  // The check that blocks it; null: a holder of the node does.
  // Why the node would lose its GPUs with the announced ClusterPolicy, or with the new templates once its pods restart.
  Interned would_break;
  // The check that says so as well: kConfigMapMissing, of the announced ConfigMap, or kMpsByLabelUnsupported, of the
  // node's own label; empty: none does.
  std::string_view would_break_by;
  // What the node will run once its DaemonSets have what their ClusterPolicy announces; null: nothing is announced, it
  // keeps its key, or it would break.
  struct Announced {
    Interned profile_ref;
    std::string revision;
    std::shared_ptr<const NodeExpectation> expectation;
  };
  std::shared_ptr<const Announced> announced;
  // It will serve less of a resource than now.
  bool would_shrink = false;
  // What preflight finds; null if the plugin runs without profiles.
  PreflightCache::Answer setup;
};

struct AssessContext {
  const World& world;
  const PlannerSettings& settings;
  const std::vector<PluginInstallation>& installations;
  const std::vector<const SharingPolicy*>& policies;  // In order of precedence; the built-in one last.
  const FleetRecord* record = nullptr;                // Null: no baseline yet.
  ProfileCache& profiles;
  ExpectationCache& expectations;
  const std::vector<Operand>& strays;      // Discovery::strays
  const std::vector<Operand>& standalone;  // Discovery::standalone
  PreflightCache& setups;
};

// `use`: who else uses the node's GPUs. nullopt: no device plugin selects the node, it has no GPUs, or nos partitions
// them and no change of the operator must be finished there (cluster/other_systems.h).
[[nodiscard]] std::optional<NodeAssessment> assess_node(const AssessContext& context, const Node& node,
                                                        const std::vector<const Pod*>& operand_pods,
                                                        const ForeignUse& use);

// Functions that the planners share (assess_parts.cc). Runs its target with as many devices as the hardware serves;
// missing devices do not stop a rollout.
[[nodiscard]] bool is_settled(const NodeAssessment& assessment);
// Unavailable, in a change, or possibly in one that cannot be read: it holds a slot of every budget (S1).
[[nodiscard]] bool is_busy(const NodeAssessment& assessment);
// Serves no GPU although some are expected, or its last change failed: a change needs no free slot to repair it.
[[nodiscard]] bool is_out_of_service(const NodeAssessment& assessment);
// Serves, and somebody else has cordoned it: a change makes nothing newly unavailable, and is no repair.
[[nodiscard]] bool serves_cordoned(const NodeAssessment& assessment);
// Serves, cordoned or not, so that its change can prove a text, or fail on it (S12).
[[nodiscard]] bool can_prove(const NodeAssessment& assessment);
// A change of it would be a repair: it serves no GPU, or it failed on another target and was not sound before that
// either. It holds a slot already, and proves nothing (S12).
[[nodiscard]] bool is_repair(const NodeAssessment& assessment);
// Is up to date according to its record and shows something else. Missing devices are no drift.
[[nodiscard]] bool drifts(const NodeAssessment& assessment);
// Why nothing starts on a node now and its drift is not repaired: its holder, or NodesNotReady; empty: neither.
[[nodiscard]] std::string_view excuse_of(const NodeAssessment& assessment);
// Devices are missing, and everything else matches the target.
[[nodiscard]] bool has_missing_devices(const NodeAssessment& assessment);
// For people; `verified` has missing devices, or else the node's count is too low.
[[nodiscard]] std::string missing_devices_text(const NodeAssessment& assessment, const Verification& verified);
// How a node that does not match differs from its expectation: never empty.
[[nodiscard]] std::string shown_difference(const NodeAssessment& assessment);
[[nodiscard]] NodePods sort_pods(const PluginInstallation& installation, const std::vector<const Pod*>& operand_pods);
[[nodiscard]] bool is_crash_looping(const Pod& pod);
// Running, Ready, not being deleted, no container in back-off.
[[nodiscard]] bool is_serving(const Pod& pod);
// True if the pod's creation time is later than that moment. Kubernetes' times are whole seconds, so equal times are
// not.
[[nodiscard]] bool created_after(const Pod& pod, WallTime moment);
// PlannerSettings::clock_difference: how much later pods must have been created that have certainly been created after
// a moment, whichever API servers have noted the two times.
[[nodiscard]] WallTime::duration clock_difference(const PlannerSettings& settings);
// True if the pod was created later than now, by more than clocks differ: the API server's clock was set back since,
// and the creation time of the pod does not prove which text it has read.
[[nodiscard]] bool is_from_the_future(const Pod& pod, WallTime now);
// One of the newest pods of its components is.
[[nodiscard]] bool is_from_the_future(const NodePods& pods, WallTime now);
// True if the pod certainly read its profile after that moment: the pod was created later, or its main container was
// restarted (crash, reboot of the node) so much later that the kubelet had projected the new content.
[[nodiscard]] bool loaded_after(const Pod& pod, WallTime moment, Duration projection);
// When its containers have read what their kubelet had projected by then: the start of any of them can have made the
// pod read its text, because a sidecar signals the plugin. Empty: it does not serve yet.
[[nodiscard]] std::vector<ReadingTime> reading_times(const Pod& pod, Duration projection);
// The pod was created from an older template than its DaemonSet's newest one (updateStrategy OnDelete, or the DaemonSet
// is rolling): its default key, environment and image come from the older template. In assess_loaded.cc.
[[nodiscard]] bool is_old_template(const Operand& operand, const Pod& pod);
// Under OnDelete: one of these pods that the change has created does not have the newest template. Pods that the change
// lists and has not deleted do not count: it began, and failed, beside them. In assess_loaded.cc.
using Loaders = std::vector<std::pair<const Operand*, const Pod*>>;
[[nodiscard]] bool created_from_an_older_template(const NodeChange& change, const Loaders& loaders);
// An MPS daemon that stays although the text of its node is unknown: nothing shows the migStrategy by which a
// daemon has built its devices, but what it runs with can be known otherwise.
//
// `by_sight`: from what the node shows (transition_from() of `shown`). If the daemon would be the same, it is not
// replaced. `daemon`: the profile that it certainly runs; null: unknown.
[[nodiscard]] Transition keep_daemon(Transition by_sight, const Shape& shown, const ProfilePtr& daemon,
                                     const Profile& after);

// The profile of the daemon of a node in a change: a change that keeps it was begun for a text with the daemon's
// settings. `begun_for`: the profile of change.to; null: unknown. Null: the change replaces the daemon.
[[nodiscard]] ProfilePtr of_kept_daemon(const NodeChange& change, const ProfilePtr& begun_for);
// Higher priority first, then older, then by name; the built-in `default` if the cluster has none. `held`: policies
// that govern although they have no object (cluster/policy_match.h).
[[nodiscard]] std::vector<const SharingPolicy*> policies_in_order(const World& world, const SharingPolicy& built_in,
                                                                  const std::map<std::string, SharingPolicy>& held);
// Another actor holds the node: a driver upgrade or MIG change in progress, a remediation system, or the replacement of
// the node's standalone MPS daemon. Empty: nobody.
[[nodiscard]] std::string_view foreign_holder(const Node& node, const PluginInstallation& installation);
// Who holds the node: Held (a person), else the same. Empty: nobody.
[[nodiscard]] std::string_view holder_of(const Node& node, const PluginInstallation& installation);
// What the holder does, or which annotation or label a person has set, for people. `holder`: the answer of one of the
// two for the node, or NodeAssessment::holder; not empty.
[[nodiscard]] std::string describe_holder(std::string_view holder, const Node& node);
}  // namespace gso
