#include "reconcilers/node/known_daemon.h"

namespace gso {

Transition keep_daemon(Transition by_sight, const Shape& shown, const ProfilePtr& daemon, const Profile& after) {
  if (by_sight != Transition::change_mps || shown != shape_of(after) || daemon == nullptr) return by_sight;
  const bool is_same = !steps_for(transition_between(daemon->profile(), after)).touches_mps;
  return is_same ? Transition::reshare : by_sight;
}

ProfilePtr of_kept_daemon(const NodeChange& change, const ProfilePtr& begun_for) {
  return steps_for(change.kind).touches_mps ? nullptr : begun_for;
}

}  // namespace gso
