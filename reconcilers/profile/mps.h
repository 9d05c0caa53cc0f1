// MPS: its limits, and what it cannot do, decided in this one place, which the profile's checks, the expected state of
// a node, preflight and the node step call. Source: cmd/mps-control-daemon and internal/lm of the device plugin,
// validateFlags of its plugin (v0.20.0).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/profile.h"

namespace gso {

inline constexpr std::int64_t kMpsMaxClients = 48;              // Compute capability 7.5 and above.
inline constexpr std::int64_t kMpsMaxClientsBeforeTuring = 16;  // Below: V100 (7.0) too.

// How many clients an MPS server takes on a GPU of this compute capability: the MPS daemon exits on more replicas.
[[nodiscard]] constexpr std::int64_t mps_max_clients(int compute_major, int compute_minor) {
  const bool turing = compute_major > 7 || (compute_major == 7 && compute_minor >= 5);
  return turing ? kMpsMaxClients : kMpsMaxClientsBeforeTuring;
}

// Device memory that one client may pin, in MiB, of a GPU with this much memory.
[[nodiscard]] constexpr std::int64_t mps_pinned_memory_mib(std::int64_t gpu_memory_mib, std::int64_t replicas) {
  return replicas > 0 ? gpu_memory_mib / replicas : 0;
}

// The share of a GPU's threads that one client gets, in per cent.
[[nodiscard]] constexpr std::int64_t mps_thread_percentage(std::int64_t replicas) {
  return replicas > 0 ? 100 / replicas : 0;
}

// What nvidia-cuda-mps-control answers a client that asks: the memory limit in whole GiB from 1 GiB on ("3G" for 3840
// MiB), else in MiB ("384M"); the threads with one decimal ("25.0").
[[nodiscard]] inline std::string mps_memory_shown(std::int64_t mib) {
  constexpr std::int64_t kMibOfAGib = 1024;
  return mib >= kMibOfAGib ? std::to_string(mib / kMibOfAGib) + "G" : std::to_string(mib) + "M";
}
[[nodiscard]] inline std::string mps_threads_shown(std::int64_t percentage) {
  return std::to_string(percentage) + ".0";
}

// Codes of what MPS cannot do. Beside them kMigEnabled: a GPU has MIG enabled, and GFD exits.
// migStrategy mixed: the plugin exits, whatever the GPUs are.
inline constexpr std::string_view kMpsWithMixedMig = "MPSWithMixedMIG";
// No entry for nvidia.com/gpu: the plugin waits forever.
inline constexpr std::string_view kMpsMatchesNothing = "MPSMatchesNothing";
// More replicas than an MPS server has clients: the MPS daemon exits.
inline constexpr std::string_view kMpsReplicasAboveMaximum = "MPSReplicasAboveMaximum";

// What is known of a node's GPUs.
struct MpsGpus {
  const std::vector<Device>* devices = nullptr;  // Null: not known, and only what no GPU can do is a fault.
  bool mig_enabled = false;                      // MIG is enabled, on GPUs that are not listed.
};

// Empty where the profile does not share by MPS. `mig_strategy`: the one in force; a DaemonSet's own setting overrides
// the profile's. Without devices the answer is about the profile alone, and has infos as well: what works on some GPUs
// only. Errors first, in the order in which components would exit. The paths are those of the profile; no fault has a
// place.
[[nodiscard]] std::vector<Diagnostic> mps_faults(const Profile& profile, std::string_view mig_strategy,
                                                 const MpsGpus& gpus);

}  // namespace gso
