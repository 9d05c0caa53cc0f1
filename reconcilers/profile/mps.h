// Limits of MPS: clients for each GPU, and what each client gets.
// Source: cmd/mps-control-daemon/mps of the device plugin (v0.20.0).
#pragma once

#include <cstdint>

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

}  // namespace gso
