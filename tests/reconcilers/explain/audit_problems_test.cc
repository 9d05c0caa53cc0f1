// How an audit merges findings into problems, and counts the GPUs that each of them costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "reconcilers/explain/audit_problems.h"
#include "reconcilers/model/object_refs.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso {
namespace {

using testing::ElementsAre;
using testing::Field;

// The node's two GPUs are lost to the node, to its ConfigMap and to its DaemonSet: a problem of all three costs two.
TEST(AuditProblems, AConfigMapAndItsNodesCostTheGpusOfANodeOnce) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "0")"));
  explained.index.refresh(explained.world, explained.settings);
  LostGpus lost;
  lost.add(explained.index.impl(), *explained.world.nodes.find("gpu-1"), explained.index.assessment("gpu-1"), 2);
  const ObjectRef config_map{"v1", "ConfigMap", "gpu-operator", "plugin-config", ""};
  const ObjectRef plugin{"apps/v1", "DaemonSet", "gpu-operator", "plugin", ""};
  const auto found = [](const ObjectRef& object) {
    return Finding{Severity::error, object, "Reason", "what happened"};
  };
  EXPECT_THAT(merge_findings({found(config_map), found(node_ref("gpu-1")), found(plugin)}, lost, {}),
              ElementsAre(Field(&AuditProblem::gpus_lost, 2)));
  for (const ObjectRef& alone : {config_map, node_ref("gpu-1"), plugin}) {
    EXPECT_THAT(merge_findings({found(alone)}, lost, {}), ElementsAre(Field(&AuditProblem::gpus_lost, 2)))
        << alone.kind;
  }
}

}  // namespace
}  // namespace gso
