// In which order waiting pods are served.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/slice_plan.h"

namespace gso::testing::pending_pods_test {
namespace {

SlicePod waiting(const std::string& name, std::int32_t priority, std::int64_t gigabytes) {
  SlicePod out;
  out.meta.name = name;
  out.meta.ns = Interned("ns");
  out.phase = Interned("Pending");
  out.unschedulable = true;
  out.priority = priority;
  out.slices = {gigabytes};
  return out;
}

// The packing of a large fleet serves them in this order.
TEST(PendingPods, HigherPrioritiesComeFirstAndThenSmallerRequests) {
  World world;
  world.partitioning.pods.apply(waiting("batch", 1, 10));
  world.partitioning.pods.apply(waiting("large-service", 100, 30));
  world.partitioning.pods.apply(waiting("small-service", 100, 20));
  std::vector<std::string> names;
  for (const SlicePod* pod : pending_pods(world, 1000).considered) names.push_back(pod->meta.name);
  EXPECT_EQ(names, (std::vector<std::string>{"small-service", "large-service", "batch"}));
}

}  // namespace
}  // namespace gso::testing::pending_pods_test
