// Names of extended resources that no device plugin offers, because they are misspelt.
#pragma once

#include <string_view>

namespace gso {

// The name that is meant by `resource`: "nvidia.com/gpu" by nvidia.com/gpus, nvidia.com/GPU or nvida.com/gpu. Empty:
// it is no such name. Other plugins offer nvidia.com/vgpu, nvidia.com/gpumem, nvidia.com/gpu-10gb, and more: those are
// left alone.
[[nodiscard]] std::string_view meant_resource(std::string_view resource);

}  // namespace gso
