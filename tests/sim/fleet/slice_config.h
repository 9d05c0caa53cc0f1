// The config document of Nebuly's fork of the device plugin: MPS slices by their size, on the GPU that each entry
// names. Deliberately not the operator's reader and writer of this format: if both had the same bug, the simulated
// fleet would agree with it. Source of the field names: nos, pkg/gpu and internal/partitioning/mps.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>

namespace gso::sim {

// GPU index -> size in GB -> how many.
using SliceCounts = std::map<std::size_t, std::map<std::int64_t, std::int64_t>>;

struct SliceConfig {
  SliceCounts slices;
  bool fail_requests_greater_than_one = false;
};

// For a machine with `gpus` GPUs. An empty document has no slices. The error is the text that the program prints before
// it exits with 1.
[[nodiscard]] std::expected<SliceConfig, std::string> read_slice_config(std::string_view text, std::size_t gpus);

// "nvidia.com/gpu-10gb"
[[nodiscard]] std::string slice_resource(std::int64_t gigabytes);
// The size in such a name, or 0 for any other name.
[[nodiscard]] std::int64_t slice_size(std::string_view resource);

}  // namespace gso::sim
