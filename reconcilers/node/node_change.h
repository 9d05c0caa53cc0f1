// The change that a node is going through: one annotation, gpusharing.dev/change, written when the change begins and
// removed when it ends. Everything that is needed to go on after a crash or with another leader is in it.
//
// The annotation has a version. One that cannot be read, or was written by a newer release, holds the node until a
// person removes it: doubt never counts as done (S11).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/node/replace_order.h"

namespace gso {

// What made the change necessary.
enum class ChangeCause : std::uint8_t {
  none,
  edited,     // The key's text changed in place: only new pods load it.
  moved,      // Another key by label: plugin and GFD reload by themselves.
  relabel,    // A policy wants another label: ours to write.
  on_delete,  // The template changed under updateStrategy OnDelete: pods go when we delete them.
  joined,     // A node without a record.
};
[[nodiscard]] std::string_view to_string(ChangeCause cause);

struct NodeChange {
  static constexpr int kVersion = 1;

  // Who governs the node and in which group it counts for as long as the change lasts, whatever becomes of its labels.
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
  // Uids of the pods that must go, by component; an empty set: a new pod comes.
  std::map<Component, std::set<std::string>> pods;
  bool served = false;              // The node was available when the change began.
  bool touched = false;             // A listed pod had gone when the list was written anew.
  bool cordoned = false;            // By us.
  std::vector<std::string> guards;  // Autoscalers whose annotations are ours: "cluster-autoscaler", "karpenter".
  struct Failure {
    std::string why;
    std::string retry;  // gpusharing.dev/retry of the policy when it failed.
    friend bool operator==(const Failure&, const Failure&) = default;
  };
  std::optional<Failure> failed;  // It did not verify; not tried again until its target or the policy's retry changes.
  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};

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
// The same for those who only want to know of a readable one.
[[nodiscard]] std::shared_ptr<const NodeChange> change_of(const Node& node);

// The node is in a change, and its cordon is ours to lift.
[[nodiscard]] bool is_cordoned_by_us(const Node& node);

// A change that was backed out and is not to begin again before a moment: gpusharing.dev/deferred.
struct Deferral {
  static constexpr int kVersion = 1;
  enum class By : std::uint8_t { idle_timeout, person };
  std::string to;         // Revision that is put off; void for any other.
  k8s::WallTime until{};  // Idle nodes of its group go first in any case.
  By by = By::idle_timeout;
  friend bool operator==(const Deferral&, const Deferral&) = default;
};
[[nodiscard]] std::string print_deferral(const Deferral& deferral);
// nullopt: none, or one that cannot be read. It only costs the node its place in the queue.
[[nodiscard]] std::optional<Deferral> deferral_of(const Node& node);

// The node carries something that a change leaves there and its end takes off: the state label or the annotation.
[[nodiscard]] bool carries_change(const Node& node);

}  // namespace gso
