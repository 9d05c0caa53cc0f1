// Nebuly's fork of the device plugin, with the MPS servers that it runs: registers nvidia.com/gpu-<N>gb for the slices
// of its config, and nvidia.com/gpu for the GPUs that have none. Its source is not available; what is played here
// follows from nos's types, documentation and issues:
//  - It reads its config at start and at SIGHUP only, and serves nothing while it starts anew: allocatable is 0 then,
//    and pods go on.
//  - Clients of slices that are still there after a reload go on. Whoever had one that is not there loses its server.
//  - A config that it cannot use ends it. Its servers stay as long as the pod, so that the clients of a plugin in a
//    crash loop go on; with the pod they go, too.
#pragma once

#include <string>

#include "tests/sim/fleet/program.h"
#include "tests/sim/fleet/slice_config.h"

namespace gso::sim {

class SlicePlugin final : public Program {
 public:
  using Program::Program;
  void start() override { load(); }
  void hang_up() override;
  void terminate() override;
  void gone() override { stop_serving(); }
  [[nodiscard]] std::string process_name() const override { return "nvidia-device-plugin"; }

 private:
  void load();
  void serve(const SliceConfig& config);
  void stop_serving();

  bool initialising_ = false;
  bool reload_wanted_ = false;  // SIGHUP during initialisation is looked at after it.
};

}  // namespace gso::sim
