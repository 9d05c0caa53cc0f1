// What an audit reports about nodes in a change, and about the slots that they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/explain/nodes_in_change.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::audit_of_change_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// What an audit says of nodes whose GPUs no pod can get: reason and severity, with the GPUs.
std::vector<std::string> losses(FleetModel& fleet, bool operator_runs) {
  fleet.index.refresh(fleet.world, fleet.settings);
  const Audit found =
      audit({fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings}, fleet.index, operator_runs);
  std::vector<std::string> out;
  for (const AuditProblem& problem : found.problems) {
    if (problem.gpus_lost == 0 && problem.reason.code != kCordoned) continue;
    out.push_back(std::string(to_string(problem.severity)) + " " + problem.reason.code + " " +
                  std::to_string(problem.gpus_lost));
  }
  return out;
}

// The heading of an audit counts the GPUs of a node in a change, so a problem names the node.
TEST(AuditOfChange, ANodeInAChangeIsNamedForInformationAndLeftMidChangeIsAWarning) {
  FleetModel fleet(one_node("mps-4"));
  take_into_change(fleet);
  ASSERT_TRUE(fleet.node("a01").unschedulable) << "MPS: its pods would lose their GPU";
  EXPECT_THAT(losses(fleet, true), ElementsAre("info InChange 2"));
  EXPECT_THAT(losses(fleet, false), ElementsAre("warning LeftMidChange 2"));
  SharingRollout reported;
  reported.meta.name = "r";
  reported.phase = "Progressing";
  reported.status_json = R"({"nodes":[{"name":"a01","state":"Waiting","reason":"WaitingForWorkloads",
    "message":"waits for team/job-1"}]})";
  fleet.world.rollouts.apply(reported);
  fleet.index.refresh(fleet.world, fleet.settings);
  const Audit found = audit({fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings}, fleet.index, true);
  EXPECT_THAT(found.problems,
              testing::Contains(testing::Field(
                  &AuditProblem::reason,
                  Reason{"InChange",
                         "in change by the operator (waits for team/job-1): its GPUs can be used again when the change "
                         "ends"})));
  fleet.world.rollouts.erase({"", "r"});
  fleet.settings.rollouts = PolicyMode::observe;
  EXPECT_THAT(losses(fleet, true), ElementsAre("warning LeftMidChange 2"));
}

// Its change does not end before that person acts.
TEST(AuditOfChange, ANodeThatAPersonHoldsInItsChangeIsAWarning) {
  FleetModel fleet(one_node("mps-4"));
  take_into_change(fleet);
  fleet.annotate("a01", kHoldAnnotation, "true");
  EXPECT_THAT(losses(fleet, true), ElementsAre("warning HeldMidChange 2"));
  EXPECT_THAT(losses(fleet, false), ElementsAre("warning HeldMidChange 2")) << "an operator alone would not end it";
  const auto message = [&](bool operator_runs) {
    fleet.index.refresh(fleet.world, fleet.settings);
    std::string out;
    for (const AuditProblem& problem :
         audit({fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings}, fleet.index, operator_runs)
             .problems) {
      if (problem.reason.code == kHeldMidChange) out = problem.reason.message;
    }
    return out;
  };
  constexpr const char* kLifts = "whoever set that removes it: `kubectl annotate node a01 gpusharing.dev/hold-`";
  EXPECT_THAT(message(true), HasSubstr(std::string("gets its GPUs until ") + kLifts));
  EXPECT_THAT(message(false), HasSubstr(std::string("gets its GPUs until an operator runs and ") + kLifts));
}

// The operator's cordon of a failed node is part of its failure.
TEST(AuditOfChange, AFailedNodeIsReportedOnce) {
  FleetModel fleet(one_node("mps-4"));
  fleet.settings.settle = Duration::zero();
  fleet.settings.rollout.verify_timeout = std::chrono::minutes(1);
  fleet.settle();
  fleet.crash_pods("a01", true);
  fleet.edit("any", "mps-8");
  for (int i = 0; i < 200 && shown_to_people(fleet).state != "Failed"; ++i) (void)fleet.tick();
  ASSERT_EQ(shown_to_people(fleet).state, "Failed") << shown_to_people(fleet).message;
  ASSERT_TRUE(fleet.node("a01").unschedulable);
  EXPECT_THAT(losses(fleet, true), ElementsAre("error VerificationFailed 2"));
}

// The operator's own changes end by themselves: nobody is sent to return those nodes to service.
TEST(AuditOfChange, SlotsOfNodesInAChangeAreNoWarningAndAreNamedApartFromNodesThatAreOutOfService) {
  FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}, {"other", "ts-4"}};
  spec.nodes = alike_nodes(4, "NVIDIA-A100-SXM4-40GB", "a");
  spec.nodes[0].labels = {{"nvidia.com/device-plugin.config", "other"}};
  FleetModel fleet(std::move(spec));
  fleet.settings.settle = Duration::zero();
  ASSERT_TRUE(fleet.settle());
  fleet.policy(
      "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\n"
      "spec: {rollout: {maxUnavailable: 100%, maxUnavailablePerGroup: 100%, canary: {nodesPerGroup: 0}}}\n");
  ASSERT_TRUE(fleet.settle());
  fleet.settings.cluster_max_unavailable = {1, false};
  fleet.hold_pods("a01", true);
  fleet.edit("other", "ts-8");
  for (int i = 0; i < 8; ++i) (void)fleet.tick();
  fleet.edit("any", "ts-8");
  for (int i = 0; i < 8; ++i) (void)fleet.tick();
  const auto full_budgets = [&] {
    fleet.index.refresh(fleet.world, fleet.settings);
    std::vector<std::string> out;
    for (const Finding& finding :
         audit({fleet.world, fleet.now, fleet.timers, fleet.consumers, fleet.settings}, fleet.index).findings) {
      if (finding.why.code == kBudgetExhausted) out.push_back(finding.why.message);
    }
    return out;
  };
  EXPECT_EQ(shown_to_people(fleet, "a03").state, "Pending");
  EXPECT_THAT(shown_to_people(fleet, "a03").message, HasSubstr("a01 holds 1 of 1 slot of the cluster"));
  EXPECT_THAT(full_budgets(), ElementsAre());
  fleet.set_ready("a02", false);
  EXPECT_THAT(full_budgets(), ElementsAre(EndsWith("out of service: a02 (NotReady). In change by the operator, which "
                                                   "ends by itself: a01")));
  fleet.set_ready("a02", true);
  fleet.annotate("a01", kHoldAnnotation, "true");
  EXPECT_THAT(full_budgets(), ElementsAre(EndsWith(". Held mid-change by a person: a01")));
}

}  // namespace
}  // namespace gso::test::audit_of_change_test
