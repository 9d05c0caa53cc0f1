// The GPU clients of a node whose standalone MPS daemon is replaced, under `workloads: Evict`: which of them are
// evicted is decided as for changes of profiles (rollout/evictions.h).
#pragma once

#include <string>
#include <vector>

#include "reconcilers/standalone/daemon_nodes.h"

namespace gso {

// `nodes`: those that could change together with it, because pods of one job run on them.
void evict_clients(Pass& pass, const DaemonNode& node, const std::vector<DaemonNode>& nodes, const NodeUse& use);
// Which clients the operator does not evict, or was not allowed to, and why: the end of a sentence. Empty: none.
[[nodiscard]] std::string why_clients_stay(const Pass& pass, const DaemonNode& node, const NodeUse& use);

}  // namespace gso
