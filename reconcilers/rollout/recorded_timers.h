// Timers that the record keeps. They are of conditions that must last for minutes before the operator acts: without the
// record, an operator that restarts more often than that would never act. A stored time only seeds its timer when an
// operator starts (model/ages.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Runs while a node does not show the profile with which it was verified.
[[nodiscard]] TimerKey drifting_timer(const std::string& node, const NodeAssessment& assessment);
// Runs while as many nodes of a rollout as before wait for their DaemonSets to replace their pods.
[[nodiscard]] TimerKey stalls_timer(const RolloutKey& key, std::int64_t following);

// The record has a timer of a node that loads a profile after its label was moved, for any revision.
[[nodiscard]] bool has_recorded_move(const Pass& pass, const std::string& node);
// Since when the timer has run according to the record, in the first look of an operator; nullopt: the record does not
// contain it, or it is a later look, in which stored times do not count.
[[nodiscard]] std::optional<WallTime> recorded_since(const Pass& pass, const TimerKey& timer);

// What the record must contain now; nullopt: it is up to date. A timer is added when it has run for a minute, together
// with all others that run: conditions that pass quickly cost no write. It is removed as soon as it has stopped.
[[nodiscard]] std::optional<Timers> update_timers(const Pass& pass);

}  // namespace gso
