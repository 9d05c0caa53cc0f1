#include "reconcilers/partitioning/planning_cache.h"

#include <algorithm>

namespace gso {

const Packing& PlanningCache::packing(PackInput input) {
  // A pass packs up to four times: with and without what is in progress, and as if nothing could be changed.
  constexpr std::size_t kMost = 8;
  const auto found = std::ranges::find(packings_, input, &std::pair<PackInput, Packing>::first);
  if (found != packings_.end()) {
    packings_.splice(packings_.begin(), packings_, found);
    return packings_.front().second;
  }
  Packing answer = pack(input);
  packings_.emplace_front(std::move(input), std::move(answer));
  if (packings_.size() > kMost) packings_.pop_back();
  return packings_.front().second;
}

const std::optional<Geometry>& PlanningCache::profile(const std::shared_ptr<const std::string>& text) {
  constexpr std::size_t kMost = 20'000;
  if (const auto found = profiles_.find(text); found != profiles_.end()) return found->second;
  if (profiles_.size() >= kMost)
    std::erase_if(profiles_, [](const auto& entry) { return entry.first.use_count() == 1; });
  return profiles_.emplace(text, read_profile(*text)).first->second;
}

}  // namespace gso
