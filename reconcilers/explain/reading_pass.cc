#include "reconcilers/explain/reading_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reconcilers/explain/stop_command.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/waits.h"

namespace gso {

namespace {

constexpr std::string_view kExplain = "explain";
// Since when the timers have run whose start is written down: soaks, and the last edit of each ConfigMap.
Timers known_timers(Snapshot snapshot, Index& index) {
  if (!index.record) return {};
  snapshot.first_look = true;
  RolloutViews views(snapshot, index);
  Pass pass(snapshot, index, kExplain, &views);
  run_soaking_timers(pass);
  Timers out = snapshot.timers;
  out.merge(pass.plan.timer_starts);
  const auto& installations = index.discovery.installations;
  for (std::size_t i = 0; i < installations.size(); ++i) {
    const ConfigMap* config_map = snapshot.world.configmaps.find(installations[i].config_map_key());
    const bool known = config_map != nullptr && config_map->data_time_known;
    out.emplace(settled_timer(pass, i), known ? config_map->data_changed : WallTime());
  }
  return out;
}

}  // namespace

ReadingPass::ReadingPass(const Snapshot& snapshot, FleetIndex& index)
    : timers_(known_timers(snapshot, index.impl())),
      snapshot_{.world = snapshot.world,
                .now = snapshot.now,
                .timers = timers_,
                .consumers = snapshot.consumers,
                .settings = snapshot.settings,
                .refused_writes = snapshot.refused_writes,
                .mono = snapshot.mono},
      views_(snapshot_, index.impl()),
      pass_(snapshot_, index.impl(), kExplain, &views_),
      steps_(pass_) {}

ReadingPass::ReadingPass(const World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now)
    : timers_(known_timers({world, now, kNoTimers, kNobodyListed, settings}, index.impl())),
      snapshot_{world, now, timers_, kNobodyListed, settings},
      views_(snapshot_, index.impl()),
      pass_(snapshot_, index.impl(), kExplain, &views_),
      steps_(pass_) {}

const Step* ReadingPass::step_of(const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  if (const auto known = known_.find(name); known != known_.end()) return &known->second;
  if (steps_.is_undecided(name, a)) return nullptr;
  return &known_.emplace(name, steps_.of(node, a)).first->second;
}

const Reason* ReadingPass::stop_of(const NodeAssessment& a) {
  if (!pass_.index.record) return nullptr;
  const RolloutView* rollout = views_.find(pass_.index.rollout_key_of(a));
  return rollout != nullptr && rollout->stop() ? &*rollout->stop() : nullptr;
}

std::string ReadingPass::stop_command_of(const NodeAssessment& a) {
  if (!pass_.index.record) return {};
  const RolloutView* rollout = views_.find(pass_.index.rollout_key_of(a));
  return rollout == nullptr ? std::string() : stop_command(*rollout);
}

std::vector<std::string> ReadingPass::stop_commands_of(std::string_view policy) {
  std::vector<std::string> out;
  if (!pass_.index.record) return out;
  for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
    if (key.policy != policy || profile_rollout.tally.of(Phase::pending) == 0) continue;
    const RolloutView* rollout = views_.find(key);
    const std::string command = rollout == nullptr ? std::string() : stop_command(*rollout);
    if (command.empty()) return {};
    if (std::ranges::find(out, command) == out.end()) out.push_back(command);
  }
  return out;
}

std::string ReadingPass::wait_of(const NodeAssessment& a) {
  if (!pass_.index.record) return {};
  const RolloutView* rollout = views_.find(pass_.index.rollout_key_of(a));
  if (rollout == nullptr) return {};
  const GateState& gate = rollout->gate();
  if (std::string start = start_after_settling(*rollout); !start.empty())
    return fmt::format("{}: {}", gate.reason(), start);
  // Whether kubelets have projected a key is known to the operator alone.
  if (gate.gate == Gate::key_not_projected || gate.gate == Gate::new_attempt) return {};
  if (!gate.is_open()) return fmt::format("{}: {}", gate.reason(), gate.message);
  const auto& of_group = rollout->waits().of_group;
  const auto group = of_group.find(std::string(a.product.view()));
  return group == of_group.end() ? std::string() : group->second;
}

bool ReadingPass::holds_awaited_slot(const std::string& node) {
  const SlotHold hold = slot_hold(world(), pass_.index, node);
  if (hold == SlotHold::none || hold == SlotHold::in_change || !pass_.index.record) return false;
  const UnservedNodes unserved(pass_);
  return std::ranges::any_of(pass_.index.profile_rollouts, [&](const auto& entry) {
    const auto& [key, rollout] = entry;
    return std::ranges::any_of(rollout.groups, [&](const auto& group) {
      const auto& [product, waiting] = group;
      const bool others = std::ranges::any_of(waiting.pending, [&](const auto& waits) { return waits.second != node; });
      return others && holders_of_full_budgets(pass_, unserved, key, rollout, product).contains(node);
    });
  });
}

std::set<std::string> ReadingPass::holders_awaited_by(const RolloutKey& key) const {
  const auto rollout = pass_.index.profile_rollouts.find(key);
  if (!pass_.index.record || rollout == pass_.index.profile_rollouts.end()) return {};
  return holders_of_awaited_slots(pass_, key, rollout->second);
}

std::string ReadingPass::why_not_repaired(const std::string& node, const NodeAssessment& a) {
  if (!pass_.index.record || !pass_.index.nodes_in(Bucket::repairable).contains(node)) return {};
  const RolloutView* rollout = views_.find(pass_.index.rollout_key_of(a));
  if (rollout == nullptr) return {};
  if (std::string stop = repair_stop(*rollout); !stop.empty()) return stop;
  return is_busy(a) ? std::string() : rollout->exhausted(std::string(a.product.view()));
}

std::optional<Reason> ReadingPass::blocked_by_pods(const std::string& node, const NodeAssessment& a) const {
  return gso::blocked_by_pods(pass_, node, a);
}

EvictionOutlook ReadingPass::eviction_outlook(const std::string& node, const NodeAssessment& a,
                                              bool evict_bare_pods) const {
  return gso::eviction_outlook(pass_, node, a, evict_bare_pods);
}

std::map<std::string, std::string> ReadingPass::settling() {
  std::map<std::string, std::string> out;
  if (!pass_.index.record) return out;
  for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
    if (profile_rollout.tally.of(Phase::pending) == 0) continue;
    const RolloutView* rollout = views_.find(key);
    if (rollout == nullptr) continue;
    if (std::string start = start_after_settling(*rollout); !start.empty()) out.emplace(key.policy, std::move(start));
  }
  return out;
}

ReadingPass::Alone ReadingPass::alone(const NodeAssessment& a) const {
  const RolloutKey key = pass_.index.rollout_key_of(a);
  Alone out{true, true};
  for (const auto& [other, rollout] : pass_.index.profile_rollouts) {
    const bool works = rollout.tally.of(Phase::pending) + rollout.tally.moving() > 0;
    if (other == key) {
      out.in_rollout = std::ranges::none_of(rollout.groups, [&](const auto& group) {
        return !group.second.pending.empty() && group.first != a.product.view();
      });
    } else if (other.policy == key.policy && works) {
      out.in_policy = false;
    }
  }
  out.in_policy = out.in_policy && out.in_rollout;
  return out;
}

}  // namespace gso
