// Quantities, and resources that name slices of GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

// --- Kubernetes quantities: "8", "500m", "2Ki", "1e3".

// nullopt: no quantity. The digits are read as a whole number and divided once, so that 1.5 and 1500m are equal.
// Source: k8s.io/apimachinery/pkg/api/resource (Quantity).
[[nodiscard]] std::optional<long double> parse_quantity(std::string_view text);

// --- The resources that nos's device plugin serves: nvidia.com/gpu-<N>gb, a slice of N GiB of one GPU's memory.

// N of a resource whose whole name is nvidia.com/gpu-<N>gb with N of at least 1, written without leading zeros and at
// most 99999; nullopt for any other name.
[[nodiscard]] std::optional<std::int64_t> slice_gigabytes(std::string_view resource);
// "nvidia.com/gpu-10gb"
[[nodiscard]] std::string slice_resource(std::int64_t gigabytes);

}  // namespace gso
