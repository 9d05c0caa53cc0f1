// Deletes finished SharingRollouts beyond the limit of their policy, oldest first.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/status.h"

namespace gso {

void trim_rollout_history(Pass& pass) {
  std::map<std::string_view, std::vector<const SharingRollout*>> finished;
  for (const auto& [key, rollout] : pass.s.world.rollouts.all()) {
    if (has_ended(rollout->phase) && !rollout->meta.deletion_timestamp)
      finished[rollout->policy].push_back(rollout.get());
  }
  for (auto& [policy, rollouts] : finished) {
    const std::int64_t wanted =
        pass.index.policy(pass.s.world, policy).revision_history_limit.value_or(pass.s.settings.revision_history_limit);
    const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(0, wanted));
    if (rollouts.size() <= limit) continue;
    std::ranges::sort(rollouts, [](const SharingRollout* a, const SharingRollout* b) {
      return std::tie(a->meta.creation_timestamp, a->meta.name) < std::tie(b->meta.creation_timestamp, b->meta.name);
    });
    std::size_t left = rollouts.size() - limit;
    for (const SharingRollout* rollout : rollouts) {
      if (left == 0) break;
      // It belongs to the present target, or it holds a stop: it is not history.
      if (holds_a_switch(pass, *rollout)) continue;
      ObjectRef ref = rollout_ref(rollout->meta.name);
      ref.uid = rollout->meta.uid;
      pass.add(DeleteObject{std::move(ref)}, "HistoryLimit", "more than " + counted(limit, "finished rollout"));
      --left;
    }
  }
}

}  // namespace gso
