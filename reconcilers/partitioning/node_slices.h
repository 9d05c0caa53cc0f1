// The slices of one node as its labels and annotations report them.
//
// Source: nebuly-ai/nos at 12e0a72, pkg/gpu/annotation.go: its gpu-agent writes
// nos.nebuly.com/status-gpu-<index>-<N>gb-used|free on the Node, every 10 s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reconcilers/model/objects.h"
#include "reconcilers/partitioning/geometry.h"

namespace gso {

struct GpuSlices {
  SliceCounts used;
  SliceCounts free;
};

struct NodeSlices {
  std::vector<GpuSlices> gpus;  // By index; a GPU without annotations is empty.
  std::int64_t memory_mib = 0;  // Of one GPU: the label nvidia.com/gpu.memory.
  // Why the node cannot be partitioned: a label is missing or no number, or the report makes no sense. Then nothing
  // else is set. Empty: no problem.
  std::string problem;
  [[nodiscard]] Geometry used() const;
  [[nodiscard]] Geometry all() const;      // Used and free.
  [[nodiscard]] SliceCounts free() const;  // Of all GPUs together.
};

[[nodiscard]] NodeSlices read_slices(const Node& node);

}  // namespace gso
