// What keeps a node in progress from showing its profile. Both statuses and the findings report this answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

class RolloutView;

struct ChangeTrouble {
  enum class Kind : std::uint8_t {
    stands,     // The operator neither deletes the remaining pods nor gives up until the cause is gone.
    not_ready,  // The node is NotReady, and has not been for as long as verifyTimeout.
    container,  // A container of its new pods does not start; `reason` is the kubelet's.
    late,       // It does not show its profile for longer than usual.
  };
  std::string reason;   // CamelCase: of the obstacle, or of the container that waits (CrashLoopBackOff).
  std::string message;  // For people.
  Kind kind = Kind::late;
};
// Of a node in a change, or of one that loads a profile by itself; nullopt: it makes progress, only waits for
// workloads, or is held (out_of_reach.h).
[[nodiscard]] std::optional<ChangeTrouble> trouble_of(Pass& pass, const std::string& node,
                                                      const NodeAssessment& assessment);
// Of the nodes of a rollout that are in progress, by node.
[[nodiscard]] std::map<std::string, ChangeTrouble> troubles_of(const RolloutView& rollout);

}  // namespace gso
