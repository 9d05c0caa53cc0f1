// The phases of a node, by the names that people are shown everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gso {

enum class Phase : std::uint8_t {
  unmanaged,   // No plugin installation with profiles serves the node.
  unrecorded,  // No baseline yet.
  up_to_date,  // Runs its target.
  pending,     // Needs a change and waits for the rollout.
  draining,    // In a change; no pod of it has been deleted yet.
  restarting,  // In a change; pods remain to be replaced, or their successors are not Ready yet.
  verifying,   // The operator checks that it shows its profile, after a change or after it loaded one by itself.
  following_daemonset,  // Its DaemonSet controller replaces the pods (RollingUpdate).
  failed,               // Its last change did not verify.
  blocked,              // Cannot be changed now, for a reason.
  held,                 // Another actor or a person holds it, or its change cannot be read.
};
inline constexpr std::size_t kPhases = 11;

// Unmanaged, Unrecorded, UpToDate, Pending, …
[[nodiscard]] std::string_view to_string(Phase phase);

}  // namespace gso
