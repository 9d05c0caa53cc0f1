#include "tests/sim/fleet/device_plugin.h"

#include <algorithm>
#include <utility>

namespace gso::sim {

void DevicePlugin::load() {
  const unsigned generation = ++generation_;
  if (host().machine().driver_broken())
    return host().exit(1, "failed to initialize NVML: Driver/library version mismatch");
  const auto config = load_config(host());
  if (!config) return host().exit(1, "unable to load config: " + config.error());
  if (config->mps && config->mig_strategy == "mixed")
    return host().exit(1, "using --mig-strategy=mixed is not supported with MPS");
  if (config->mps && host().env("MPS_ROOT").empty())
    return host().exit(1, "using MPS requires --mps-root to be specified");
  initialising_ = true;
  const std::string text = host().read_link().value_or("");
  host().after(host().timing().plugin_init, [this, generation, config = *config, text] {
    if (generation != generation_) return;
    initialising_ = false;
    host().machine().set_plugin_text(text);
    serve(config);
  });
}

void DevicePlugin::serve(const PluginConfig& config) {
  const auto devices = plugin_devices(config, host().machine().gpus());
  if (!devices) return host().exit(1, "error getting plugins: " + devices.error());
  const auto& servers = host().machine().mps();
  const bool daemon_missing =
      config.mps && std::ranges::any_of(*devices, [&](const auto& entry) { return !servers.contains(entry.first); });
  if (daemon_missing) {
    // One that fails stops all. The loop reads the config file again.
    host().log("error waiting for MPS daemon; Failed to start one or more plugins. Retrying in 30s...");
    host().after(host().timing().plugin_retry, [this, generation = generation_] {
      if (generation == generation_) load();
    });
  } else {
    for (const auto& [resource, count] : *devices) {
      host().machine().serve(resource, count, config.fail_requests_greater_than_one && config.shared, config.mps);
      serving_.push_back(resource);
    }
  }
  if (std::exchange(reload_wanted_, false)) hang_up();
}

void DevicePlugin::hang_up() {
  if (initialising_) {
    reload_wanted_ = true;
    return;
  }
  // The servers stop before the new config is looked at: allocatable is 0 even if it turns out to be bad.
  stop_serving();
  load();
}

void DevicePlugin::stop_serving() {
  if (!serving_.empty()) host().machine().set_plugin_text("");
  for (const std::string& resource : std::exchange(serving_, {})) host().machine().stop_serving(resource);
}

}  // namespace gso::sim
