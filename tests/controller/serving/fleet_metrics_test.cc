// What a running operator's metrics say of the fleet, how many there are, and what /debug shows, refuses and changes.

#include "tests/controller/operators.h"

namespace gso::fleet_metrics_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class FleetMetricsTest : public ManagerTest {
 protected:
  FleetMetricsTest() {
    install_crds();
    create_plugin("gpu-operator");
  }
  // Ready, with one GPU that it does not offer.
  void add_gpu_node() {
    add_node("gpu-1", R"({"nvidia.com/gpu.count":"1"})");
    merge("/api/v1/nodes/gpu-1/status", R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  }
  double without_gpus() { return a.metric("gpusharing_nodes_allocatable_zero"); }
};

// Else the sum over the replicas, and an alert's maximum, would hold on to what was true once.
TEST_F(FleetMetricsTest, AStandbyReportsNoStateOfTheFleetThatItKnewAsTheLeader) {
  add_gpu_node();
  lead(a);
  EXPECT_EQ(without_gpus(), 1);
  const Metrics::Labels missing{{"severity", "error"}, {"reason", "ConfigMapMissing"}};
  EXPECT_EQ(a.metric("gpusharing_findings", missing), 1);
  EXPECT_EQ(a.metric("gpusharing_requests_limit", {{"lane", "reads"}}), 16);
  EXPECT_EQ(a.metric("gpusharing_requests_limit", {{"lane", "writes"}}), 16) << "it grows when it is used in full";
  EXPECT_EQ(a.metric("gpusharing_requests_waiting", {{"lane", "reads"}}), 0);
  a.transport.set_connected(false);
  run(11s);
  ASSERT_FALSE(a.view->leading);
  EXPECT_EQ(without_gpus(), 0);
  EXPECT_EQ(a.metric("gpusharing_findings", missing), 0);
}

// Pages show what the last pass has seen.
TEST_F(FleetMetricsTest, AFleetThatHasComeToRestHasConvergedAndANodeThatOffersGpusAgainIsCountedFromTheNextPassOn) {
  post("/api/v1/namespaces/gpu-operator/configmaps",
       R"({"metadata":{"name":"mps-config"},"data":{"any":"version: v1\n"}})");
  add_gpu_node();
  run(11min);  // Longer than verifyTimeout: the node does not start any more, what it shows is its baseline.
  lead(a);
  run(1min);
  const std::string text = a.metrics->render(Metrics::Format::prometheus);
  const std::string name = "\ngpusharing_convergence_seconds_count ";
  const std::size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stoi(text.substr(at + name.size())), 1);
  EXPECT_EQ(without_gpus(), 1);
  EXPECT_EQ(without_gpus(), 1) << "a second page of the same pass";
  merge("/api/v1/nodes/gpu-1/status",
        R"({"status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"}}})");
  EXPECT_TRUE(eventually([&] { return without_gpus() == 0; }));
}

// The alert says that a node has loaded a text outside a rollout: a counter alone would not say which one.
TEST_F(FleetMetricsTest, ObjectsAreNamedForAsLongAsTheirAlertsLookBackAndWithoutAuthenticationNoneOfATenant) {
  lead(a);
  const Metrics::Labels loaded{{"reason", "LoadedUngated"}, {"kind", "Node"}, {"object", "gpu-1"}};
  EXPECT_EQ(a.metric("gpusharing_affected_objects", loaded), 0);
  a.view->loaded_ungated["gpu-1"] = sim.clock.monotonic();
  EXPECT_EQ(a.metric("gpusharing_affected_objects", loaded), 1);
  run(14min);
  EXPECT_EQ(a.metric("gpusharing_affected_objects", loaded), 1);
  run(2min);
  EXPECT_EQ(a.metric("gpusharing_affected_objects", loaded), 0);
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
  const auto add_nodes = [&](int from, int to) {
    for (int i = from; i < to; ++i) add_node("gpu-" + std::to_string(i), R"({"nvidia.com/gpu.count":"1"})");
  };
  const auto series = [&] { return std::ranges::count(a.metrics->render(Metrics::Format::prometheus), '\n'); };
  add_nodes(0, 1);
  lead(a);
  add_nodes(1, 5);  // What happens to a new node happens once before it is counted.
  run(1min);
  const auto before = series();
  add_nodes(5, 400);
  run(1min);
  EXPECT_EQ(a.metric("gpusharing_store_objects", {{"resource", "nodes"}}), 401);
  EXPECT_EQ(series(), before);
}

Json debug(OneOperator& one, const std::string& path, bool put = false, int status = 200) {
  HttpRequest request;
  request.method = put ? "PUT" : "GET";
  request.path = path;
  const HttpAnswer answer = one.view->debug(request);
  EXPECT_EQ(answer.status, status) << path << ": " << answer.body;
  return Json::parse(answer.body, nullptr, false);
}

class DebugPagesTest : public ManagerTest {};

TEST_F(DebugPagesTest, ShowStoresQueueAndNodesAndSetTheLogLevelAndAStandbyNamesWhoAssessesNodes) {
  add_node("bare", R"({"nvidia.com/gpu.count":"4"})");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->passes > 0; }));
  const Json cache = debug(a, "/debug/cache");
  EXPECT_EQ(cache["synced"], true);
  const auto nodes =
      std::ranges::find_if(cache["stores"], [](const Json& store) { return store["resource"] == "nodes"; });
  ASSERT_NE(nodes, cache["stores"].end());
  EXPECT_EQ((*nodes)["objects"], 2);
  EXPECT_GT((*nodes)["bytes"], 2 * 100);
  EXPECT_GT(a.metric("gpusharing_store_bytes", {{"resource", "nodes"}}), 200);
  EXPECT_EQ(debug(a, "/debug/queue")["leading"], true);
  EXPECT_EQ(debug(a, "/debug/nodes/bare")["state"], "NoPlugin");
  debug(a, "/debug/nodes/nobody", false, 404);
  debug(a, "/debug/other", false, 404);
  debug(a, "/debug/cache", true, 405);
  EXPECT_EQ(debug(a, "/debug/log-level")["level"], "debug");
  EXPECT_EQ(debug(a, "/debug/log-level/warn", true)["level"], "warn");
  debug(a, "/debug/log-level/loud", true, 400);
  EXPECT_EQ(debug(a, "/debug/log-level")["level"], "warn");

  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced; }));
  run(5s);
  EXPECT_EQ(debug(b, "/debug/nodes/bare", false, 503)["error"], "this replica stands by; ask the leader, a");
  EXPECT_EQ(debug(b, "/debug/queue")["leading"], false);
  EXPECT_EQ(debug(b, "/debug/queue")["leader"], "a");
  EXPECT_EQ(debug(b, "/debug/cache")["leading"], false);
  EXPECT_EQ(debug(a, "/debug/nodes/bare")["state"], "NoPlugin");
}

}  // namespace
}  // namespace gso::fleet_metrics_test
