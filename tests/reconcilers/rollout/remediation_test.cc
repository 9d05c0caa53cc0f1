// Remediation beside a change of the same node.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <variant>

#include "reconcilers/model/plan.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::remediation_test {
namespace {

// How often a plan deletes a pod that it deletes already.
int repeated_deletions(const Plan& plan) {
  std::set<std::string> deleted;
  int repeated = 0;
  for (const PlannedAction& planned : plan.actions) {
    const auto* deletion = std::get_if<DeletePod>(&planned.action);
    if (deletion != nullptr && !deletion->uid.empty() && !deleted.emplace(deletion->uid).second) ++repeated;
  }
  return repeated;
}

// The stuck pod is due for its remediation about two minutes after it was created; one of these edits makes the change
// delete it in the same pass.
TEST(Remediation, AStuckPodThatTheChangeReplacesIsDeletedOnce) {
  for (int seconds = 100; seconds < 130; ++seconds) {
    FleetModel fleet(spec_of(1));
    fleet.settings.settle = Duration::zero();
    fleet.settle();
    int repeated = 0;
    fleet.on_plan = [&](const Plan& plan) { repeated += repeated_deletions(plan); };
    fleet.ail("n01", "gfd", "created", 1);
    fleet.delete_pod_of("n01", "gfd");
    tick(fleet, seconds);
    fleet.edit("any", "ts-8");
    EXPECT_TRUE(fleet.settle()) << seconds;
    EXPECT_EQ(repeated, 0) << seconds;
  }
}

// A sidecar, GFD's unless another component is named, fails without a message, every 20 s: each time it runs for four
// seconds, and its pod is Ready meanwhile. `recovers`: from the first run on it goes on to run. The seconds after which
// the pod is deleted; -1: within five minutes it is not.
int deleted_after(bool recovers, const char* component = "gfd") {
  FleetModel fleet(spec_of(1));
  fleet.settle();
  Pod pod = *fleet.pods("n01", component).front();
  int deleted = -1;
  int second = 0;
  fleet.on_plan = [&](const Plan& plan) {
    for (const PlannedAction& planned : plan.actions) {
      const auto* deletion = std::get_if<DeletePod>(&planned.action);
      if (deletion != nullptr && deletion->uid == pod.meta.uid.str() && deleted < 0) deleted = second;
    }
  };
  ContainerStatus sidecar;
  sidecar.name = k8s::Interned("config-manager");
  sidecar.last_terminated = Rare(Termination{1, {}, {}});
  const std::vector<ContainerStatus> others = pod.containers;
  for (; second < 300 && deleted < 0; ++second) {
    sidecar.running = recovers || second % 20 < 4;
    if (second % 20 == 0 && (!recovers || second == 0)) sidecar.started_at = fleet.now;
    sidecar.waiting_reason = k8s::Interned(sidecar.running ? "" : "CrashLoopBackOff");
    sidecar.restarts = recovers ? 4 : 4 + second / 20;
    pod.ready = sidecar.running;
    pod.containers = others;
    pod.containers.push_back(sidecar);
    pod.meta.resource_version = std::to_string(1000000 + second);
    fleet.world.operand_pods.apply(pod);
    fleet.tick();
  }
  return deleted;
}

TEST(Remediation, APodWhoseContainerRunsForAMomentBetweenItsCrashesIsStuckAndOneThatRunsAgainIsNot) {
  const int seconds = deleted_after(false);
  EXPECT_TRUE(seconds >= 60 && seconds <= 90) << seconds;
  EXPECT_EQ(deleted_after(true), -1);
}

// The GPUs are in use or can be: only a rollout replaces such a pod, with a slot and after the workloads.
TEST(Remediation, APluginWhoseNodeServesIsLeftAloneHoweverItsSidecarFails) {
  EXPECT_EQ(deleted_after(false, "plugin"), -1);
}

}  // namespace
}  // namespace gso::test::remediation_test
