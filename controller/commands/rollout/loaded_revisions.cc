#include "controller/commands/rollout/loaded_revisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "reconcilers/explain/shown_state.h"
#include "reconcilers/model/message_text.h"

namespace gso {

std::map<RolloutKey, RevisionCounts> loaded_revisions(const World& world, const FleetIndex::Impl& index) {
  std::map<RolloutKey, RevisionCounts> out;
  for (const auto& [key, node] : world.nodes.all()) {
    const NodeAssessment* a = index.find(key.name);
    if (a == nullptr || loaded_text_is_unknown(*node, *a)) continue;
    ++out[index.rollout_key_of(*a)][std::string(a->loaded.revision.view())];
  }
  return out;
}

std::string loaded_revisions_text(const World& world, const FleetIndex::Impl& index, std::string_view policy) {
  RevisionCounts counts;
  for (const auto& [key, of_rollout] : loaded_revisions(world, index)) {
    if (key.policy != policy) continue;
    for (const auto& [revision, count] : of_rollout) {
      if (!revision.empty()) counts[revision] += count;
    }
  }
  if (counts.size() < 2) return {};
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, std::int64_t>::second);
  std::string out;
  for (const auto& [revision, count] : sorted)
    out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", counted(count, "node"), count == 1 ? "runs" : "run",
                       revision);
  return out;
}

}  // namespace gso
