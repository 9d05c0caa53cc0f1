// max-mode Observe writes no ConfigMap, so that the operator that follows it finds nothing in the record of what was
// held meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/profile/revision.h"
#include "tests/controller/runtime/plugin_fleet.h"

namespace gso::after_observe_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

std::string revision(int replicas) {
  return revision_of(parse_profile(time_slicing(replicas)).profile);
}

// n1 drains for fewer replicas, and a Job uses more of them.
class AfterObserve : public PluginFleetTest {
 protected:
  AfterObserve() {
    create_plugin("gpu-operator");
    create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
    create("/api/v1/namespaces/gpu-operator/configmaps", Json{{"apiVersion", "v1"},
                                                              {"kind", "ConfigMap"},
                                                              {"metadata", {{"name", "mps-config"}}},
                                                              {"data", {{"any", time_slicing(2)}}}}
                                                             .dump());
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

TEST_F(AfterObserve, TheDeadlinesOfAChangeInProgressStartAgain) {
  OneOperator before{sim, server, "before"};  // It records the fleet.
  before.start(sim);
  ASSERT_TRUE(eventually([&] { return before.view->synced && before.view->leading; }));
  run(1min);
  before.stop->notify();
  ASSERT_TRUE(eventually([&] { return before.result.has_value(); }));
  a.options.max_mode = PolicyMode::observe;
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

}  // namespace
}  // namespace gso::after_observe_test
