// Problems of GPU sharing in a cluster, with or without the operator installed: for `audit`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/explain/audit_problems.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Audit {
  std::int64_t nodes = 0;                        // Nodes with GPUs or a device plugin.
  std::map<std::string, std::int64_t> plugins;   // Release -> nodes.
  std::map<std::string, std::int64_t> profiles;  // "<configmap>/<key>" -> nodes; "" without one.
  GpuCount gpus;                                 // Of all nodes; at least so many where some are uncounted.
  std::vector<std::string> uncounted;            // Nodes whose number of GPUs is unknown; each counts as one GPU.
  std::vector<Finding> findings;                 // Errors first, then by object.
  std::vector<AuditProblem> problems;            // The same, merged and ranked: errors first, then by GPUs lost.
  [[nodiscard]] std::int64_t count(Severity severity) const;    // Of problems.
  [[nodiscard]] std::int64_t objects(Severity severity) const;  // Of findings: each object of a problem is one.
};

// The findings of every planner, with drift as an error, and also: other tools that restart the plugin's pods or give
// out its GPUs (neighbours.h), nodes whose pods are older than their target profile, nodes that no plugin serves, nodes
// that are Failed, NotReady or without an allocatable GPU, refused evictions, rollouts that nodes wait for and that
// start none (audit_rollouts.h), and invalid profiles that no node uses. If the fleet has no record, one is assumed
// (call assume_baseline() before). `index` is refreshed. Nodes whose GPUs cannot be used because of a change of the
// operator are named too: for information while one runs (`operator_runs`) and may change nodes.
[[nodiscard]] Audit audit(const Snapshot& snapshot, FleetIndex& index, bool operator_runs = true);

}  // namespace gso
