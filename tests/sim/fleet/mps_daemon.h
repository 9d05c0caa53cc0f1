// mps-control-daemon: one MPS server per shared resource. "Running" says nothing about what it serves.
#pragma once

#include <string>

#include "tests/sim/fleet/program.h"

namespace gso::sim {

class MpsDaemon final : public Program {
 public:
  using Program::Program;
  void start() override { load(); }
  void hang_up() override;
  void terminate() override;
  void gone() override;
  // The sidecar looks for "/usr/bin/mps-control-daemon", which this is not: it never gets its SIGHUP.
  [[nodiscard]] std::string process_name() const override { return "mps-control-daemon"; }

 private:
  void load();
  bool serving_ = false;
};

}  // namespace gso::sim
