// Canaries: before a revision goes to all nodes of a group (alike in product and profile), some of them have to show it
// for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

class RolloutView;

// Of one group.
struct Canary {
  bool passed = false;               // Verified and soaked, or none is asked for.
  bool verified = false;             // As many nodes as asked for show the revision.
  std::optional<WallTime> soaks_to;  // Verified, and not passed yet: when its soak ends.
};

[[nodiscard]] Canary canary_of(const RolloutView& rollout, const std::string& product);
// Nodes of the group in a change to the target that are canaries while it has not passed.
[[nodiscard]] std::int64_t canaries_in_flight(const RolloutView& rollout, const std::string& product);
// A canary that was verified and has stopped showing its profile: which, and what it shows. Empty: none.
[[nodiscard]] std::string unwell_canary(const RolloutView& rollout);

}  // namespace gso
