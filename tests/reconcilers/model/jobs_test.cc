// Jobs: no random story under `workloads: Evict` splits one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/node/assess.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/fleet_model/invariant_checks.h"

namespace gso::test::jobs_test {
namespace {

// Nodes with a member of that job, as the cluster is.
std::set<std::string> nodes_of(const FleetModel& fleet, const std::string& job) {
  std::set<std::string> out;
  for (const auto& [name, listing] : fleet.consumers) {
    for (const Pod& pod : listing.pods)
      if (const auto its = job_of(pod); its && its->id() == job) out.insert(name);
  }
  return out;
}

void check_evictions(const FleetModel& fleet, const Plan& plan) {
  for (const PlannedAction& planned : plan.actions) {
    const auto* evict = std::get_if<EvictPod>(&planned.action);
    if (evict == nullptr) continue;
    const auto& listing = fleet.consumers.at(planned.node).pods;
    const auto pod = std::ranges::find_if(listing, [&](const Pod& p) { return p.meta.uid == evict->uid; });
    ASSERT_NE(pod, listing.end());
    const auto job = job_of(*pod);
    if (!job) continue;
    for (const std::string& node : nodes_of(fleet, job->id())) {
      EXPECT_NE(fleet.index.assessment(node)->phase, Phase::pending)
          << "half of " << job->id() << " is evicted; " << node << " is still to be changed";
    }
  }
}

class JobStories : public testing::TestWithParam<int> {};

TEST_P(JobStories, EvictWholeJobsOrNoneAndComeToRest) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  FleetSpec spec;
  spec.nodes = alike_nodes(5, "NVIDIA-A100-SXM4-40GB", "a");
  for (NodeSpec& node : alike_nodes(3, "Tesla-T4", "t")) spec.nodes.push_back(std::move(node));
  FleetModel fleet(spec);
  fleet.settings.settle = std::chrono::seconds(2);
  fleet.settings.cluster_max_unavailable = {100, true};
  fleet.settings.rollout.workloads = WorkloadMode::evict;
  const std::int64_t budget = 1 + pick(4);
  fleet.settings.rollout.max_unavailable = {budget, false};
  fleet.settings.rollout.max_unavailable_per_group = {budget, false};
  fleet.settings.rollout.canary_nodes_per_group = pick(2);
  fleet.settings.rollout.canary_soak = std::chrono::seconds(3);
  fleet.settings.rollout.idle_timeout = std::chrono::seconds(20);
  ASSERT_TRUE(fleet.settle());
  int pods = 0;
  for (int job = 0; job < 3; ++job) {
    for (const NodeSpec& node : spec.nodes) {
      if (pick(3) != 0) continue;
      std::map<std::string, std::string> annotations;
      if (pick(8) == 0) annotations["karpenter.sh/do-not-disrupt"] = "true";
      fleet.use_by_job(node.name, fmt::format("pod-{}", pods++), fmt::format("job-{}", job), annotations);
    }
  }
  if (pods > 0 && pick(2) == 0) fleet.protect("pod-0", "the disruption budget b needs 1 healthy pod");
  fleet.edit("any", "mps-8");
  auto checked = [&](const Plan& plan) {
    check_evictions(fleet, plan);
    check_plan(fleet, plan);
  };
  for (int i = 0; i < 120 && !HasFailure(); ++i) {
    const Plan plan = fleet.plan();
    checked(plan);
    fleet.apply(plan);
    if (pick(40) == 0) fleet.restart_operator();
    fleet.advance(std::chrono::seconds(1));
  }
  for (const NodeSpec& node : spec.nodes) fleet.release(node.name);
  fleet.on_plan = checked;
  EXPECT_TRUE(fleet.settle(3000)) << "L1: did not come to rest";
  for (const NodeSpec& node : spec.nodes) {
    EXPECT_EQ(fleet.index.assessment(node.name)->phase, Phase::up_to_date) << node.name;
    EXPECT_FALSE(fleet.node(node.name).unschedulable) << node.name;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, JobStories, testing::Range(1, 16));

}  // namespace
}  // namespace gso::test::jobs_test
