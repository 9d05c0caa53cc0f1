// What is said where the CRDs are gone and the last known specs of the policies govern.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::crds_gone_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What the finding says once the CRDs of a recorded fleet are deleted.
std::string said_without_crds(bool by_operator) {
  FleetModel fleet(spec_of(1));
  if (by_operator) fleet.settings.options_text = "";
  fleet.settle();
  fleet.serve_crds(false);
  return said_with(fleet.tick(), kCrdsGone).at(0);
}

// Files can lack the CRDs although the cluster has them. What the operator says is about its cluster alone.
TEST(CrdsGone, FilesAreNamedWhereFilesCanHaveBeenRead) {
  const std::string gone = "The SharingPolicy/SharingRollout CRDs are not installed in this cluster";
  EXPECT_THAT(said_without_crds(true), HasSubstr(gone + ": the last known specs of these policies apply: default."));
  EXPECT_THAT(
      said_without_crds(false),
      AllOf(HasSubstr(gone + ", or the files that were read contain neither the CRDs nor a SharingPolicy: the "),
            Not(HasSubstr("`plan`"))));
}

}  // namespace
}  // namespace gso::test::crds_gone_test
