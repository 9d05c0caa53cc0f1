// An MPS daemon that stays although the text of its node is unknown: nothing shows the migStrategy by which a daemon
// has built its devices, but what it runs with can be known otherwise.
#pragma once

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/replace_order.h"

namespace gso {

// `by_sight`: from what the node shows (transition_from() of `shown`). If the daemon would be the same, it is not
// replaced. `daemon`: the profile that it certainly runs; null: unknown.
[[nodiscard]] Transition keep_daemon(Transition by_sight, const Shape& shown, const ProfilePtr& daemon,
                                     const Profile& after);

// The profile of the daemon of a node in a change: a change that keeps it was begun for a text with the daemon's
// settings. `begun_for`: the profile of change.to; null: unknown. Null: the change replaces the daemon.
[[nodiscard]] ProfilePtr of_kept_daemon(const NodeChange& change, const ProfilePtr& begun_for);

}  // namespace gso
