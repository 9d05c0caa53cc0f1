// Everything that a planner can read: the stores, the start times of timers, settings, and the present time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/watch/store.h"
#include "reconcilers/model/kai_world.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/model/rollout_spec.h"
#include "reconcilers/model/timer.h"

namespace gso {

// An MPS control daemon that ended by SIGKILL while its pod was deleted.
struct KilledDaemon {
  std::string pod;
  WallTime deleted_at{};  // The pod's deletionTimestamp: the deadline for its end.
  // Another daemon runs there now, which sets the compute mode itself: nothing is wrong any more, and people still hear
  // of it once, however soon that daemon came.
  bool replaced = false;
};

// A view whose watch does not deliver: what it shows can be outdated, so nothing is started or deleted by it.
struct StaleView {
  std::string view;  // "nodes", "configmaps of gpu-operator (mps-config)".
  k8s::Gvr resource;
  std::string ns;        // Empty: of the whole cluster.
  WallTime since{};      // Of its last event or bookmark.
  bool reported = true;  // False in the first minutes: most failures of a watch are over by then.
};

struct SharingPolicy;   // reconcilers/model/policy.h
struct SharingRollout;  // reconcilers/model/policy.h
struct PatchNode;       // reconcilers/model/plan.h
using NodesBeingWritten = std::map<std::string, std::shared_ptr<const PatchNode>, std::less<>>;

// The projected cluster. Written by watchers (or by a test, or by `plan` from manifests).
struct World {
  k8s::Store<Node> nodes;
  k8s::Store<DaemonSet> daemonsets;  // Of `operand_namespaces`, in which they govern nodes.
  // DaemonSets elsewhere: they govern, protect and block nothing. The operator keeps a bounded number of those that
  // look like an operand's, without their templates; manifests and commands have all of them as they are.
  k8s::Store<DaemonSet> foreign_daemonsets;
  std::size_t foreign_daemonsets_beyond = 0;  // How many more the operator has seen.
  // Where DaemonSets are believed (cluster/discovery.h).
  std::set<std::string> operand_namespaces;
  // Nothing names these namespaces: all in which an operand's DaemonSet was found count.
  bool operand_namespaces_chosen = false;
  k8s::Store<ConfigMap> configmaps;  // Those that discovered DaemonSets mount, plus the operator's state ConfigMap.
  k8s::Store<Pod> operand_pods;      // Pods of discovered DaemonSets, by their selectors.
  k8s::Store<ControllerRevision> revisions;  // In the namespaces of discovered DaemonSets.
  k8s::Store<ClusterPolicy> clusterpolicies;
  k8s::Store<GpuCluster> gpu_clusters;
  k8s::Store<DeviceClass> device_classes;
  k8s::Store<ResourceSlice> resource_slices;  // Of all drivers.
  k8s::Store<SharingPolicy> policies;
  k8s::Store<SharingRollout> rollouts;
  KaiWorld kai;
  PartitioningWorld partitioning;
  std::map<std::string, KilledDaemon> killed_daemons;  // By node; cluster/cluster_pods.h keeps it.
  // ClusterPolicies cannot be read (403): their store is not reliable, and what the GPU Operator is about to do is
  // unknown. Everything continues except what depends on that knowledge; see
  // PluginInstallation::announcement_unknown.
  bool clusterpolicies_forbidden = false;
  bool policies_served =
      false;  // The operator's CRDs are installed; otherwise only the state ConfigMap has the record.
  // Namespaces where a watch that wanted_scopes() asks for has not synced yet. Nothing is planned about operands
  // there, and nothing at all while the operator's own namespace is among them.
  std::set<std::string> unsynced_namespaces;
  // The namespaces among them for which the server forbids such a watch (403): they stay unsynced until a person grants
  // the permission.
  std::set<std::string> refused_namespaces;
  // Views that are not current (k8s::ViewState). They are complete and a few minutes old at most, unless their
  // namespace is in unsynced_namespaces or their resource counts as not synced. Commands leave it empty.
  std::vector<StaleView> stale_views;
  // For commands: what could not be listed in such a namespace, as `kubectl auth can-i list` names it. Watches leave it
  // empty.
  std::map<std::string, std::set<std::string>> unread_resources;
  // ConfigMaps whose data_changed is unknown -> since when their data has been seen unchanged (cluster/config_maps.h
  // keeps it).
  std::map<ObjectKey, WallTime> data_seen_since;
  // Nodes with writes of the operator, to the Node or to its operand pods, that were handed over and whose result the
  // stores do not show yet -> the patch that writes a change, if that is among them; else null. What the stores show of
  // such a node can be the state before the write. So plan_all() plans nothing for it, and from the moment at which the
  // patch is handed over it counts as changing (plan.h) and holds a slot of every budget (S1); a change that ends
  // keeps its slot until the stores show it. A write whose answer was lost keeps its node here until a live read has
  // shown the result.
  NodesBeingWritten nodes_being_written;
  // Kind -> fields of its status that the API server has dropped when the operator wrote them, because the CRD is of an
  // earlier release: paths as those of json::flatten(). Commands leave it empty.
  std::map<std::string, std::set<std::string>> dropped_status_fields;
};

// The time since boot for who looks once at given manifests, where only the wall clock's time is given.
[[nodiscard]] constexpr MonoTime one_look(WallTime now) {
  return {now.time_since_epoch()};
}

// GPU consumers of one node, listed when a plan needs them.
struct NodeConsumers {
  MonoTime listed_at{};
  std::vector<Pod> pods;
  // Why these are not all pods that might use the node's GPUs, for people: some cannot be read, or there are more than
  // can be kept. The node counts as in use. Empty: they are all.
  std::string unknown;
  // The last list failed, and `unknown` says why: the rest is as listed before. Lists go on.
  bool failed = false;
  // Jobs with a member among `pods` (Job::id) -> the nodes where their members run. Only under `workloads: Evict`.
  std::map<std::string, std::set<std::string>> jobs;
  // By pod uid: how its last eviction was refused: by a PodDisruptionBudget, or because the operator is not allowed to
  // evict (403).
  std::map<std::string, std::string> refused;
  std::map<std::string, std::string> forbidden;
  // Pods that the kubelet rejected while no device plugin was registered, in the namespaces where the operator is
  // allowed to remove them.
  std::vector<Pod> rejected;
};

// Flags that planners obey: a part of those of the command line (controller/config/options.h).
struct PlannerSettings {
  std::string operator_namespace = "gpu-sharing-operator";
  std::string state_config_map = "gpu-sharing-operator-state";
  IntOrPercent cluster_max_unavailable{10, true};
  Duration settle = std::chrono::seconds(10);
  // How long a restarted node must show its new state: longer than the kubelet takes to publish a node's status.
  Duration status_lag{0};
  // How long a kubelet takes at most to show a new key of a ConfigMap to running pods: its sync period of one minute,
  // with its jitter of a half, and a margin.
  Duration projection = std::chrono::seconds(100);
  // By how much the clocks of two API servers can differ, and so the time of an edit and the creation times of pods. In
  // doubt a pod has not read an edit.
  Duration clock_difference = std::chrono::seconds(3);
  // How long an unused key of an inline profile is kept.
  Duration keep_unused_keys = std::chrono::hours(1);
  std::int64_t revision_history_limit = 10;
  enum class LabelMode { automatic, enforce, verify } label_mode = LabelMode::automatic;
  bool adopt_drift = false;  // `rollout start --adopt`
  // Namespaces whose DaemonSets are believed, beside those that cluster/discovery.h finds.
  std::set<std::string> operand_namespaces;
  // Namespaces where pods left in UnexpectedAdmissionError are removed from changed nodes; none by default.
  std::set<std::string> remove_rejected_pods;
  // What the SharingPolicy `default` starts with, and what applies without the CRDs.
  PolicyMode mode = PolicyMode::enforce;
  RolloutSpec rollout;
  // Upper limit over the mode of every policy. Under `observe` no Node or Pod is written except for sharing labels, and
  // the record is kept in memory.
  PolicyMode rollouts = PolicyMode::enforce;
  [[nodiscard]] PolicyMode mode_of(const SharingPolicy& policy) const;
  // New MPS pods of the device plugin can be signalled by their sidecar: the chart's fixes.mpsSignal corrects them.
  bool mps_signal_fixed = false;
  KaiSettings kai;
  PartitioningSettings partitioning;
  // The operator's options that are not the defaults, as its state ConfigMap says them to the commands of people
  // (controller/config/options.h); empty: there are none. nullopt: nothing is said, because this is no
  // operator.
  std::optional<std::string> options_text = std::nullopt;
};

// Machines that have just joined and do not show their profile yet, when the baseline is taken.
enum class NewMachines : std::uint8_t {
  join,    // Treated like nodes that join later.
  record,  // Recorded like the others, because no operator runs that could do so.
};

// For passes that look once: no timer runs, and no node's consumers were listed.
inline const Timers kNoTimers;
inline const std::map<std::string, NodeConsumers> kNobodyListed;

struct Snapshot {
  const World& world;
  WallTime now;
  const Timers& timers;  // Since when each timer that the previous pass named has been running.
  const std::map<std::string, NodeConsumers>& consumers;
  const PlannerSettings& settings;
  // By node: which write of its change the operator is not allowed to send (403), and the missing permission. Null:
  // none known.
  const std::map<std::string, std::string>* refused_writes = nullptr;
  // The first look of an operator, or of a new leader: stored time stamps count (timer.h).
  bool first_look = false;
  NewMachines new_machines = NewMachines::join;
  // How many writes the API server has answered within the last second; a plan may have as many actions.
  std::size_t answered_lately = 0;
  // The same moment as `now`, for the ages of what this process has read: no step of the wall clock changes them.
  MonoTime mono = one_look(now);
  // Nodes whose last patch was refused, or whose answer was lost, a few minutes ago at most: they start after the
  // others, which would wait for the slot of the same node again and again.
  std::set<std::string> failed_patches{};
};

}  // namespace gso
