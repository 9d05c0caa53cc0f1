// Commands that explain proposes, as they work in the cluster at hand.
#include <gtest/gtest.h>

#include <string>

#include "reconcilers/explain/remedy.h"

namespace gso {
namespace {

// `rollout status` answers there that the CRDs are missing: whoever follows the advice goes round in a circle.
TEST(Remedy, WithoutSharingRolloutsTheProgressIsShownByStatus) {
  World world;
  EXPECT_EQ(command_here(world, std::string(kRolloutStatusCommand)), "gpu-sharing-operator status");
  EXPECT_EQ(command_here(world, "kubectl describe node n"), "kubectl describe node n");
  world.policies_served = true;
  EXPECT_EQ(command_here(world, std::string(kRolloutStatusCommand)), kRolloutStatusCommand);
}

}  // namespace
}  // namespace gso
