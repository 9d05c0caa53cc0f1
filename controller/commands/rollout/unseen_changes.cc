#include "controller/commands/rollout/unseen_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reconcilers/explain/earlier_revision.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

using Views = std::vector<const RolloutView*>;

// The policy's rollouts whose nodes wait to start.
Views waiting_rollouts_of(ReadingPass& pass, std::string_view policy) {
  Views out;
  if (!pass.index().record) return out;
  for (const auto& [key, profile_rollout] : pass.index().profile_rollouts) {
    const bool waits = key.policy == policy && profile_rollout.tally.of(Phase::pending) > 0;
    if (const RolloutView* rollout = waits ? pass.rollout(key) : nullptr) out.push_back(rollout);
  }
  return out;
}

// Only a retry or another profile continues the rollout, whatever else holds it.
bool is_over(const RolloutView* rollout) {
  if (!rollout->too_many_failures().empty()) return true;
  if (rollout->anew) return false;
  const Switches switches = switches_of(rollout->pass, rollout->key, rollout->target, rollout->object);
  return switches.aborted || switches.undone;
}

bool is_end(std::string_view reason) {
  return reason == reason_of(Gate::aborted) || reason == reason_of(Gate::undone) ||
         reason == reason_of(Gate::max_failures);
}

// What stopped the rollout was of what its nodes should run still: only a retry has ended that.
bool was_stopped(const RolloutView& rollout) {
  const FleetRecord& record = *rollout.pass.index.record;
  const RolloutKey& key = rollout.key;
  const RecordedSwitches* switches = record.rollout(key.policy, key.config_map, key.key, rollout.target);
  if (switches != nullptr && (switches->aborted || switches->undone)) return true;
  return std::ranges::any_of(record.failures, [&](const FleetRecord::Failure& failure) {
    return failure.policy == key.policy && failure.config_map == key.config_map && failure.key == key.key &&
           failure.revision == rollout.target;
  });
}

// The newest other revision of the key whose rollout ended for that reason; empty: none is on record.
std::string revision_that_ended(const World& world, const RolloutView& rollout, std::string_view reason) {
  for (const SharingRollout* other : newest_rollouts(world)) {
    const bool same_key = other->policy == rollout.key.policy && other->config_map == rollout.key.config_map &&
                          other->key == rollout.key.key;
    if (!same_key || other->to_revision == rollout.target) continue;
    const bool ended = reason == reason_of(Gate::aborted)  ? other->aborted
                       : reason == reason_of(Gate::undone) ? is_undone(*other)
                                                           : facts_of(*other).went_wrong();
    if (ended) return other->to_revision;
  }
  return {};
}

std::string why_it_has_ended(const World& world, const RolloutView& rollout, std::string_view reason) {
  if (was_stopped(rollout)) return "a retry is requested: ";
  const std::string before = revision_that_ended(world, rollout, reason);
  const std::string_view what = reason == reason_of(Gate::aborted)  ? "abort"
                                : reason == reason_of(Gate::undone) ? "undo"
                                                                    : "failure";
  return fmt::format("the {} was of {}, and key {} of ConfigMap {} has {} now: ", what,
                     before.empty() ? "another revision" : before, rollout.key.key, rollout.key.config_map,
                     rollout.target);
}

// A rollout of its key to another revision is under way according to its status: no operator has seen the edit since.
bool is_behind(const World& world, const RolloutView* rollout) {
  return std::ranges::any_of(newest_rollouts(world), [&](const SharingRollout* other) {
    return rollout_key_of(*other) == rollout->key && other->to_revision != rollout->target &&
           !facts_of(*other).finished();
  });
}

bool is_edited(const RolloutView& rollout) {
  return std::ranges::all_of(rollout.profile_rollout.groups, [&](const auto& group) {
    return std::ranges::all_of(group.second.pending, [&](const auto& entry) {
      const NodeAssessment* a = rollout.pass.index.find(entry.second);
      return a != nullptr && a->cause == ChangeCause::edited;
    });
  });
}

// "the edit of ConfigMap gpu-operator/mps-config (2026-01-01T00:00:03Z)"
std::string what_is_new(const World& world, const Views& rollouts) {
  const RolloutView& first = *rollouts.front();
  const bool one_edit = std::ranges::all_of(rollouts, [&](const RolloutView* rollout) {
    return rollout->key.config_map == first.key.config_map && is_edited(*rollout);
  });
  if (!one_edit) return rollouts.size() == 1 ? "a change to " + first.target : "changes";
  const ConfigMap* config_map = world.configmaps.find(first.installation.config_map_key());
  const bool known = config_map != nullptr && config_map->data_time_known && config_map->data_changed != WallTime();
  return fmt::format("the edit of ConfigMap {}{}", first.key.config_map,
                     known ? fmt::format(" ({})", k8s::format_time(config_map->data_changed)) : "");
}

// The closed gate that the status does not name. Those that open by themselves say less than that an operator must run.
PolicyWait wait_of(const World& world, const Views& rollouts, const std::string& why, bool has_operator) {
  const RolloutView& first = *rollouts.front();
  const GateState& gate = first.gate();
  const bool approves = gate.gate == Gate::approval;
  if (!approves && (row_of(gate.gate).needs_attention || row_of(gate.gate).stops_all))
    return {first.key.policy, gate.reason(), why + gate.message, {}, 0};
  std::int64_t count = 0;
  for (const RolloutView* rollout : rollouts) count += rollout->profile_rollout.tally.of(Phase::pending);
  const bool one = count == 1;
  const std::string next = approves       ? "an operator creates the SharingRollout that a person can approve"
                           : has_operator ? fmt::format("the operator starts {}", one ? "it" : "them")
                                          : fmt::format("{} when an operator runs", one ? "it starts" : "they start");
  std::string message = fmt::format("{}{} node{} wait{} for {}; {}", why, count, one ? "" : "s", one ? "s" : "",
                                    what_is_new(world, rollouts), next);
  return {first.key.policy, std::string(kNotStarted), std::move(message), {}, 0};
}

}  // namespace

void note_unseen_changes(ReadingPass& pass, const SharingPolicy& policy, bool has_operator,
                         std::vector<PolicyWait>& waits) {
  const Views rollouts = waiting_rollouts_of(pass, policy.meta.name);
  if (rollouts.empty()) return;
  const auto stale =
      std::ranges::find_if(waits, [](const PolicyWait& wait) { return wait.nodes.empty() && is_end(wait.reason); });
  const bool has_news = stale != waits.end() && std::ranges::none_of(rollouts, is_over);
  std::string why;
  if (has_news) {
    why = why_it_has_ended(pass.world(), *rollouts.front(), stale->reason);
    waits.erase(stale);
  }
  // What the nodes waited for in that rollout.
  if (!has_operator && std::ranges::all_of(rollouts, [&](const auto* one) { return is_behind(pass.world(), one); }))
    std::erase_if(waits, [](const PolicyWait& wait) {
      return wait.nodes.empty() && (wait.reason == kRollingOut || wait.reason == kBudgetExhausted);
    });
  const auto settling = std::ranges::find(waits, reason_of(Gate::settling), &PolicyWait::reason);
  if (settling != waits.end()) {
    settling->news = std::move(why);
    return;
  }
  const bool is_named = std::ranges::any_of(waits, [](const PolicyWait& wait) { return wait.nodes.empty(); });
  if (is_named || !(has_news || !has_operator)) return;
  waits.insert(waits.begin(), wait_of(pass.world(), rollouts, why, has_operator));
}

bool is_retried(ReadingPass& pass, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  if (!facts.went_wrong() || facts.finished() || !pass.index().record) return false;
  const RolloutView* view = pass.rollout(rollout_key_of(rollout));
  return view != nullptr && view->target == rollout.to_revision && !retry_of(view->policy).empty() && !is_over(view) &&
         view->profile_rollout.tally.of(Phase::failed) == 0;
}

}  // namespace gso
