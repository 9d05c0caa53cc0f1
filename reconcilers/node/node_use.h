// Which pods use the GPUs of a node, as last listed, and what a change must wait for before its first pods are deleted.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"

namespace gso {

// The GPU consumers of a node as last listed.
struct NodeUse {
  bool fresh = false;               // Listed a moment ago.
  std::vector<const Pod*> waiting;  // Pods that a disruption would break and that can leave.
  // Pods of DaemonSets and static pods. Only reported: the operator neither waits for them nor evicts them.
  std::vector<const Pod*> daemonset_owned;
  [[nodiscard]] std::int64_t requested(std::string_view resource) const;
  [[nodiscard]] std::string names() const;  // Of `waiting`.
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

}  // namespace gso
