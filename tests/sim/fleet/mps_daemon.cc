#include "tests/sim/fleet/mps_daemon.h"

#include <utility>

namespace gso::sim {

void MpsDaemon::load() {
  const auto config = load_config(host());
  if (!config) return host().exit(1, "unable to load config: " + config.error());
  if (!config->mps) {
    // It creates .ready all the same, and stays Running.
    return host().log("No devices are configured for MPS sharing; Waiting indefinitely.");
  }
  if (const std::string error = mps_daemon_error(*config, host().machine().gpus()); !error.empty())
    return host().exit(1, error);
  host().after(host().timing().mps_init, [this, config = *config] {
    for (const PluginConfig::Resource& resource : config.resources) {
      if (resource.name != "nvidia.com/gpu" || host().machine().gpus().empty()) continue;  // No such device here.
      host().machine().start_mps(config.registered_name(resource.name), config.replicas_largest(resource.name));
      serving_ = true;
    }
  });
}

void MpsDaemon::hang_up() {
  terminate();
  load();
}

void MpsDaemon::terminate() {
  if (std::exchange(serving_, false)) host().machine().stop_mps(true);
}

// Killed, not asked: GPUs stay in EXCLUSIVE_PROCESS.
void MpsDaemon::gone() {
  if (std::exchange(serving_, false)) host().machine().stop_mps(false);
}

}  // namespace gso::sim
