#include "controller/commands/rollout/status_text.h"

#include <sstream>

#include "controller/commands/rollout/verbs.h"

namespace gso {

std::string rollout_status_text(const ClusterView& view, const PlannerSettings& settings, k8s::Clock* clock,
                                bool json) {
  const SharingKinds& kinds = view.sharing_kinds;
  if (kinds.policies == Served::unknown || kinds.rollouts == Served::unknown) return {};
  if (!view.world.policies_served) return json ? std::string() : without_crds_text() + "\n";
  std::ostringstream out;
  std::ostringstream err;
  RolloutCall call;
  call.clock = clock;
  call.options.json = json;
  call.settings = settings;
  call.world = view.world;
  call.incomplete = view.incomplete;
  call.no_operator = view.no_operator;
  call.out = &out;
  call.err = &err;
  (void)show_status(call);
  return json ? out.str() : out.str() + err.str();
}

}  // namespace gso
