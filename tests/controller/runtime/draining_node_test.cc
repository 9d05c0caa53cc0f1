// The ages of what an operator has seen: max-mode Observe writes no ConfigMap, so that the operator that follows it
// finds nothing in the record of what was held meanwhile; and its wall clock can be set.

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "tests/controller/runtime/plugin_fleet.h"

namespace gso::draining_node_test {
namespace {

using namespace std::chrono_literals;

// n1 drains for fewer replicas, and a Job uses more of them.
class DrainingNode : public PluginFleetTest {
 protected:
  DrainingNode() : PluginFleetTest(2) {
    add_namespace("team");
    create_pod("team", "train", "n1", "6");
    NodeChange change;
    change.pods = {{Component::plugin, {add_sharing_node("n1", {{"gpusharing.dev/state", "Updating"}})}}};
    change.policy = "default";
    change.config_map = "gpu-operator/mps-config";
    change.key = "any";
    change.from = revision(4);
    change.to = revision(2);
    change.kind = Transition::reshare;
    change.cause = ChangeCause::edited;
    change.begun = change.listed = sim.clock.now();
    change.served = change.cordoned = true;
    merge("/api/v1/nodes/n1", {{"metadata", {{"annotations", {{kChangeAnnotation, print_change(change)}}}}},
                               {"spec", {{"unschedulable", true}}}});
  }
  void leads(OneOperator& one) {
    one.start(sim);
    ASSERT_TRUE(eventually([&] { return one.view->synced && one.view->leading; }));
  }
  void stops(OneOperator& one) {
    one.stop->notify();
    ASSERT_TRUE(eventually([&] { return one.result.has_value(); }));
  }
  [[nodiscard]] bool is_deferred() { return annotations("n1").contains(std::string(kDeferredAnnotation)); }
};

TEST_F(DrainingNode, TheDeadlinesOfAChangeInProgressStartAgain) {
  OneOperator before{sim, server, "before"};  // It records the fleet.
  leads(before);
  run(1min);
  stops(before);
  a.options.rollouts = PolicyMode::observe;
  leads(a);
  run(5h);
  stops(a);
  leads(b);
  run(5min);
  EXPECT_TRUE(in_change("n1")) << annotations("n1").dump(1) << b.log;
  EXPECT_FALSE(is_deferred()) << "nobody has waited for its Job until now";
  run(PlannerSettings().rollout.idle_timeout + 5min);
  EXPECT_TRUE(is_deferred()) << annotations("n1").dump(1);
}

class WallClockSteps : public DrainingNode, public testing::WithParamInterface<k8s::Duration> {
 protected:
  void step_while_it_drains() {
    leads(a);
    run(2min);
    ASSERT_TRUE(is_draining());
    sim.clock.jump_wall_clock(GetParam());
  }
  [[nodiscard]] bool is_draining() { return in_change("n1") && is_there("gpu-operator", "plugin-n1"); }
  [[nodiscard]] bool is_there(const std::string& ns, const std::string& pod) {
    const Json found = get("/api/v1/namespaces/" + ns + "/pods/" + pod);
    return found["kind"] == "Pod" && !found["metadata"].contains("deletionTimestamp");
  }
};

TEST_P(WallClockSteps, TheWorkloadsOfADrainingNodeAreListedAgain) {
  step_while_it_drains();
  remove("/api/v1/namespaces/team/pods/train?gracePeriodSeconds=0");
  ASSERT_FALSE(is_there("team", "train"));
  EXPECT_TRUE(eventually([&] { return !is_there("gpu-operator", "plugin-n1"); }, 30s)) << annotations("n1").dump(1);
}

TEST_P(WallClockSteps, TheDeadlineOfADrainingNodeStaysWhereItIs) {
  step_while_it_drains();
  run(PlannerSettings().rollout.idle_timeout - 10min);
  EXPECT_TRUE(is_draining());
  run(10min);
  EXPECT_TRUE(is_deferred()) << annotations("n1").dump(1);
}

INSTANTIATE_TEST_SUITE_P(Hours, WallClockSteps, testing::Values(-1h, 1h));

}  // namespace
}  // namespace gso::draining_node_test
