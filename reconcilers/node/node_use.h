// Which pods use the GPUs of a node, as last listed, and what a change must wait for before its first pods are deleted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"

namespace gso {

// The GPU consumers of a node as last listed.
struct NodeUse {
  bool fresh = false;               // Listed at or after `needed_since`, and not long ago.
  std::vector<const Pod*> waiting;  // Pods that a disruption would break and that can leave.
  // Pods of DaemonSets and static pods. Only reported: the operator neither waits for them nor evicts them.
  std::vector<const Pod*> daemonset_owned;
  [[nodiscard]] std::int64_t requested(std::string_view resource) const;
  [[nodiscard]] std::string names() const;  // Of `waiting`.
};
// "ns/a, ns/b and 3 more"
[[nodiscard]] std::string names_of(const std::vector<const Pod*>& pods);
[[nodiscard]] NodeUse use_of(const Snapshot& snapshot, const std::string& node, WallTime needed_since);

// The condition for a node's consumers before its first pods are deleted.
enum class Drain {
  nothing,
  fits,  // The node must still serve what they request of each resource afterwards.
  idle,  // No consumer remains.
};
[[nodiscard]] Drain drain_for(const NodeAssessment& assessment, Transition transition, WorkloadMode mode);
[[nodiscard]] bool drained(Drain drain, const NodeUse& use, const NodeAssessment& assessment);

}  // namespace gso
