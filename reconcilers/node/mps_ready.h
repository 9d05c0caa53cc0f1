// node.mps-ready: KAI's mark for nodes where a pod finds an MPS control daemon, nvidia.mps/enabled=true. It follows the
// daemon, not the configuration: set once the daemon has been up for a while, taken back when it goes.
#pragma once

#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/node/assess.h"

namespace gso {

enum class MpsDaemon {
  up,       // Ready, and the node runs the MPS profile that it should.
  down,     // Not there, not Ready, or the node shares by other means.
  unclear,  // Between two revisions: what stands is kept.
};
// `assessment`: null where no device plugin selects the node. A host's own daemon counts where somebody says that it is
// there (annotation gpusharing.dev/mps-host=true), on a Ready node.
[[nodiscard]] MpsDaemon mps_daemon_on(const Node& node, const NodeAssessment* assessment, const PluginInstallation* set,
                                      const std::vector<const Pod*>& operand_pods);

enum class MpsMark { right, to_set, to_remove, foreign };
// What the label needs. Only a mark that we set is taken back; `foreign`: somebody else's, on a node without a daemon.
[[nodiscard]] MpsMark mps_mark(const Node& node, MpsDaemon daemon);

// Whether the settings and the cluster want nodes marked at all.
[[nodiscard]] bool marks_mps_nodes(const PlannerSettings& settings, bool kai_served);

// Brings one node's mark to what it needs, once that has lasted; says where it cannot.
void plan_mps_mark(PlanDraft& draft, const Node& node, MpsMark mark);

}  // namespace gso
