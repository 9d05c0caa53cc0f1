// The GPUs of the node, as nvidia-smi shows them, and their compute mode.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

struct NodeGpu {
  std::string uuid;
  std::string driver_version;
  std::string compute_mode;  // "Default", "Exclusive_Process", "Prohibited", "Exclusive_Thread"
  bool mig = false;          // MIG is enabled.
  friend bool operator==(const NodeGpu&, const NodeGpu&) = default;
};

inline constexpr std::string_view kExclusiveProcess = "Exclusive_Process";

// Errors: `not_found` without nvidia-smi, `unavailable` if it fails or shows no GPU. The message says what to do.
boost::asio::awaitable<k8s::Result<std::vector<NodeGpu>>> list_gpus(k8s::Clock* clock);

// `mode` is one of the names of NodeGpu::compute_mode. Errors: `unavailable`, with nvidia-smi's own words.
boost::asio::awaitable<k8s::Result<void>> set_compute_mode(k8s::Clock* clock, std::string uuid, std::string mode);

}  // namespace gso
