// The device plugin: reads its config at start and at SIGHUP only, and registers replicas with kubelet.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/fleet/program.h"

namespace gso::sim {

class DevicePlugin final : public Program {
 public:
  using Program::Program;
  void start() override { load(); }
  void hang_up() override;
  void terminate() override { stop_serving(); }
  void gone() override { stop_serving(); }
  [[nodiscard]] std::string process_name() const override { return "nvidia-device-plugin"; }

 private:
  void load();
  void serve(const PluginConfig& config);
  void stop_serving();

  bool initialising_ = false;
  bool reload_wanted_ = false;  // SIGHUP during initialisation is looked at after it.
  unsigned generation_ = 0;     // Of load(): a retry that was overtaken by a reload is dropped.
  std::vector<std::string> serving_;
};

}  // namespace gso::sim
