// config-manager: the init container and sidecar that points /config/config.yaml at one key of the ConfigMap and sends
// SIGHUP. With its real defects, by version; see the comments at each.
#pragma once

#include <optional>
#include <string>

#include "tests/sim/fleet/program.h"

namespace gso::sim {

class ConfigManager final : public Program {
 public:
  using Program::Program;
  void start() override;
  void node_changed() override;
  [[nodiscard]] std::string process_name() const override { return "config-manager"; }

 private:
  void apply(const std::string& label);
  void observe();
  [[nodiscard]] bool oneshot() const;

  bool informed_ = false;               // The informer has listed the node.
  std::optional<std::string> applied_;  // The label value that was handled last.
};

}  // namespace gso::sim
