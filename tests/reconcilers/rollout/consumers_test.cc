// Which pods count as GPU consumers of a node: those that a change of its sharing may break.
#include <gtest/gtest.h>

#include "reconcilers/fleet/fleet.h"

namespace gso::test {
namespace {

struct Case {
  std::string_view name;
  void (*make)(Pod&);
  bool consumer;
};

void own(Pod& pod, std::string_view kind) {
  pod.meta.owners.push_back({Interned(kind), Interned("owner"), Interned("uid"), true});
}

class Consumer : public testing::TestWithParam<Case> {};

TEST_P(Consumer, IsTold) {
  World world;
  Pod pod;
  pod.meta.name = "p";
  pod.phase = Interned("Running");
  GetParam().make(pod);
  EXPECT_EQ(is_gpu_consumer(pod, world), GetParam().consumer);
}

constexpr Case kCases[] = {
    {"RequestsGPUs", [](Pod& p) { p.gpu_requests[Interned("nvidia.com/gpu")] = 1; }, true},
    {"RequestsSharedGPUs", [](Pod& p) { p.gpu_requests[Interned("nvidia.com/gpu.shared")] = 1; }, true},
    {"RequestsMIGDevices", [](Pod& p) { p.gpu_requests[Interned("nvidia.com/mig-1g.5gb")] = 1; }, true},
    {"RequestsNothing", [](Pod&) {}, false},
    {"RequestsZero", [](Pod& p) { p.gpu_requests[Interned("nvidia.com/gpu")] = 0; }, false},
    {"HasFinished",
     [](Pod& p) {
       p.gpu_requests[Interned("nvidia.com/gpu")] = 1;
       p.phase = Interned("Succeeded");
     },
     false},
    {"RuntimeClassWithoutARequest", [](Pod& p) { p.runtime_class = Interned("nvidia"); }, true},
    {"RuntimeClassOfADaemonSet",
     [](Pod& p) {
       p.runtime_class = Interned("nvidia");
       own(p, "DaemonSet");
     },
     false},
    {"VisibleDevicesWithoutARequest",
     [](Pod& p) {
       p.nvidia_visible_devices = true;
       own(p, "ReplicaSet");
     },
     true},
    {"VisibleDevicesOfADaemonSet",
     [](Pod& p) {
       p.nvidia_visible_devices = true;
       own(p, "DaemonSet");
     },
     false},
    {"MountsAnMPSPipe", [](Pod& p) { p.uses_mps_pipe = true; }, true},
    {"HasADRAClaim", [](Pod& p) { p.dra_gpu_claim = true; }, true},
    {"HasAKAIFraction", [](Pod& p) { p.meta.annotations.set("gpu-fraction", "0.5"); }, true},
    {"HasAKAIMemoryShare", [](Pod& p) { p.meta.annotations.set("gpu-memory", "2000"); }, true},
};
INSTANTIATE_TEST_SUITE_P(Pods, Consumer, testing::ValuesIn(kCases),
                         [](const auto& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace gso::test
