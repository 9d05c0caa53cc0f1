// Nodes whose pods are older than the last edit of their ConfigMap, in a fleet where no operator has rolled it out:
// they serve what they read before, and have lost nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// The audit's reason for such nodes.
inline constexpr std::string_view kEditNotLive = "EditNotLive";

// When the ConfigMap's data was edited last, of a node that did not show its profile at the baseline, and whose plugin
// serves with a pod that read its profile before that edit. Once an operator has recorded what a node has loaded, an
// edit makes it Pending instead. nullopt: it is not so, or not known.
[[nodiscard]] std::optional<WallTime> edit_not_live(const World& world, const PlannerSettings& settings,
                                                    const FleetIndex::Impl& index, const Node& node,
                                                    const NodeAssessment& assessment);

// What is said of such a node, without its name: which edit, what it serves instead, and how the edit becomes live.
[[nodiscard]] std::string edit_not_live_text(const World& world, const FleetIndex::Impl& index,
                                             const NodeAssessment& assessment, WallTime edited);

}  // namespace gso
