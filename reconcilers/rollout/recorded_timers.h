// Timers of conditions that must last for minutes before the operator acts: those that the record keeps, and those of
// deferred nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// --- Timers that the record keeps. They are of conditions that must last for minutes before the operator acts:
// without the record, an operator that restarts more often than that would never act. A stored time only seeds its
// timer when an operator starts (model/plan_draft.h).

inline constexpr Timer kRecorded[] = {Timer::loading,          Timer::drifting, Timer::held,     Timer::released,
                                      Timer::daemonset_stalls, Timer::soaking,  Timer::not_ready};
// The timer's key in the record: it belongs to a machine, not to the name of its node. nullopt: the record does not
// keep this timer, or the node is gone.
[[nodiscard]] std::optional<TimerKey> recorded_key(const World& world, const TimerKey& timer);

// Runs while a node does not show the profile with which it was verified.
[[nodiscard]] TimerKey drifting_timer(const std::string& node, const NodeAssessment& assessment);
// Runs while as many nodes of a rollout as before wait for their DaemonSets to replace their pods.
[[nodiscard]] TimerKey stalls_timer(const RolloutKey& key, std::int64_t following);

// Names the timers of nodes in a change that somebody holds, or has held: their deadlines start again afterwards.
void run_hold_timers(Pass& pass);
// Those of all nodes in a change, as if they had been released now: nobody has acted on them until now.
[[nodiscard]] Timers released_timers(const World& world, WallTime now);
// Since when nobody holds the node any more; nullopt: nobody has held it during this change.
[[nodiscard]] std::optional<WallTime> released_since(const Pass& pass, const std::string& node,
                                                     const NodeChange& change);
// The same as the record has it, which is the same in every look. nullopt: the record does not have it (yet).
[[nodiscard]] std::optional<WallTime> recorded_release(const Pass& pass, const std::string& node,
                                                       const NodeChange& change);

// Runs while the node's standalone MPS daemon serves with the DaemonSet's newest template and might be a canary of it.
// It is of the kind `soaking`, whose other timers are of SharingRollouts.
[[nodiscard]] TimerKey daemon_soaking_timer(const std::string& node, const Operand& daemonset);
[[nodiscard]] bool is_daemon_soaking(const TimerKey& timer);

// The record has a timer of a node that loads a profile after its label was moved, for any revision.
[[nodiscard]] bool has_recorded_move(const Pass& pass, const std::string& node);
// Since when the timer has run according to the record, in the first look of an operator; nullopt: the record does not
// contain it, or it is a later look, in which stored times do not count.
[[nodiscard]] std::optional<WallTime> recorded_since(const Pass& pass, const TimerKey& timer);
// Names such a timer; and whether it has run for so long.
void run_recorded(Pass& pass, const TimerKey& timer);
[[nodiscard]] bool has_run_recorded(Pass& pass, const TimerKey& timer, Duration wanted);

// --- When a deferred node may start again, once it is idle.

// The workloads of the node have had their turn for its target (Deferral): it starts once it is idle.
[[nodiscard]] bool has_had_turn(const Pass& pass, const std::string& node);
// Not before the time in its annotation, if a person uncordoned it: by the wall clock as it goes now. A time that is
// further away than idleTimeout counts as over, unless this process has seen the deferral begin. nullopt: the node has
// no deferral, or it cannot be read.
[[nodiscard]] std::optional<WallTime> deferred_until(const Pass& pass, const std::string& node);

// Names the timers of these times, for the nodes that wait for them.
void run_deferral_timers(Pass& pass);

}  // namespace gso
