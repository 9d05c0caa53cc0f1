// Which resource a misspelt name means.
#include "reconcilers/profile/field_names.h"

#include <gtest/gtest.h>

#include <string_view>

namespace gso::resource_name_test {
namespace {

TEST(ResourceName, AMisspeltNameMeansTheResourceThatAPluginOffers) {
  const struct {
    std::string_view resource;
    std::string_view meant;
  } table[] = {
      {"nvidia.com/gpus", "nvidia.com/gpu"},
      {"nvidia.com/GPU", "nvidia.com/gpu"},
      {"nvida.com/gpu", "nvidia.com/gpu"},
      {"nvidia.con/gpu", "nvidia.com/gpu"},
      {"nvidia/gpu", "nvidia.com/gpu"},
      {"NVIDIA/gpus", "nvidia.com/gpu"},
      {"nvidia.com/gpu-shared", "nvidia.com/gpu.shared"},
      {"nvidia.com/gpu.share", "nvidia.com/gpu.shared"},
      {"nvidia.com/gpus.shared", "nvidia.com/gpu.shared"},
      {"nvidia.com/gpu", ""},
      {"nvidia.com/gpu.shared", ""},
      {"nvidia.com/mig-1g.5gb", ""},
      {"nvidia.com/gpu-10gb", ""},
      // Of other plugins: vGPU and passthrough of KubeVirt, HAMi's memory and cores.
      {"nvidia.com/vgpu", ""},
      {"nvidia.com/pgpu", ""},
      {"nvidia.com/gpumem", ""},
      {"nvidia.com/gpucores", ""},
      {"amd.com/gpu", ""},
      {"nvidia/vgpu", ""},
      {"gpu.intel.com/i915", ""},
      {"cpu", ""},
  };
  for (const auto& [resource, meant] : table) EXPECT_EQ(meant_resource(resource), meant) << resource;
}

}  // namespace
}  // namespace gso::resource_name_test
