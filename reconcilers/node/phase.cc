#include "reconcilers/node/phase.h"

namespace gso {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::unmanaged:
      return "Unmanaged";
    case Phase::unrecorded:
      return "Unrecorded";
    case Phase::up_to_date:
      return "UpToDate";
    case Phase::pending:
      return "Pending";
    case Phase::draining:
      return "Draining";
    case Phase::restarting:
      return "Restarting";
    case Phase::verifying:
      return "Verifying";
    case Phase::following_daemonset:
      return "FollowingDaemonSet";
    case Phase::failed:
      return "Failed";
    case Phase::blocked:
      return "Blocked";
    case Phase::held:
      return "Held";
  }
  return "Unmanaged";
}

}  // namespace gso
