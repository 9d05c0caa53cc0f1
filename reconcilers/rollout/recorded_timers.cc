#include "reconcilers/rollout/recorded_timers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>

#include "reconcilers/cluster/record.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_step.h"

namespace gso {

namespace {

// Precedes the DaemonSet in the scope of such a timer; the scopes of the others of that kind are products.
constexpr std::string_view kDaemonSet = "DaemonSet ";

// Timer::held runs while somebody holds a node in a change (C1 of node/node_step.h), or while it is NotReady: the same
// for its deadlines. Timer::released runs after that for as long as the change lasts: its deadlines start when the hold
// ends, also for an operator that is started later.
TimerKey hold_timer(Timer kind, const std::string& node, const NodeChange& change) {
  return {kind, node, change.to};
}

std::optional<std::string> machine_of(const World& world, std::string_view name) {
  const Node* node = world.nodes.find(name);
  return node == nullptr ? std::nullopt : std::optional(print_machine(machine_id(node->meta.uid.str())));
}

// nullopt: the record does not have it (yet).
std::optional<WallTime> time_in_record(const Pass& pass, const TimerKey& timer) {
  if (!pass.index.record) return std::nullopt;
  const Timers& timers = pass.index.record->timers;
  const auto key = recorded_key(pass.s.world, timer);
  const auto found = key ? timers.find(*key) : timers.end();
  return found == timers.end() ? std::nullopt : std::optional(found->second);
}

// Somebody has held the node during this change, or it was NotReady, as far as an earlier pass or the record knows.
bool was_held(const Pass& pass, const std::string& node, const NodeChange& change) {
  const auto is_known = [&](const TimerKey& timer) {
    return pass.s.timers.contains(timer) || recorded_since(pass, timer).has_value();
  };
  // Asked for every node in a change, in every pass: usually nobody holds any.
  const auto runs = [&](Timer kind) {
    const auto first = pass.s.timers.lower_bound({kind, "", ""});
    return first != pass.s.timers.end() && first->first.timer == kind;
  };
  if (!pass.s.first_look && !runs(Timer::held) && !runs(Timer::released)) return false;
  return is_known(hold_timer(Timer::held, node, change)) || is_known(hold_timer(Timer::released, node, change));
}

}  // namespace

TimerKey drifting_timer(const std::string& node, const NodeAssessment& assessment) {
  return {Timer::drifting, node, assessment.target};
}

TimerKey stalls_timer(const RolloutKey& key, std::int64_t following) {
  return {Timer::daemonset_stalls, key.config_map, fmt::format("{}/{}/{}", key.policy, key.key, following)};
}

TimerKey daemon_soaking_timer(const std::string& node, const Operand& daemonset) {
  return {Timer::soaking, node,
          fmt::format("{}{}/{}", kDaemonSet, k8s::to_string(daemonset.key), daemonset.newest_hash)};
}

bool is_daemon_soaking(const TimerKey& timer) {
  return timer.timer == Timer::soaking && timer.scope.view().starts_with(kDaemonSet);
}

void run_hold_timers(Pass& pass) {
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::changing)) {
    const bool is_held = !a.holder.empty() || !a.ready;
    if (!is_held && !was_held(pass, name, *a.change)) continue;
    run_recorded(pass, hold_timer(is_held ? Timer::held : Timer::released, name, *a.change));
    if (!a.ready && !a.change->failed) run_recorded(pass, change_timer(Timer::not_ready, name, *a.change));
  }
}

Timers released_timers(const World& world, WallTime now) {
  Timers out;
  for (const auto& [key, node] : world.nodes.all())
    if (const auto change = change_of(*node); change != nullptr)
      out.emplace(hold_timer(Timer::released, key.name, *change), now);
  return out;
}

std::optional<WallTime> released_since(const Pass& pass, const std::string& node, const NodeChange& change) {
  if (!was_held(pass, node, change)) return std::nullopt;
  const TimerKey timer = hold_timer(Timer::released, node, change);
  return pass.ages.since(timer, recorded_since(pass, timer));
}

std::optional<WallTime> recorded_release(const Pass& pass, const std::string& node, const NodeChange& change) {
  return time_in_record(pass, hold_timer(Timer::released, node, change));
}

std::optional<WallTime> recorded_since(const Pass& pass, const TimerKey& timer) {
  return pass.s.first_look ? time_in_record(pass, timer) : std::nullopt;
}

void run_recorded(Pass& pass, const TimerKey& timer) {
  pass.ages.run(timer, recorded_since(pass, timer));
}

bool has_run_recorded(Pass& pass, const TimerKey& timer, Duration wanted) {
  return pass.ages.has_run_for(timer, wanted, recorded_since(pass, timer));
}

std::optional<TimerKey> recorded_key(const World& world, const TimerKey& timer) {
  if (timer.timer == Timer::daemonset_stalls) return timer;
  // The start of a SharingRollout's soak is with its canary.
  const bool of_canary = timer.timer == Timer::soaking && !is_daemon_soaking(timer);
  if (of_canary || std::ranges::find(kRecorded, timer.timer) == std::end(kRecorded)) return std::nullopt;
  const auto machine = machine_of(world, timer.subject.view());
  if (!machine) return std::nullopt;
  return TimerKey{timer.timer, *machine, timer.scope};
}

bool has_recorded_move(const Pass& pass, const std::string& node) {
  const auto machine = machine_of(pass.s.world, node);
  if (!machine || !pass.index.record) return false;
  const auto known = pass.index.record->timers.lower_bound({Timer::loading, *machine, ""});
  return known != pass.index.record->timers.end() && known->first.timer == Timer::loading &&
         known->first.subject == *machine;
}

bool has_had_turn(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  if (shown == nullptr || a == nullptr) return false;
  return applying_deferral(*shown, *a, &pass.index.policy(pass.s.world, a->policy.view())).has_value();
}

namespace {

// Of a node that a person uncordoned. nullopt: it has no such deferral.
std::optional<StoredWait> wait_of(const Pass& pass, const std::string& node) {
  const Node* shown = pass.s.world.nodes.find(node);
  const NodeAssessment* a = pass.index.find(node);
  const auto deferral = shown == nullptr ? std::nullopt : deferral_of(*shown);
  if (!deferral || a == nullptr || deferral->by != Deferral::By::person) return std::nullopt;
  const Duration length = deferral_length(pass.index.policy(pass.s.world, a->policy.view()).rollout.idle_timeout);
  StoredWait wait = stored_wait(node, "deferral", deferral->until, length);
  // Of a clock that was ahead: it is over, unless this process has seen it begin.
  if (wait.begun > pass.s.now + std::chrono::seconds(1)) wait.begun = pass.s.now - wait.length;
  return wait;
}

}  // namespace

std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node) {
  if (const auto wait = wait_of(pass, node)) return pass.ages.since(wait->timer, wait->begun) + wait->length;
  const Node* shown = pass.s.world.nodes.find(node);
  const bool deferred = shown != nullptr && pass.index.find(node) != nullptr && deferral_of(*shown);
  return deferred ? std::optional(pass.s.now) : std::nullopt;
}

void run_deferral_timers(Pass& pass) {
  for (const Bucket bucket : {Bucket::deferred, Bucket::self_loaded}) {
    for (const std::string& name : pass.index.nodes_in(bucket))
      if (const auto wait = wait_of(pass, name)) pass.ages.run(wait->timer, wait->begun);
  }
}

}  // namespace gso
