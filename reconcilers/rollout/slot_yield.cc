#include "reconcilers/rollout/slot_yield.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/deferrals.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/kai_gate.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

namespace {
constexpr std::string_view kIdleNodesFirst = "IdleNodesFirst";
}  // namespace

std::optional<Stop> SlotYield::stop_for(const std::string& name, const NodeAssessment& a, const BlockedBy& who) {
  const RolloutSpec& spec = pass_.index.policy(pass_.s.world, a.policy.view()).rollout;
  if (a.phase != Phase::draining || !a.holder.empty() || spec.workloads != WorkloadMode::wait_for_idle)
    return std::nullopt;
  // Unavailable without the operator's cordon, too, for example by a person's: it would go on holding the slot.
  if (!a.ready || (a.is_unavailable() && !a.change->cordoned)) return std::nullopt;
  for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
    if (profile_rollout.tally.of(Phase::pending) == 0) continue;
    const RolloutView& rollout = rollout_of(pass_, key);
    if (!rollout.gate().is_open()) continue;
    const std::string idle = idle_node(name, a, rollout);
    if (idle.empty()) continue;
    promised_.insert(idle);
    return Stop{std::string(kIdleNodesFirst),
                fmt::format("idle node {} needs the slot, and this node still waits ({}): it is queued again", idle,
                            who.message)};
  }
  return std::nullopt;
}

std::string SlotYield::idle_node(const std::string& name, const NodeAssessment& a, const RolloutView& rollout) {
  const RolloutKey& key = rollout.key;
  const RolloutSpec& spec = pass_.index.policy(pass_.s.world, key.policy).rollout;
  const UnservedNodes unserved(pass_);
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    const BudgetCounts counts = budget_counts(pass_, unserved, key.policy, count_of(group.tally));
    if (group.pending.empty() || has_slot(pass_, spec, counts, {})) continue;
    const bool same_group = rollout.has(a) && a.product == product;
    const SlotsTaken without{-1, a.policy == key.policy ? -1 : 0, same_group ? -1 : 0};
    if (!has_slot(pass_, spec, counts, without)) continue;
    const std::vector<std::string> canaries = canaries_in_progress(rollout, product);
    const bool was_canary = same_group && std::ranges::find(canaries, name) != canaries.end();
    if (left_in_canary(rollout, product) + (was_canary ? 1 : 0) <= 0) continue;
    if (std::string idle = first_idle(rollout, group); !idle.empty()) return idle;
  }
  return {};
}

std::string SlotYield::first_idle(const RolloutView& rollout, const Group& group) {
  constexpr std::size_t kMostListed = 4;  // Per pass: each is a request.
  if (!busy_) busy_.emplace(pass_);
  std::size_t looked_at = 0;
  std::size_t listed = 0;
  for (const auto& [available, name] : group.pending) {
    const NodeAssessment& a = *pass_.index.find(name);
    if (!available || busy_->known(name) || !is_candidate(name, a)) continue;
    if (++looked_at > BusyNodes::kLookAhead || listed == kMostListed) break;
    const Drain drain = drain_for(a, a.transition, rollout.policy.rollout.workloads);
    if (drain == Drain::nothing) return name;
    const NodeUse use = use_of(pass_.s, name);
    if (!use.fresh) {
      pass_.plan.consumers_wanted.insert(name);
      ++listed;
    } else if (drained(drain, use, a)) {
      return name;
    } else {
      busy_->note(name, a);
    }
  }
  return {};
}

bool SlotYield::is_candidate(const std::string& name, const NodeAssessment& a) {
  if (promised_.contains(name) || !a.ready || a.is_held() || is_repair(a)) return false;
  if (deferred_until(pass_, name).value_or(pass_.s.now) > pass_.s.now) return false;
  return !kai_hindrance(pass_, name, a);
}

}  // namespace gso
