#include "reconcilers/rollout/recorded_timers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>

#include "reconcilers/cluster/machine_text.h"
#include "reconcilers/rollout/node_states.h"

namespace gso {
namespace {

constexpr Duration kWorthAWrite = std::chrono::minutes(1);

// The kinds that the record keeps.
constexpr Timer kRecorded[] = {Timer::loading, Timer::drifting, Timer::daemonset_stalls};

std::optional<std::string> machine_of(const World& world, const std::string& name) {
  const Node* node = world.nodes.find(name);
  return node == nullptr ? std::nullopt : std::optional(print_machine(machine_id(node->meta.uid.str())));
}

// A restart that is this late is prevented by something.
constexpr Duration kLate = std::chrono::seconds(10);

// Its label was moved, and it is not recorded soon: somebody holds it, it is NotReady, or it cannot have read the text
// and has not been restarted for that in time, whatever prevents the restart.
bool loads_for_long(const Pass& pass, const std::string& name) {
  const NodeAssessment* a = pass.index.find(name);
  if (a == nullptr || a->cause != ChangeCause::relabelled) return false;
  return !a->holder.empty() || !a->ready || (loading_expired(pass, name, *a, kLate) && !must_have_read(pass, name, *a));
}

// The timer's key in the record: a drift belongs to a machine, not to the name of its node. nullopt: the record does
// not keep this timer, or the node is gone.
std::optional<TimerKey> recorded_key(const World& world, const TimerKey& timer) {
  if (timer.timer == Timer::daemonset_stalls) return timer;
  if (timer.timer != Timer::drifting && timer.timer != Timer::loading) return std::nullopt;
  const auto machine = machine_of(world, timer.subject);
  if (!machine) return std::nullopt;
  return TimerKey{timer.timer, *machine, timer.scope};
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
  const Timers& timers = pass.index.record->timers;
  const auto key = recorded_key(pass.s.world, timer);
  const auto found = key ? timers.find(*key) : timers.end();
  return found == timers.end() ? std::nullopt : std::optional(found->second);
}

bool has_recorded_move(const Pass& pass, const std::string& node) {
  const auto machine = machine_of(pass.s.world, node);
  if (!machine || !pass.index.record) return false;
  const auto known = pass.index.record->timers.lower_bound({Timer::loading, *machine, ""});
  return known != pass.index.record->timers.end() && known->first.timer == Timer::loading &&
         known->first.subject == *machine;
}

std::optional<Timers> update_timers(const Pass& pass) {
  if (pass.s.timers.empty()) return std::nullopt;  // The first pass of an operator: what the record has seeds them.
  const Timers& known = pass.index.record->timers;
  Timers running;
  bool due = false;
  std::size_t still_known = 0;
  // Timers are sorted by kind: the others, several for each node in progress, are not visited.
  for (const Timer kind : kRecorded) {
    for (auto it = pass.s.timers.lower_bound({kind, "", ""}); it != pass.s.timers.end() && it->first.timer == kind;
         ++it) {
      if (kind == Timer::loading && !loads_for_long(pass, it->first.subject)) continue;
      const auto key = recorded_key(pass.s.world, it->first);
      if (!key || running.size() >= FleetRecord::kMostTimers) continue;
      const auto recorded = known.find(*key);
      still_known += recorded == known.end() ? 0 : 1;
      due = due || (recorded == known.end() && pass.s.now - it->second >= kWorthAWrite);
      running.emplace(
          *key, recorded == known.end() ? std::chrono::floor<std::chrono::seconds>(it->second) : recorded->second);
    }
  }
  if (!due && still_known == known.size()) return std::nullopt;
  if (due) return running;
  Timers left;
  std::ranges::copy_if(running, std::inserter(left, left.end()),
                       [&](const auto& entry) { return known.contains(entry.first); });
  return left;
}

}  // namespace gso
