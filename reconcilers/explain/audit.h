// What is wrong with GPU sharing in a cluster, whether the operator is installed there or not: for `audit`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Audit {
  std::int64_t nodes = 0;                        // With GPUs or a device plugin.
  std::map<std::string, std::int64_t> plugins;   // Release -> nodes.
  std::map<std::string, std::int64_t> profiles;  // "<configmap>/<key>" -> nodes; "" without one.
  std::vector<Finding> findings;                 // Errors first, then by object.
  [[nodiscard]] std::int64_t count(Severity severity) const;
};

// What every planner finds, and besides: nodes whose pods are older than the profile that they should run, nodes that
// no plugin serves, and profiles that nothing uses and nothing could. Without a record of the fleet one is assumed
// (assume_baseline() before). `index` is refreshed.
[[nodiscard]] Audit audit(const Snapshot& snapshot, FleetIndex& index);

}  // namespace gso
