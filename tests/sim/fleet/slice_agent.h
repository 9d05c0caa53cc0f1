// nos's gpu-agent: every ten seconds it reports the slices of its node, used and free, as annotations
// nos.nebuly.com/status-gpu-<index>-<N>gb-used|free. What it reports, the node's agent finds out (node_slices.cc).
#pragma once

#include <string>

#include "tests/sim/fleet/program.h"

namespace gso::sim {

class SliceAgent final : public Program {
 public:
  using Program::Program;
  void start() override { tick(); }
  [[nodiscard]] std::string process_name() const override { return "gpuagent"; }

 private:
  void tick() {
    host().after(host().timing().slice_report, [this] {
      host().report_slices();
      tick();
    });
  }
};

}  // namespace gso::sim
