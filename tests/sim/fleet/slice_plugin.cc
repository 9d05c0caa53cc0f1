#include "tests/sim/fleet/slice_plugin.h"

#include <numeric>
#include <utility>

namespace gso::sim {

void SlicePlugin::load() {
  if (host().machine().driver_broken())
    return host().exit(1, "failed to initialize NVML: Driver/library version mismatch");
  std::string text;
  if (!host().env("CONFIG_FILE").empty()) {
    auto read = host().read_link();
    if (!read) return host().exit(1, "unable to load config: " + read.error());
    text = *std::move(read);
  }
  const auto config = read_slice_config(text, host().machine().gpus().size());
  if (!config) return host().exit(1, "unable to load config: " + config.error());
  initialising_ = true;
  host().after(host().timing().slice_init, [this, config = *config] {
    initialising_ = false;
    serve(config);
  });
}

void SlicePlugin::serve(const SliceConfig& config) {
  const std::int64_t most = host().most_slices();
  for (const auto& [gpu, sizes] : config.slices) {
    const std::int64_t slices = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                                                [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
    if (most > 0 && slices > most)
      return host().exit(1, "error starting the MPS servers of device " + std::to_string(gpu));
  }
  host().machine().serve_slices(config.slices, config.fail_requests_greater_than_one);
  if (std::exchange(reload_wanted_, false)) hang_up();
}

void SlicePlugin::hang_up() {
  if (initialising_) {
    reload_wanted_ = true;
    return;
  }
  stop_serving();
  load();
}

void SlicePlugin::stop_serving() {
  host().machine().stop_serving_slices();
}

// The pod goes, and with it the servers.
void SlicePlugin::terminate() {
  stop_serving();
  host().machine().end_slice_servers();
}

}  // namespace gso::sim
