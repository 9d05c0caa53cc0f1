// Limits of MPS: clients for each GPU, and what each client gets.
// Source: cmd/mps-control-daemon/mps of the device plugin (v0.20.0).
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace gso
