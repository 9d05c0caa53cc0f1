// What a profile makes of a node's GPUs: GFD's labels and the plugin's allocatable.
// Source of the rules: the device plugin repository, internal/lm and internal/rm (v0.20.0).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/profile/profile.h"

namespace gso {

struct MigDevice {
  std::string profile;                            // 1g.5gb, 1g.5gb+me
  std::map<std::string, std::int64_t> attributes;  // memory (MiB), multiprocessors, slices.gi, …
};

struct Device {
  std::string name;  // NVML product name: "NVIDIA A100-SXM4-40GB"
  std::int64_t memory_mib = 0;
  int compute_major = 0;
  int compute_minor = 0;
  bool mig_capable = false;
  bool mig_enabled = false;
  std::int64_t pci_class = 0x030200;
  std::vector<MigDevice> mig_devices;
};

struct MpsLimits {
  std::string resource;
  std::int64_t pinned_memory_mib = 0;  // Per client; 0: unknown.
  std::int64_t thread_percentage = 0;
};

struct Expectation {
  std::map<std::string, std::string> labels;            // Empty when GFD would exit.
  std::map<std::string, std::int64_t> allocatable;      // By registered name (".shared" when renamed); 0 for the name left behind.
  std::optional<std::string> error;                     // A component would exit on this config with these GPUs.
  std::vector<MpsLimits> mps;
  bool labels_unreliable = false;                       // Different models: upstream's labels vary from loop to loop.
};

[[nodiscard]] Expectation expected_state(const Profile& profile, const std::vector<Device>& devices);

// GFD's product label: every character outside [A-Za-z0-9-_. ] dropped, blanks to '-'. Never truncated.
[[nodiscard]] std::string sanitise_product(std::string_view product);

}  // namespace gso
