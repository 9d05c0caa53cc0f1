// What a profile makes of a node's GPUs: GFD's labels and the plugin's allocatable.
// Source of the rules: the device plugin repository, internal/lm and internal/rm (v0.20.0).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct MigDevice {
  std::string profile;                             // 1g.5gb, 1g.5gb+me
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
  std::int64_t pinned_memory_mib = 0;  // Per client; 0: unknown. The smallest where GPUs differ.
  std::int64_t thread_percentage = 0;
  std::vector<std::int64_t> pinned_memory_mib_by_gpu;  // By index of the device; 0: unknown, no limit is set.
};

struct Expectation {
  std::map<std::string, std::string> labels;          // What the node shows. Empty when GFD would exit.
  std::map<std::string, std::string> dropped_labels;  // GFD writes them, NFD drops them: no valid label value.
  std::map<std::string, std::int64_t>
      allocatable;                   // By registered name (".shared" when renamed); 0 for the name left behind.
  std::optional<std::string> error;  // A component would exit on this config with these GPUs.
  std::vector<MpsLimits> mps;
  bool labels_unreliable = false;  // Different models: upstream's labels vary from loop to loop.
};

// For a profile that the parser accepts (ParsedProfile::accepted), valid or not.
[[nodiscard]] Expectation expected_state(const Profile& profile, const std::vector<Device>& devices);

// GFD's product label: every character outside [A-Za-z0-9-_. ] dropped, blanks to '-'. Never truncated.
[[nodiscard]] std::string sanitise_product(std::string_view product);

// GFD's families with the lowest compute capability of each.
struct GpuFamily {
  std::string_view name;
  int major = 0;
  int minor = 0;
};
inline constexpr GpuFamily kGpuFamilies[] = {
    {"tesla", 1, 0},      {"fermi", 2, 0},      {"kepler", 3, 0}, {"maxwell", 5, 0},      {"pascal", 6, 0},
    {"volta", 7, 0},      {"turing", 7, 5},     {"ampere", 8, 0}, {"ada-lovelace", 8, 9}, {"hopper", 9, 0},
    {"blackwell", 10, 0}, {"blackwell", 12, 0}, {"rubin", 13, 0}};
// GFD's family label by compute capability: "turing", "ampere", …; "undefined" for one it does not know.
[[nodiscard]] std::string_view gpu_family(int compute_major, int compute_minor);

// Why the plugin exits on these GPUs under migStrategy single; nullopt: it does not.
[[nodiscard]] std::optional<std::string> single_strategy_error(const std::vector<Device>& devices);

// --- The GPUs of a machine as people write them down: the annotation gpusharing.dev/devices, `expect --devices`, and
// a Node's manifest.

// The JSON of `expect --devices` (design: command line). Errors (reason `decode`) name the entry and the field.
// `ignored`: gets a sentence for each field that does not exist.
[[nodiscard]] k8s::Result<std::vector<Device>> parse_devices(std::string_view json,
                                                             std::vector<std::string>* ignored = nullptr);

// For `expect --node`: from the annotation gpusharing.dev/devices, else from GFD's labels of a node with one GPU model
// and no MIG. Errors (reason `decode`) say what the manifest lacks.
[[nodiscard]] k8s::Result<std::vector<Device>> devices_of_node(std::string_view manifest);

}  // namespace gso
