// The procedures of NVIDIA's documents about MPS in virtual time, the invariants judged on every write. The same run on
// a real API server (tests/conformance/short_stories_test.sh).
#include <gtest/gtest.h>

#include "tests/sim/story/virtual_world.h"

namespace gso::sim::seed_scenario_test {
namespace {

void tell(const std::string& name) {
  tell_in_virtual_time(seed_scenarios(), name);
}

TEST(SeedScenario, OneClusterWideConfiguration) {
  tell("cluster-wide");
}
TEST(SeedScenario, SeveralProfilesByNodeLabel) {
  tell("by-label");
}
TEST(SeedScenario, AProfileByLabelSelector) {
  tell("by-selector");
}
TEST(SeedScenario, MpsByLabelIsRefusedWhereThePluginCannotDoIt) {
  tell("by-label-v0.20");
}
TEST(SeedScenario, ConfiguredBeforeTheGpuOperatorIsInstalled) {
  tell("before-installation");
}
TEST(SeedScenario, AnUpdatedConfigMapNeedsNoManualRestart) {
  tell("update");
}
TEST(SeedScenario, VerificationShowsWhatTheDocumentPrints) {
  tell("verification");
}
TEST(SeedScenario, MigSingleCarriesProfileAndSuffix) {
  tell("mig-single");
}
TEST(SeedScenario, MpsIsRefusedOnMig) {
  tell("mps-on-mig");
}
TEST(SeedScenario, MpsInKindOnOneNode) {
  tell("kind");
}
TEST(SeedScenario, ThereIsATestForEach) {
  EXPECT_EQ(seed_scenarios().size(), 10U);
}

}  // namespace
}  // namespace gso::sim::seed_scenario_test
