#include "tests/sim/fleet/feature_discovery.h"

#include <utility>

namespace gso::sim {

void FeatureDiscovery::load() {
  ++generation_;
  const auto config = load_config(host());
  if (!config) return host().exit(1, "unable to load config: " + config.error());
  config_ = *config;
  timestamp_ =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(host().now().time_since_epoch()).count());
  host().after(host().timing().discovery_init, [this, generation = generation_] {
    if (generation == generation_) publish();
  });
}

void FeatureDiscovery::publish() {
  const auto pick = static_cast<std::size_t>(host().pace().uniform() * 1000.0);
  auto labels = discovery_labels(config_, host().machine().gpus(), pick);
  if (!labels) return host().exit(1, "error generating labels: " + labels.error());
  if (!labels->empty()) (*labels)["nvidia.com/gfd.timestamp"] = timestamp_;
  host().publish_features(*std::move(labels));
  host().after(host().timing().discovery_loop, [this, generation = generation_] {
    if (generation == generation_) publish();
  });
}

}  // namespace gso::sim
