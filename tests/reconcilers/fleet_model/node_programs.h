// What NVIDIA's programs do with a config file on a node of the model: what the plugin serves, what GPU Feature
// Discovery shows, which program exits. By the rules of the emulated programs (tests/sim/fleet), which share nothing
// with the operator's parser and its predictions: an error there shows as a node that does not become what the operator
// expects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/sim/fleet/plugin_config.h"

namespace gso::test {

// / Why the main container of `component` (plugin, gfd, mps) exits there; empty if it runs.
[[nodiscard]] std::string exit_reason(std::string_view component, const sim::PluginConfig& config,
                                      const NodeSpec& node);

// / Allocatable by registered name while `broken_devices` of the node's devices are gone; empty if the plugin exits, /
// or waits for an MPS daemon that never comes.
[[nodiscard]] std::map<std::string, std::int64_t> served_devices(const sim::PluginConfig& config, const NodeSpec& node,
                                                                 std::int64_t broken_devices);

// / The labels that NFD publishes for GPU Feature Discovery; none if it exits.
[[nodiscard]] std::optional<std::map<std::string, std::string>> shown_labels(const sim::PluginConfig& config,
                                                                             const NodeSpec& node);

}  // namespace gso::test
