// GPU feature discovery: labels from the config it read at start or SIGHUP, recomputed every minute for the hardware
// only.
#pragma once

#include <string>

#include "tests/sim/fleet/program.h"

namespace gso::sim {

class FeatureDiscovery final : public Program {
 public:
  using Program::Program;
  void start() override { load(); }
  // Its file is away until it has labels again, and for good when it ends.
  void hang_up() override {
    host().remove_features();
    load();
  }
  void terminate() override { host().remove_features(); }
  [[nodiscard]] std::string process_name() const override { return "gpu-feature-discovery"; }

 private:
  void load();
  void publish();

  unsigned generation_ = 0;
  PluginConfig config_;
  std::string timestamp_;  // Of the last (re)load.
};

}  // namespace gso::sim
