// The GPU Operator's MIG manager: cuts a node's GPUs as the label nvidia.com/mig.config says. It takes the device
// plugin and feature discovery off the node while it works, and reports how far it is in nvidia.com/mig.config.state.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/fleet/gpu.h"
#include "tests/sim/fleet/machine.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

class MigManager : public Actor {
 public:
  // `machine_of` gives the machine of a node, or nullptr.
  MigManager(Site* site, std::function<Machine*(const std::string&)> machine_of);

  void on_node(const JsonPtr& after);

 private:
  void reconfigure(const std::string& node, const std::string& config);
  void apply_once_alone(const std::string& node, std::vector<Gpu> gpus);
  void write(const std::string& node, const std::string& state, const char* deploy);

  std::function<Machine*(const std::string&)> machine_of_;
  std::map<std::string, std::string> seen_;  // By node: the config that was handled, or is.
};

}  // namespace gso::sim
