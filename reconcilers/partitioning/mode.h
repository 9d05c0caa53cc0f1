// How far node.partitioning goes.
#pragma once

#include <cstdint>

namespace gso {

// `off`: nothing is watched or planned. `observe`: what would be written is reported instead.
enum class PartitioningMode : std::uint8_t { enforce, observe, off };

}  // namespace gso
