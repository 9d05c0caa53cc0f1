// What a node's capacity says of the profile that it should serve, case by case.
#include <gtest/gtest.h>

#include <string>

#include "reconcilers/cluster/facts.h"

namespace gso::test::verify_test {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kShared = "nvidia.com/gpu.shared";

// A node of two GPUs with four replicas each, whose resource must be registered without ".shared".
NodeExpectation eight() {
  NodeExpectation out;
  out.strategy = Strategy::time_slicing;
  out.capacity = {{kGpu, 8}, {kShared, 0}};
  out.replicas = {{kGpu, 4}};
  return out;
}

TEST(Verify, ComparesCapacityAndAllocatableOfEachResource) {
  struct Case {
    const char* what;
    std::int64_t capacity, allocatable;              // Of nvidia.com/gpu.
    std::int64_t other_capacity, other_allocatable;  // Of nvidia.com/gpu.shared.
    bool ok, unhealthy, shortfall, surplus, serving;
  };
  const Case cases[] = {
      {"all devices are healthy", 8, 8, 0, 0, true, false, false, false, true},
      {"some devices are unhealthy", 8, 4, 0, 0, true, true, false, false, true},
      {"no device is healthy", 8, 0, 0, 0, false, false, false, false, false},
      {"one device is missing", 4, 4, 0, 0, false, false, true, false, true},
      {"one device more", 12, 12, 0, 0, false, false, false, true, true},
      {"no whole number of devices", 6, 6, 0, 0, false, false, false, false, true},
      {"nothing is registered", 0, 0, 0, 0, false, false, false, false, false},
      {"the other name is still there, and the kubelet hands none out", 8, 8, 8, 0, true, false, false, false, true},
      {"the other name can still be handed out", 8, 8, 8, 8, false, false, false, false, true},
      {"the other name can still be handed out, and a device is missing", 4, 4, 8, 8, false, false, false, false, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Node node;
    node.capacity[k8s::Interned(kGpu)] = c.capacity;
    node.capacity[k8s::Interned(kShared)] = c.other_capacity;
    node.allocatable[k8s::Interned(kGpu)] = c.allocatable;
    node.allocatable[k8s::Interned(kShared)] = c.other_allocatable;
    const Verification seen = verify(eight(), node, false, true);
    EXPECT_EQ(seen.ok, c.ok) << seen.mismatch;
    EXPECT_EQ(seen.unhealthy, c.unhealthy);
    EXPECT_EQ(seen.shortfall, c.shortfall);
    EXPECT_EQ(seen.surplus, c.surplus);
    EXPECT_EQ(seen.serving, c.serving);
  }
}

}  // namespace
}  // namespace gso::test::verify_test
