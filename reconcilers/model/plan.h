// What a planner returns: actions as values, findings, running timers, and the time of the next look. Tests, dry run,
// logs and the executor share this one form.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "k8sclient/value/object.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/model/timer.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

struct ObjectRef {
  std::string api_version;  // "v1", "apps/v1", "gpusharing.dev/v1alpha1"
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;  // Can be empty.
  [[nodiscard]] ObjectKey key() const { return {ns, name}; }
  friend auto operator<=>(const ObjectRef&, const ObjectRef&) = default;
};

// One merge patch of a Node's metadata (and spec.unschedulable). All node planners' contributions to one node are
// merged into one patch by the executor: one writer per Node.
struct PatchNode {
  std::string name;
  std::map<std::string, std::string> set = {};  // labels
  std::set<std::string> remove = {};            // labels
  std::map<std::string, std::string> set_annotations = {};
  std::set<std::string> remove_annotations = {};
  std::optional<bool> unschedulable = {};
  std::optional<std::string> resource_version = {};  // Required when `unschedulable` is set (S7).
  friend bool operator==(const PatchNode&, const PatchNode&) = default;
};

// Always with a uid precondition.
struct DeletePod {
  k8s::ObjectKey pod;
  std::string uid;
  std::optional<std::string> resource_version;
  std::optional<std::int64_t> grace_period_seconds = {};
  friend bool operator==(const DeletePod&, const DeletePod&) = default;
};

struct EvictPod {
  k8s::ObjectKey pod;
  std::string uid;
  friend bool operator==(const EvictPod&, const EvictPod&) = default;
};

// Data keys of a ConfigMap, by server-side apply with the operator's field manager. The operator's other keys stay as
// they are.
struct WriteConfigMap {
  k8s::ObjectKey config_map;
  std::map<std::string, std::string> set;
  std::set<std::string> remove;
  friend bool operator==(const WriteConfigMap&, const WriteConfigMap&) = default;
};

// Data keys of a ConfigMap that belongs to others, by merge patch: only these keys are written, and no other is read or
// owned.
struct PatchConfigMap {
  k8s::ObjectKey config_map;
  std::map<std::string, std::string> set;
  std::set<std::string> remove;
  friend bool operator==(const PatchConfigMap&, const PatchConfigMap&) = default;
};

// Creates a SharingPolicy or SharingRollout; an existing object of that name is success (content determines the name).
struct CreateObject {
  ObjectRef object;
  std::string json;  // The whole object.
  friend bool operator==(const CreateObject&, const CreateObject&) = default;
};

// Replaces the status of a SharingPolicy or SharingRollout (merge patch of the status subresource).
struct PatchStatus {
  ObjectRef object;
  std::string status_json;
  friend bool operator==(const PatchStatus&, const PatchStatus&) = default;
};

// Deletes a SharingRollout: one beyond revisionHistoryLimit, or of an attempt that is over.
struct DeleteObject {
  ObjectRef object;                   // uid required.
  std::string resource_version = {};  // Not deleted if it has changed since; empty: whatever it says by now.
  friend bool operator==(const DeleteObject&, const DeleteObject&) = default;
};

// Replaces metadata.finalizers of a SharingPolicy.
struct PatchFinalizers {
  ObjectRef object;
  std::vector<std::string> finalizers;
  std::string resource_version;  // Required: the list is replaced as a whole.
  friend bool operator==(const PatchFinalizers&, const PatchFinalizers&) = default;
};

// Annotates a DaemonSet's pod template, so that its controller replaces every pod at its own pace.
struct RestartDaemonSet {
  k8s::ObjectKey daemonset;
  std::string resource_version;  // Required.
  std::string restarted_for;     // The rollout; written once for each rollout.
  friend bool operator==(const RestartDaemonSet&, const RestartDaemonSet&) = default;
};

// An events.k8s.io/v1 Event. Equal (regarding, why) within a while is sent once by the recorder.
struct RecordEvent {
  ObjectRef regarding;
  bool warning = false;
  Reason why;        // Its message is the Event's note: at most 1 KiB, cut by the recorder.
  std::string verb;  // CamelCase, the Event's action: what the operator did or refused.
  friend bool operator==(const RecordEvent&, const RecordEvent&) = default;
};

using Action = std::variant<PatchNode, DeletePod, EvictPod, WriteConfigMap, PatchConfigMap, CreateObject, PatchStatus,
                            DeleteObject, PatchFinalizers, RestartDaemonSet, RecordEvent>;

// The object that it writes, or that an Event is about. With a uid where the action has one.
[[nodiscard]] ObjectRef target_of(const Action& action);

struct PlannedAction {
  std::string reconciler;  // "sharing.rollout", "node.labels", …
  Action action;
  Reason why;
  // Takes a node out of service or ends a pod: the executor checks the lease, the view's freshness and the gates (hold,
  // pause) once more just before sending, and executes it only after every earlier action of this plan for the same
  // node has succeeded.
  bool disruptive = false;
  std::string node;  // The node this action concerns, or empty.
  friend bool operator==(const PlannedAction&, const PlannedAction&) = default;
};

struct Finding {
  Severity severity = Severity::warning;
  ObjectRef object;
  Reason why;
  std::string key = {};  // Of the ConfigMap that it is about; empty: it is about all keys, or another object.
  // The check that it comes from, where that is reported as a finding of its own; empty: it is not, or not known.
  std::string_view cause = {};
  std::string brief = {};  // The message where its cause is reported as well; empty: the same.
  friend auto operator<=>(const Finding&, const Finding&) = default;
};

struct Plan {
  std::vector<PlannedAction> actions;
  std::vector<Finding> findings;
  std::vector<TimerKey> timers;  // Timers that run now (timer.h).
  // False: changes of nodes were not planned, because a store has not synced. Timers that are not named might run.
  bool timers_complete = true;
  Timers timer_starts;  // Start times of timers that an operator's first look found running (timer.h).
  std::optional<k8s::Duration> requeue_after;
  // Nodes whose GPU consumers must be listed (spec.nodeName) before the next decision about them.
  std::set<std::string> consumers_wanted;
  // The runtime looks these up for the next pass.
  KaiWants kai_wanted;

  // Joins two plans; writes to one ConfigMap become one write.
  void append(Plan other);
  // Keeps the first of equal findings, and the order.
  void drop_repeated_findings();
};

// Stable printers. print() is one line for logs and tests; to_json() is the `plan -o json` form (design: command
// line).
[[nodiscard]] std::string print(const PlannedAction& action);
[[nodiscard]] std::string print(const Finding& finding);
[[nodiscard]] nlohmann::ordered_json to_json(const PlannedAction& action);
[[nodiscard]] nlohmann::ordered_json to_json(const Finding& finding);

// --- What a write of the operator to a Node makes of it, before the stores show the result.

// The Node as the patch leaves it. Not what the API server adds by itself, such as the taint of a cordon.
[[nodiscard]] Node patched(Node node, const PatchNode& patch);
// The Node is as the patch leaves it.
[[nodiscard]] bool shows(const Node& node, const PatchNode& patch);

// The patch begins a change of the Node or the replacement of its standalone MPS daemon, or writes how far that is.
[[nodiscard]] bool writes_change(const PatchNode& patch);

// The Node with the change that an unanswered patch writes (World::nodes_being_written). From the moment at which that
// patch was handed over the node counts as changing, since the API server can execute it at any time: as a canary that
// has begun, as one that waits for its workload, and so on. A patch that ends a change counts only once the stores show
// it. nullopt: there is no such patch, or the store shows it.
[[nodiscard]] std::optional<Node> with_change_being_written(const World& world, const Node& stored);

// --- What a write of the operator to a ConfigMap makes of it, before the stores show the result.

// The ConfigMap as the write leaves it. `present`: what is stored; null: the write creates it. Without a
// resourceVersion, which only the API server gives.
[[nodiscard]] ConfigMap written(const ConfigMap* present, const WriteConfigMap& write);

}  // namespace gso
