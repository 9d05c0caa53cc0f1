#include "reconcilers/rollout/recorded_timers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>

namespace gso {
namespace {

constexpr Duration kWorthAWrite = std::chrono::minutes(1);

// A drift belongs to a machine, not to the name of its node. Empty: the record does not keep this timer, or the node is
// gone.
std::string recorded_key(const World& world, const TimerKey& timer) {
  if (timer.timer == Timer::daemonset_stalls) return to_string(timer);
  if (timer.timer != Timer::drifting) return {};
  const Node* node = world.nodes.find(timer.subject);
  if (node == nullptr) return {};
  const auto machine = static_cast<std::uint64_t>(machine_id(node->meta.uid.str()));
  return to_string(TimerKey{timer.timer, fmt::format("{:016x}", machine), timer.scope});
}

}  // namespace

TimerKey drifting_timer(const std::string& node, const NodeAssessment& assessment) {
  return {Timer::drifting, node, std::string(assessment.target.view())};
}

TimerKey stalls_timer(const RolloutKey& key, std::int64_t following) {
  return {Timer::daemonset_stalls, key.config_map, fmt::format("{}/{}/{}", key.policy, key.key, following)};
}

std::optional<WallTime> recorded_since(const Pass& pass, const TimerKey& timer) {
  if (!pass.s.first_look || !pass.index.record) return std::nullopt;
  const auto& timers = pass.index.record->timers;
  const auto found = timers.find(recorded_key(pass.s.world, timer));
  return found == timers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::map<std::string, WallTime>> update_timers(const Pass& pass) {
  if (pass.s.timers.empty()) return std::nullopt;  // The first pass of an operator: what the record has seeds them.
  const std::map<std::string, WallTime>& known = pass.index.record->timers;
  std::map<std::string, WallTime> running;
  bool due = false;
  std::size_t still_known = 0;
  // Timers are sorted by kind: the others, several for each node in progress, are not visited.
  for (const Timer kind : {Timer::drifting, Timer::daemonset_stalls}) {
    for (auto it = pass.s.timers.lower_bound({kind, "", ""}); it != pass.s.timers.end() && it->first.timer == kind;
         ++it) {
      const std::string key = recorded_key(pass.s.world, it->first);
      if (key.empty() || running.size() >= FleetRecord::kMostTimers) continue;
      const auto recorded = known.find(key);
      still_known += recorded == known.end() ? 0 : 1;
      due = due || (recorded == known.end() && pass.s.now - it->second >= kWorthAWrite);
      running.emplace(
          key, recorded == known.end() ? std::chrono::floor<std::chrono::seconds>(it->second) : recorded->second);
    }
  }
  if (!due && still_known == known.size()) return std::nullopt;
  if (due) return running;
  std::map<std::string, WallTime> left;
  std::ranges::copy_if(running, std::inserter(left, left.end()),
                       [&](const auto& entry) { return known.contains(entry.first); });
  return left;
}

}  // namespace gso
