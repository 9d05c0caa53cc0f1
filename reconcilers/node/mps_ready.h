// node.mps-ready: KAI's mark for nodes where a pod finds an MPS control daemon, nvidia.mps/enabled=true. It follows the
// daemon, not the configuration: set once the daemon has been Ready for a while, removed when the daemon ends.
#pragma once

#include <cstdint>
#include <vector>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/node/assess.h"

namespace gso {

enum class MpsDaemon {
  up,       // Ready, and the node runs the MPS profile that it should.
  down,     // Missing, not Ready, or the node does not share by MPS.
  unclear,  // Between two revisions: keep the present label.
};
// `assessment`: null if no device plugin selects the node. A daemon of the host itself counts on a Ready node with the
// annotation gpusharing.dev/mps-host=true. `standalone`: the node's pod of a standalone daemon, which is Ready while
// the daemon answers; null: none.
[[nodiscard]] MpsDaemon mps_daemon_on(const Node& node, const NodeAssessment* assessment,
                                      const PluginInstallation* installation,
                                      const std::vector<const Pod*>& operand_pods, const Pod* standalone);

enum class MpsMark : std::uint8_t { right, to_set, to_remove, foreign };
// What the label needs. Only a mark that the operator set is removed. `foreign`: set by a person or another tool, on a
// node without a daemon.
[[nodiscard]] MpsMark mps_mark(const Node& node, MpsDaemon daemon);

// Whether the settings and the cluster require that nodes are marked.
[[nodiscard]] bool marks_mps_nodes(const PlannerSettings& settings, bool kai_served);

// Sets or removes one node's mark once the difference has lasted long enough; reports if it cannot.
void plan_mps_mark(PlanDraft& draft, const Node& node, MpsMark mark);

}  // namespace gso
