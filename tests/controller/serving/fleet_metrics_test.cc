// What the operator's metrics say of the fleet, and how many there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/controller/operators.h"

namespace gso::fleet_metrics_test {
namespace {

using namespace std::chrono_literals;

class FleetMetricsTest : public ManagerTest {};

// Else the sum over the replicas, and an alert's maximum, would hold on to what was true once.
TEST_F(FleetMetricsTest, AStandbyReportsNoStateOfTheFleetThatItKnewAsTheLeader) {
  install_crds();
  create_plugin("gpu-operator");
  create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1","labels":{
    "nvidia.com/gpu.count":"1"}},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  EXPECT_EQ(a.metric("gpusharing_nodes_allocatable_zero"), 1);
  const Metrics::Labels missing{{"severity", "error"}, {"reason", "ConfigMapMissing"}};
  EXPECT_EQ(a.metric("gpusharing_findings", missing), 1);
  a.transport.set_connected(false);
  run(11s);
  ASSERT_FALSE(a.view->leading);
  EXPECT_EQ(a.metric("gpusharing_nodes_allocatable_zero"), 0);
  EXPECT_EQ(a.metric("gpusharing_findings", missing), 0);
}

TEST_F(FleetMetricsTest, TheLanesOfTheOperatorsRequestsAreShown) {
  install_crds();
  create_plugin("gpu-operator");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  EXPECT_EQ(a.metric("gpusharing_requests_limit", {{"lane", "reads"}}), 16);
  EXPECT_EQ(a.metric("gpusharing_requests_limit", {{"lane", "writes"}}), 16) << "it grows when it is used in full";
  EXPECT_EQ(a.metric("gpusharing_requests_waiting", {{"lane", "reads"}}), 0);
}

TEST_F(FleetMetricsTest, AFleetThatHasComeToRestHasConverged) {
  install_crds();
  create_plugin("gpu-operator");
  create("/api/v1/namespaces/gpu-operator/configmaps", R"({"apiVersion":"v1","kind":"ConfigMap",
    "metadata":{"name":"mps-config"},"data":{"any":"version: v1\n"}})");
  create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1","labels":{
    "nvidia.com/gpu.count":"1"}},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  run(11min);  // Longer than verifyTimeout: the node does not start any more, what it shows is its baseline.
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  run(1min);
  const std::string text = a.metrics->render(Metrics::Format::prometheus);
  const std::string name = "\ngpusharing_convergence_seconds_count ";
  const std::size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stoi(text.substr(at + name.size())), 1);
}

// Pages show what the last pass has seen.
TEST_F(FleetMetricsTest, ANodeThatOffersGpusAgainIsCountedAsSuchFromTheNextPassOn) {
  install_crds();
  create_plugin("gpu-operator");
  create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1","labels":{
    "nvidia.com/gpu.count":"1"}},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  EXPECT_EQ(a.metric("gpusharing_nodes_allocatable_zero"), 1);
  EXPECT_EQ(a.metric("gpusharing_nodes_allocatable_zero"), 1) << "a second page of the same pass";
  const k8s::HttpResponse changed =
      send(k8s::Method::patch, "/api/v1/nodes/gpu-1/status",
           R"({"status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"}}})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_TRUE(eventually([&] { return a.metric("gpusharing_nodes_allocatable_zero") == 0; }));
}

// The alert says that a node has loaded a text outside a rollout: a counter alone would not say which one.
TEST_F(FleetMetricsTest, ANodeThatLoadedATextOutsideARolloutIsNamedForAsLongAsItsAlertLooksBack) {
  install_crds();
  create_plugin("gpu-operator");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  const Metrics::Labels named{{"reason", "LoadedUngated"}, {"kind", "Node"}, {"object", "gpu-1"}};
  EXPECT_EQ(a.metric("gpusharing_affected_objects", named), 0);
  a.view->loaded_ungated["gpu-1"] = sim.clock.monotonic();
  EXPECT_EQ(a.metric("gpusharing_affected_objects", named), 1);
  run(14min);
  EXPECT_EQ(a.metric("gpusharing_affected_objects", named), 1);
  run(2min);
  EXPECT_EQ(a.metric("gpusharing_affected_objects", named), 0);
}

TEST_F(FleetMetricsTest, APageWithoutAuthenticationNamesNoObjectOfATenant) {
  install_crds();
  create_plugin("gpu-operator");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  const auto finding = [](const char* ns, const char* name) {
    Finding out;
    out.severity = Severity::warning;
    out.object = {"v1", "Pod", ns, name, ""};
    out.why.code = "SignalFailed";
    return out;
  };
  a.view->last_plan.findings = {finding("a-team", "train-0"), finding("gpu-operator", "plugin-0")};
  ++a.view->passes;  // The page names objects anew.
  const auto named = [&](const char* object) {
    return a.metric("gpusharing_affected_objects", {{"reason", "SignalFailed"}, {"kind", "Pod"}, {"object", object}});
  };
  EXPECT_EQ(named("a-team/train-0"), 0);
  EXPECT_EQ(named("(hidden without metrics.secure)"), 1);
  EXPECT_EQ(named("gpu-operator/plugin-0"), 1);
}

// Whoever scrapes a fleet of 50,000 nodes gets what a fleet of five costs.
TEST_F(FleetMetricsTest, AsManySeriesForManyNodesAsForOne) {
  install_crds();
  create_plugin("gpu-operator");
  const auto add_nodes = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-)" + std::to_string(i) +
                                  R"(","labels":{"nvidia.com/gpu.count":"1"}}})");
    }
  };
  const auto series = [&] { return std::ranges::count(a.metrics->render(Metrics::Format::prometheus), '\n'); };
  add_nodes(0, 1);
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  add_nodes(1, 5);  // What happens to a new node happens once before it is counted.
  run(1min);
  const auto before = series();
  add_nodes(5, 400);
  run(1min);
  EXPECT_EQ(a.metric("gpusharing_store_objects", {{"resource", "nodes"}}), 401);
  EXPECT_EQ(series(), before);
}

}  // namespace
}  // namespace gso::fleet_metrics_test
