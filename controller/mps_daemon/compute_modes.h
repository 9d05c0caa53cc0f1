// Which compute mode each GPU had before the daemon set EXCLUSIVE_PROCESS. A file remembers it, so that a daemon that
// is started again after a crash does not take its own setting for what was before.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/logging.h"
#include "controller/mps_daemon/boot_memory.h"
#include "controller/mps_daemon/node_gpus.h"

namespace gso {

// UUID of a GPU -> its compute mode before.
using ComputeModes = std::map<std::string, std::string>;

class ComputeModeMemory {
 public:
  // A compute mode ends with the boot, and with it what the file says.
  ComputeModeMemory(std::string file, std::string boot_id) : memory_(std::move(file), std::move(boot_id), "modes") {}

  // What is remembered of this boot; empty without a file. Errors (`decode`): the file cannot be read.
  [[nodiscard]] k8s::Result<ComputeModes> read() const;
  // Replaces the file as a whole. Errors: `unavailable`.
  [[nodiscard]] k8s::Result<void> write(const ComputeModes& modes) const;
  void forget() const { memory_.forget(); }

 private:
  BootMemory memory_;
};

// Remembers the mode of each GPU, then sets EXCLUSIVE_PROCESS. If one GPU cannot be set, those before it get their mode
// back.
boost::asio::awaitable<k8s::Result<void>> set_exclusive(k8s::Clock* clock, ComputeModeMemory memory,
                                                        std::vector<NodeGpu> gpus, Logger* log);

// Sets the remembered modes, on GPUs that are still in EXCLUSIVE_PROCESS. What could not be set stays remembered.
// Returns whether every GPU has its mode again.
boost::asio::awaitable<bool> restore_compute_modes(k8s::Clock* clock, ComputeModeMemory memory, Logger* log);

}  // namespace gso
