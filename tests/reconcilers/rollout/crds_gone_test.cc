// What is said where the CRDs are gone and the last known specs of the policies govern.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::crds_gone_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What the finding says once the CRDs of a recorded fleet are deleted.
std::string said_without_crds(bool by_operator) {
  FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}};
  spec.nodes = alike_nodes(1, "NVIDIA-A100-SXM4-40GB", "a");
  FleetModel fleet(spec);
  if (by_operator) fleet.settings.options_text = "";
  fleet.settle();
  fleet.serve_crds(false);
  const Plan planned = fleet.tick();
  const auto found =
      std::ranges::find(planned.findings, kCrdsGone, [](const Finding& finding) { return finding.why.code; });
  return found == planned.findings.end() ? std::string() : found->why.message;
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
