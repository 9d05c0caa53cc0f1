// The ages of what an operator has seen: max-mode Observe writes no ConfigMap, so that the operator that follows it
// finds nothing in the record of what was held meanwhile; and its wall clock can be set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/profile/profile.h"
#include "tests/controller/runtime/plugin_fleet.h"

namespace gso::draining_node_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

std::string revision(int replicas) {
  return revision_of(parse_profile(time_slicing(replicas)).profile);
}

// n1 drains for fewer replicas, and a Job uses more of them.
class DrainingNode : public PluginFleetTest {
 protected:
  DrainingNode() {
    create_plugin("gpu-operator");
    create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
    create_config(2);
    const std::string plugin = create_pod("gpu-operator", "plugin-1", "n1", "", true);
    create_pod("team", "train", "n1", "6", false);
    NodeChange change;
    change.policy = "default";
    change.config_map = "gpu-operator/mps-config";
    change.key = "any";
    change.from = revision(4);
    change.to = revision(2);
    change.kind = Transition::reshare;
    change.cause = ChangeCause::edited;
    change.begun = change.listed = sim.clock.now();
    change.pods = {{Component::plugin, {plugin}}};
    change.served = change.cordoned = true;
    const Json annotations{{kChangeAnnotation, print_change(change)},
                           {kRevisionAnnotation, revision(4)},
                           {kProfileAnnotation, "mps-config/any"}};
    const Json labels{
        {"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "2"}, {"gpusharing.dev/state", "Updating"}};
    merge("/api/v1/nodes/n1",
          {{"metadata", {{"annotations", annotations}, {"labels", labels}}}, {"spec", {{"unschedulable", true}}}});
    merge("/api/v1/nodes/n1/status", {{"status",
                                       {{"capacity", {{"nvidia.com/gpu", "8"}}},
                                        {"allocatable", {{"nvidia.com/gpu", "8"}}},
                                        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  [[nodiscard]] Json annotations() { return get("/api/v1/nodes/n1")["metadata"]["annotations"]; }
};

TEST_F(DrainingNode, TheDeadlinesOfAChangeInProgressStartAgain) {
  OneOperator before{sim, server, "before"};  // It records the fleet.
  before.start(sim);
  ASSERT_TRUE(eventually([&] { return before.view->synced && before.view->leading; }));
  run(1min);
  before.stop->notify();
  ASSERT_TRUE(eventually([&] { return before.result.has_value(); }));
  a.options.rollouts = PolicyMode::observe;
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->leading; }));
  run(5h);
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }));
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced && b.view->leading; }));
  run(5min);
  EXPECT_TRUE(annotations().contains(std::string(kChangeAnnotation))) << annotations().dump(1) << b.log;
  EXPECT_FALSE(annotations().contains(std::string(kDeferredAnnotation))) << "nobody has waited for its Job until now";
  run(PlannerSettings().rollout.idle_timeout + 5min);
  EXPECT_TRUE(annotations().contains(std::string(kDeferredAnnotation))) << annotations().dump(1);
}

class WallClockSteps : public DrainingNode, public testing::WithParamInterface<k8s::Duration> {
 protected:
  void step_while_it_drains() {
    a.start(sim);
    ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->leading; }));
    run(2min);
    ASSERT_TRUE(is_draining());
    sim.clock.jump_wall_clock(GetParam());
  }
  [[nodiscard]] bool is_draining() {
    return annotations().contains(std::string(kChangeAnnotation)) && is_there("gpu-operator", "plugin-1");
  }
  [[nodiscard]] bool is_there(const std::string& ns, const std::string& pod) {
    const k8s::HttpResponse found = send(k8s::Method::get, "/api/v1/namespaces/" + ns + "/pods/" + pod, "");
    return found.status == 200 && !Json::parse(found.body)["metadata"].contains("deletionTimestamp");
  }
};

TEST_P(WallClockSteps, TheWorkloadsOfADrainingNodeAreListedAgain) {
  step_while_it_drains();
  remove("/api/v1/namespaces/team/pods/train?gracePeriodSeconds=0");
  ASSERT_FALSE(is_there("team", "train"));
  EXPECT_TRUE(eventually([&] { return !is_there("gpu-operator", "plugin-1"); }, 30s)) << annotations().dump(1);
}

TEST_P(WallClockSteps, TheDeadlineOfADrainingNodeStaysWhereItIs) {
  step_while_it_drains();
  run(PlannerSettings().rollout.idle_timeout - 10min);
  EXPECT_TRUE(is_draining());
  run(10min);
  EXPECT_TRUE(annotations().contains(std::string(kDeferredAnnotation))) << annotations().dump(1);
}

INSTANTIATE_TEST_SUITE_P(Hours, WallClockSteps, testing::Values(-1h, 1h));

}  // namespace
}  // namespace gso::draining_node_test
