#include "reconcilers/rollout/recorded_timers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string_view>

#include "reconcilers/cluster/record.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

namespace {

constexpr Duration kWorthAWrite = std::chrono::minutes(1);

// The kinds that the record keeps.
constexpr Timer kRecorded[] = {Timer::loading,          Timer::drifting, Timer::held,     Timer::released,
                               Timer::daemonset_stalls, Timer::soaking,  Timer::not_ready};

// Precedes the DaemonSet in the scope of such a timer; the scopes of the others of that kind are products.
constexpr std::string_view kDaemonSet = "DaemonSet ";

bool is_of_a_node(Timer timer) {
  return timer != Timer::daemonset_stalls && std::ranges::find(kRecorded, timer) != std::end(kRecorded);
}

// Rare, so that they are recorded at once. A node that is lost begins two of them, in one write.
bool is_of_a_hold(Timer timer) {
  return timer == Timer::not_ready || timer == Timer::held || timer == Timer::released;
}

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

// The timer's key in the record: it belongs to a machine, not to the name of its node. nullopt: the record does not
// keep this timer, or the node is gone.
std::optional<TimerKey> recorded_key(const World& world, const TimerKey& timer) {
  if (timer.timer == Timer::daemonset_stalls) return timer;
  if (!is_of_a_node(timer.timer)) return std::nullopt;
  // The start of a SharingRollout's soak is with its canary.
  if (timer.timer == Timer::soaking && !is_daemon_soaking(timer)) return std::nullopt;
  const auto machine = machine_of(world, timer.subject);
  if (!machine) return std::nullopt;
  return TimerKey{timer.timer, *machine, timer.scope};
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
  return is_known(held_timer(node, change)) || is_known(released_timer(node, change));
}

}  // namespace

TimerKey drifting_timer(const std::string& node, const NodeAssessment& assessment) {
  return {Timer::drifting, node, std::string(assessment.target.view())};
}

TimerKey stalls_timer(const RolloutKey& key, std::int64_t following) {
  return {Timer::daemonset_stalls, key.config_map, fmt::format("{}/{}/{}", key.policy, key.key, following)};
}

TimerKey held_timer(const std::string& node, const NodeChange& change) {
  return {Timer::held, node, change.to};
}

TimerKey released_timer(const std::string& node, const NodeChange& change) {
  return {Timer::released, node, change.to};
}

TimerKey daemon_soaking_timer(const std::string& node, const Operand& daemonset) {
  return {Timer::soaking, node,
          fmt::format("{}{}/{}", kDaemonSet, k8s::to_string(daemonset.key), daemonset.newest_hash)};
}

bool is_daemon_soaking(const TimerKey& timer) {
  return timer.timer == Timer::soaking && timer.scope.starts_with(kDaemonSet);
}

void run_hold_timers(Pass& pass) {
  for (const std::string& name : pass.index.nodes_in(Bucket::changing)) {
    const NodeAssessment& a = *pass.index.find(name);
    const bool is_held = !a.holder.empty() || !a.ready;
    if (!is_held && !was_held(pass, name, *a.change)) continue;
    const TimerKey timer = is_held ? held_timer(name, *a.change) : released_timer(name, *a.change);
    pass.ages.run(timer, recorded_since(pass, timer));
    if (a.ready || a.change->failed) continue;
    const TimerKey lost = not_ready_timer(name, *a.change);
    pass.ages.run(lost, recorded_since(pass, lost));
  }
}

Timers released_timers(const World& world, WallTime now) {
  Timers out;
  for (const auto& [key, node] : world.nodes.all()) {
    if (const auto change = change_of(*node); change != nullptr) out.emplace(released_timer(key.name, *change), now);
  }
  return out;
}

std::optional<WallTime> released_since(const Pass& pass, const std::string& node, const NodeChange& change) {
  if (!was_held(pass, node, change)) return std::nullopt;
  const TimerKey timer = released_timer(node, change);
  return pass.ages.since(timer, recorded_since(pass, timer));
}

std::optional<WallTime> recorded_release(const Pass& pass, const std::string& node, const NodeChange& change) {
  if (!pass.index.record) return std::nullopt;
  const auto key = recorded_key(pass.s.world, released_timer(node, change));
  const auto found = key ? pass.index.record->timers.find(*key) : pass.index.record->timers.end();
  return found == pass.index.record->timers.end() ? std::nullopt : std::optional(found->second);
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
  // The first pass of an operator, which may know at most that holds have ended: what the record has seeds the timers.
  const auto is_release = [](const auto& timer) { return timer.first.timer == Timer::released; };
  if (std::ranges::all_of(pass.s.timers, is_release)) return std::nullopt;
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
      const bool lasts = is_of_a_hold(kind) || pass.s.now - it->second >= kWorthAWrite;
      due = due || (recorded == known.end() && lasts);
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

namespace {

// Inputs that have settled stay settled while another gate is closed or no node is left to start.
void run_input_timers(Pass& pass) {
  std::set<std::size_t> installations;
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts)
    installations.insert(profile_rollout.installation);
  for (const std::size_t installation : installations) pass.run(settled_timer(pass, installation));
}

void run_differing_timers(Pass& pass) {
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    if (installation.announced) pass.run(differing_timer(installation));
  }
}

void run_drifting_timers(Pass& pass) {
  for (const std::string& name : pass.index.nodes_in(Bucket::repairable)) {
    const TimerKey drifts = drifting_timer(name, *pass.index.find(name));
    pass.ages.run(drifts, recorded_since(pass, drifts));
  }
}

void run_stalls_timers(Pass& pass) {
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const std::int64_t following = profile_rollout.tally.of(Phase::following_daemonset);
    if (following == 0) continue;
    const TimerKey stalls = stalls_timer(key, following);
    pass.ages.run(stalls, recorded_since(pass, stalls));
  }
}

void run_timers_beside_an_unreadable_record(Pass& pass) {
  if (pass.index.record_problem.empty()) return;
  run_text_timers(pass);
  run_loading_timers_of_all(pass);
}

// Last: a gate reads other timers.
void run_unsettled_timers(Pass& pass) {
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const Tally& nodes = profile_rollout.tally;
    const bool waits = nodes.of(Phase::pending) + nodes.moving() + nodes.repairable > 0;
    if (waits && rollout_of(pass, key).gate().gate == Gate::settling) pass.run(unsettled_timer(key));
  }
}

}  // namespace

void declare_timers(Pass& pass) {
  run_differing_timers(pass);  // A finding reads them, with a record or without one.
  if (!pass.index.record) return run_timers_beside_an_unreadable_record(pass);
  run_text_timers(pass);
  run_input_timers(pass);
  run_loading_timers(pass);
  run_drifting_timers(pass);
  run_stalls_timers(pass);
  run_hold_timers(pass);
  run_deferral_timers(pass);
  run_remediation_timers(pass);
  run_soaking_timers(pass);
  run_unsettled_timers(pass);
}

}  // namespace gso
