// The GPUs of a machine, and what feature discovery and the device plugin make of them under a config.
// Written from the rules in the device plugin's documentation of its labels, independently of the operator's own
// prediction.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/fleet/plugin_config.h"

namespace gso::sim {

struct MigSlice {
  std::string profile;  // 1g.5gb
  std::int64_t memory_mib = 0;
  std::int64_t multiprocessors = 0;
  std::int64_t gpu_slices = 1;
  std::int64_t compute_slices = 1;
};

struct Gpu {
  std::string product;  // As NVML names it.
  std::int64_t memory_mib = 0;
  int compute_major = 0;
  int compute_minor = 0;
  bool mig_capable = false;
  bool mig_enabled = false;
  std::vector<MigSlice> slices = {};
};

[[nodiscard]] Gpu a100();                       // NVIDIA-A100-SXM4-40GB
[[nodiscard]] Gpu a100_mig_1g(int slices = 7);  // The same, MIG enabled, cut into 1g.5gb.
[[nodiscard]] Gpu t4();                         // Tesla-T4

// The JSON of the node annotation gpusharing.dev/devices.
[[nodiscard]] std::string devices_json(const std::vector<Gpu>& gpus);

// How many devices the plugin registers, by registered name; the error is what it prints before it exits with 1.
[[nodiscard]] std::expected<std::map<std::string, std::int64_t>, std::string> plugin_devices(
    const PluginConfig& config, const std::vector<Gpu>& gpus);

// Feature discovery's labels about GPUs. `pick` chooses the model whose labels win on a machine with several models
// (upstream's choice is random). The error is what it prints before it exits with 1.
[[nodiscard]] std::expected<std::map<std::string, std::string>, std::string> discovery_labels(
    const PluginConfig& config, const std::vector<Gpu>& gpus, std::size_t pick = 0);

// Why the MPS control daemon would exit, or empty.
[[nodiscard]] std::string mps_daemon_error(const PluginConfig& config, const std::vector<Gpu>& gpus);

}  // namespace gso::sim
