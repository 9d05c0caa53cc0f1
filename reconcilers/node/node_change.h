// The change that a node is going through: one annotation, gpusharing.dev/change, written when the change begins and
// removed when it ends. It contains everything that another leader, or the operator after a crash, needs to continue.
//
// The annotation has a version. An annotation that cannot be read, or was written by a newer release, holds the node
// until a person removes it: an unreadable change never counts as finished (S11).
#pragma once

#include <boost/container/flat_set.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/interned.h"
#include "k8sclient/value/time.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/node/replace_order.h"

namespace gso {

// What made the change necessary.
enum class ChangeCause : std::uint8_t {
  none,
  edited,        // The key's text changed in place: only new pods load it.
  relabelled,    // The node's label names another key: plugin and GFD reload by themselves.
  policy,        // A policy wants another key, and the operator writes the label.
  new_template,  // The template changed under updateStrategy OnDelete: pods are replaced only when the operator deletes
                 // them.
  joined,        // A node without a record.
  ended,         // None any more: without its change, the draining node would be up to date. No change begins for this.
};
[[nodiscard]] std::string_view to_string(ChangeCause cause);

// Whether the operator has begun to change the node: it has deleted pods, or written the label, or may do so at any
// moment. It says so before it deletes the first pod; what others delete begins no change.
enum class Touched : std::uint8_t {
  no,
  yes,
  unknown,  // An earlier release wrote the annotation: a listed pod that is gone counts as deleted by the operator.
};

struct ChangeFailure {
  std::string why;
  std::string retry;  // gpusharing.dev/retry of the policy when it failed.
  friend bool operator==(const ChangeFailure&, const ChangeFailure&) = default;
};

using PodUids = boost::container::flat_set<k8s::Uid>;
using ListedPods = std::map<Component, PodUids>;

struct NodeChange {
  static constexpr int kVersion = 1;

  // The policy that governs the node and the group in which it counts until the change ends, even if its labels change.
  std::string policy;      // SharingPolicy.
  std::string config_map;  // "namespace/name"
  std::string key;
  std::string product;  // nvidia.com/gpu.product without -SHARED; empty: unknown.
  std::string from;     // Revision; empty: unknown.
  std::string to;       // Revision.
  Transition kind = Transition::none;
  ChangeCause cause = ChangeCause::none;
  k8s::WallTime begun{};   // First PATCH of the change.
  k8s::WallTime listed{};  // When `pods` was written last.
  // Uids of the pods to delete, by component; an empty set: a new pod is expected.
  ListedPods pods;
  bool served = false;  // The node was available when the change began.
  // Its pods had read `to` before the change began, and it did not show it: a failure counts against the revision, but
  // the node is no canary.
  bool self_loaded = false;
  Touched touched = Touched::no;
  bool cordoned = false;  // By the operator.
  // The operator has waited for the workloads of the node once for this revision: it does not wait for them again, and
  // leaves the change if some have come.
  bool had_turn = false;
  std::vector<std::string>
      guards;  // Autoscalers whose annotations the operator set: "cluster-autoscaler", "karpenter".
  std::optional<ChangeFailure>
      failed;  // It did not verify; not tried again until its target or the policy's retry changes.
  // The annotation of the failed change that this one replaced: it is written again if this one ends untouched. Empty:
  // it replaced none, or is touched.
  std::string replaced;
  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};

// The node served and showed its profile before this change: the change was for another revision, no repair.
[[nodiscard]] bool was_sound(const NodeChange& change);

// The change restarts a node into the revision that it had loaded and stopped showing: neither its text nor its label
// nor its template is new.
[[nodiscard]] bool is_drift_repair(const NodeChange& change);

// "<configmap>/<key>" of the profile that the change was begun for, as in gpusharing.dev/profile.
[[nodiscard]] std::string profile_ref_of(const NodeChange& change);

// The annotation's text; equal changes give equal text.
[[nodiscard]] std::string print_change(const NodeChange& change);
// Errors (`decode`) name the field that is missing, of the wrong type or unknown, or the newer version.
[[nodiscard]] k8s::Result<NodeChange> parse_change(std::string_view text);

// Of a node: no change, a change, or why its annotation cannot be read.
struct ChangeOnNode {
  std::shared_ptr<const NodeChange> change;  // Null: none, or unreadable.
  std::string problem;                       // Not empty: the annotation is there and cannot be read.
};
[[nodiscard]] ChangeOnNode change_on(const Node& node);
// The change alone; null if the node has none, or if it cannot be read.
[[nodiscard]] std::shared_ptr<const NodeChange> change_of(const Node& node);

// The node is in a change, or its standalone MPS daemon is replaced, and the operator must remove its cordon.
[[nodiscard]] bool is_cordoned_by_operator(const Node& node);

// A change that was backed out after the operator had waited for the node's workloads: gpusharing.dev/deferred. They
// have had their turn for this revision: the change begins again once the node is idle, and the operator does not
// cordon the node for them a second time.
struct Deferral {
  static constexpr int kVersion = 1;
  enum class By : std::uint8_t {
    idle_timeout,  // Its workloads did not end in time.
    person,        // Somebody uncordoned the node.
    stop,          // A stop or an obstacle ended the change first (C3). Not while the policy evicts them.
  };
  std::string to;         // The deferred revision; the deferral is void for any other revision.
  k8s::WallTime until{};  // If a person uncordoned the node: it does not start earlier, even if it is idle.
  By by = By::idle_timeout;
  std::string
      retry;  // gpusharing.dev/retry of the policy at the deferral; another value ends the deferral (`rollout start`).
  bool evicts = false;  // The policy evicted the workloads. If it did not, choosing Evict ends the deferral.
  friend bool operator==(const Deferral&, const Deferral&) = default;
};
[[nodiscard]] std::string print_deferral(const Deferral& deferral);
// Of a node: no deferral, a deferral, or why its annotation cannot be read. With an unreadable annotation the end of
// the deferral and its revision are unknown: the node does not start until a person removes the annotation.
struct DeferralOnNode {
  std::optional<Deferral> deferral;  // nullopt: none, or unreadable.
  std::string problem;               // Not empty: the annotation is there and cannot be read.
};
[[nodiscard]] DeferralOnNode deferral_on(const Node& node);
// The deferral alone; nullopt if the node has none, or if it cannot be read.
[[nodiscard]] std::optional<Deferral> deferral_of(const Node& node);

// --- The replacement of a node's standalone MPS daemon: one annotation, gpusharing.dev/mps-daemon-change, written
// before the node is drained and removed once the new daemon is Ready. While a node has it, the operator changes
// nothing else there (foreign_holder()).

struct MpsDaemonChange {
  static constexpr int kVersion = 1;
  std::string daemonset;  // "namespace/name"
  std::string to;         // controller-revision-hash of the template that the node should run.
  k8s::WallTime begun{};  // When it was written.
  bool cordoned = false;  // By the operator.
  // The replacement was backed out, because clients did not end in time or a person uncordoned the node: it does not
  // begin again before this time. Such a node is not in a change.
  std::optional<k8s::WallTime> deferred_until;
  // The daemon of the template `to` was not Ready in time: the node waits for a newer template, or for a retry.
  bool failed = false;
  std::string retry;  // gpusharing.dev/retry of the policy at the failure or the deferral; another value ends it.
  friend bool operator==(const MpsDaemonChange&, const MpsDaemonChange&) = default;
};
[[nodiscard]] std::string print_mps_daemon_change(const MpsDaemonChange& change);
// Errors (`decode`) name what is wrong.
[[nodiscard]] k8s::Result<MpsDaemonChange> parse_mps_daemon_change(std::string_view text);

// Of a node: in progress, deferred, or why the annotation cannot be read. At most one of the three is set.
struct MpsDaemonChangeOnNode {
  std::optional<MpsDaemonChange> change;
  std::optional<MpsDaemonChange> deferred;
  std::string problem;
};
[[nodiscard]] MpsDaemonChangeOnNode mps_daemon_change_on(const Node& node);
// For people.
[[nodiscard]] std::string describe(const MpsDaemonChangeOnNode& found);

}  // namespace gso
