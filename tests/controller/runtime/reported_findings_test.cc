// A finding is logged once for as long as it lasts, also where single passes lack it.
#include "controller/runtime/outage_log.h"

#include <gtest/gtest.h>

#include <chrono>

namespace gso::reported_findings_test {
namespace {

using namespace std::chrono_literals;

TEST(ReportedFindingsTest, AFindingIsNewAgainOnlyAfterItWasAbsentForAMinute) {
  const struct {
    k8s::Duration at;
    bool there;
    bool logged;
  } passes[] = {
      {0s, true, true},     {0s, true, false},  // Twice in one pass.
      {10s, false, false},  {11s, true, false},   {21s, false, false}, {60s, true, false},
      {119s, false, false}, {120s, false, false}, {130s, true, true},
  };
  ReportedFindings findings;
  const k8s::MonoTime start{};
  for (const auto& pass : passes) {
    const k8s::MonoTime now = start + pass.at;
    const bool logged = pass.there && findings.is_new("Node a01 WaitingForWorkloads pods use it", now);
    EXPECT_EQ(logged, pass.logged) << std::chrono::duration_cast<std::chrono::seconds>(pass.at).count() << " s";
    findings.end_pass(now);
  }
}

TEST(ReportedFindingsTest, EachFindingIsJudgedForItself) {
  ReportedFindings findings;
  const k8s::MonoTime now{};
  EXPECT_TRUE(findings.is_new("Node a01 Held by a person", now));
  EXPECT_TRUE(findings.is_new("Node a02 Held by a person", now));
  EXPECT_FALSE(findings.is_new("Node a01 Held by a person", now));
}

}  // namespace
}  // namespace gso::reported_findings_test
