#include "tests/sim/fleet/program.h"

namespace gso::sim {

std::expected<PluginConfig, std::string> load_config(const ProgramHost& host) {
  std::string text;
  if (!host.env("CONFIG_FILE").empty()) {
    auto read = host.read_link();
    if (!read) return std::unexpected(read.error());
    text = *std::move(read);
  }
  auto config = read_plugin_config(text, host.version());
  if (config && !host.env("MIG_STRATEGY").empty()) config->mig_strategy = host.env("MIG_STRATEGY");
  return config;
}

}  // namespace gso::sim
