// Timers of conditions that must last for minutes before the operator acts: those that the record keeps, and those
// that several planners of one pass read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// --- Timers that the record keeps. They are of conditions that must last for minutes before the operator acts:
// without the record, an operator that restarts more often than that would never act. A stored time only seeds its
// timer when an operator starts (model/plan_draft.h).

// Runs while a node does not show the profile with which it was verified.
[[nodiscard]] TimerKey drifting_timer(const std::string& node, const NodeAssessment& assessment);
// Runs while as many nodes of a rollout as before wait for their DaemonSets to replace their pods.
[[nodiscard]] TimerKey stalls_timer(const RolloutKey& key, std::int64_t following);

// Runs while somebody holds a node in a change (C1 of node/node_step.h), or while it is NotReady: the same for its
// deadlines.
[[nodiscard]] TimerKey held_timer(const std::string& node, const NodeChange& change);
// Runs after that for as long as the change lasts: its deadlines start when the hold ends, also for an operator that is
// started later.
[[nodiscard]] TimerKey released_timer(const std::string& node, const NodeChange& change);
void run_hold_timers(Pass& pass);
// The latter of all nodes in a change, which start now: nobody has acted on them until now.
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

// What the record must contain now; nullopt: it is up to date. A timer is added when it has run for a minute, together
// with all others that run: conditions that pass quickly cost no write. It is removed as soon as it has stopped. Holds
// of nodes in a change are rare, and are recorded at once.
[[nodiscard]] std::optional<Timers> update_timers(const Pass& pass);

// --- The timers that several planners of one pass read, named once, before any of them reads one. So no timer runs
// because somebody asked for it, or stops because nobody did: a soak goes on while its rollout is paused. Timers that
// one chain of steps owns are named there (model/plan_draft.h): those of a node's change (node/node_step.h), of stuck
// pods, of nodes that are left, of unused keys, and KAI's.

// While the fleet has no record, or one that cannot be read, no node and no rollout waits: most timers do not run.
// Those that say which text a node can have read run on beside an unreadable one.
void declare_timers(Pass& pass);

}  // namespace gso
