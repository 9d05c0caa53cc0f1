#include "reconcilers/partitioning/partitioning.h"

#include <fmt/format.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

void plan_partitioning(PlanDraft& draft, const Discovery& discovery) {
  for (const PartitionedNode& node : read_partitioned_nodes(draft.s.world, discovery)) {
    if (node.left_alone.empty()) continue;
    draft.finding(Severity::warning, node_ref(node.name), node.reason,
                  fmt::format("the GPUs of node {} are not partitioned: {}", node.name, node.left_alone));
  }
}

}  // namespace gso
