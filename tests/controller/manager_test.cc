// The whole operator on the simulated API server: when it may plan, what it watches, leader changes, stops and crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "controller/logging.h"
#include "controller/manager.h"
#include "controller/metrics.h"
#include "controller/runtime.h"
#include "reconcilers/manifests.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

const k8s::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};

sim::FaultRule always(sim::Fault fault, const std::string& resource) {
  sim::FaultRule rule;
  rule.fault = fault;
  rule.resource = resource;
  return rule;
}

// One operator with a connection of its own.
struct OneOperator {
  OneOperator(Sim& sim, sim::ApiServer& server, std::string identity)
      : transport(server, {.user = "system:serviceaccount:gpu-sharing-operator:operator", .user_agent = identity}),
        stop(sim.clock.make_signal()),
        kill(sim.clock.make_signal()) {
    options.identity = std::move(identity);
    options.namespace_ = "gpu-sharing-operator";
    options.metrics_bind_address = "0";
    options.health_probe_bind_address = "0";
    options.settle = 0s;
  }
  void start(Sim& sim) {
    Runtime runtime;
    runtime.transport = &transport;
    runtime.clock = &sim.clock;
    runtime.stop = stop.get();
    runtime.kill = kill.get();
    runtime.view = view;
    runtime.metrics = metrics;
    runtime.hooks = hooks;
    runtime.seed = 7;
    runtime.log = std::make_shared<Logger>(
        LogFormat::text, LogLevel::debug, [&sim] { return sim.clock.now(); },
        [this](const std::string& line) { log += line + "\n"; });
    sim.start(live(this, runtime, options));
  }
  double metric(const char* name, const Metrics::Labels& labels = {}) {
    (void)metrics->render(Metrics::Format::prometheus);
    return metrics->value(name, labels);
  }

  sim::InProcessTransport transport;
  std::unique_ptr<k8s::Signal> stop;
  std::unique_ptr<k8s::Signal> kill;
  Options options;
  RuntimeHooks hooks;
  std::shared_ptr<RuntimeView> view = std::make_shared<RuntimeView>();
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::optional<k8s::Result<void>> result;
  std::string log;

 private:
  static boost::asio::awaitable<void> live(OneOperator* self, Runtime runtime, Options options) {
    k8s::Result<void> ended = co_await run_operator(runtime, options);
    self->result = std::move(ended);
  }
};

class ManagerTest : public testing::Test {
 protected:
  ManagerTest() {
    server.add_audit_listener([this](const sim::AuditEntry& entry) {
      if (entry.user.find("serviceaccount:gpu-sharing-operator") == std::string::npos) return;
      (entry.gvr.resource == "leases" ? lease_writes : writes)
          .push_back(entry.user_agent + " " + entry.verb + " " + entry.gvr.resource + " " + entry.key.name);
    });
    create("/api/v1/namespaces",
           R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gpu-sharing-operator"}})");
    create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gpu-operator"}})");
    create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
    sim.clock.run_for(1s);
  }
  ~ManagerTest() override {
    for (OneOperator* one : {&a, &b}) {
      if (!one->view->started || one->result) continue;
      one->kill->notify();
      EXPECT_TRUE(sim.clock.run_until([&] { return one->result.has_value(); }, 10min)) << "it did not end";
    }
    if (HasFailure()) std::printf("%s", a.log.c_str());
  }

  k8s::HttpResponse send(k8s::Method method, const std::string& path, const std::string& body) {
    const char* type = method == k8s::Method::patch ? "application/merge-patch+json" : "application/json";
    return server.handle(sim::local_request(method, path, body, type), {});
  }
  void create(const std::string& path, const std::string& json) {
    const k8s::HttpResponse answer = send(k8s::Method::post, path, json);
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  void remove(const std::string& path) {
    const k8s::HttpResponse answer = send(k8s::Method::del, path, "");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  void install_crds() {
    const char* root = std::getenv("GSO_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    for (const char* name : {"sharingpolicies", "sharingrollouts"}) {
      std::ifstream file(std::string(root) + "/crds/gpusharing.dev_" + name + ".yaml");
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      const k8s::Result<std::string> json = yaml_to_json(text);
      ASSERT_TRUE(json.has_value()) << json.error().message;
      create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", *json);
    }
    sim.clock.run_for(1s);
  }
  // A device plugin with a config-manager sidecar, as the GPU Operator deploys it.
  void create_plugin(const std::string& ns) {
    create("/apis/apps/v1/namespaces/" + ns + "/daemonsets", R"({"apiVersion":"apps/v1","kind":"DaemonSet",
      "metadata":{"name":"nvidia-device-plugin-daemonset"},"spec":{
        "selector":{"matchLabels":{"app":"nvidia-device-plugin-daemonset"}},
        "template":{"metadata":{"labels":{"app":"nvidia-device-plugin-daemonset"}},"spec":{
          "containers":[
            {"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1",
             "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]},
            {"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
             "env":[{"name":"DEFAULT_CONFIG","value":"any"},{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"},
                    {"name":"NODE_LABEL","value":"nvidia.com/device-plugin.config"}],
             "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]}],
          "volumes":[{"name":"plugin-config","configMap":{"name":"mps-config"}}]}}}})");
  }
  std::size_t created_policies() const {
    return static_cast<std::size_t>(std::count_if(writes.begin(), writes.end(), [](const std::string& line) {
      return line.find("create sharingpolicies default") != std::string::npos;
    }));
  }
  void run(Duration d) { sim.clock.run_for(d); }
  bool eventually(const std::function<bool()>& holds, Duration limit = 2min) {
    return sim.clock.run_until(holds, limit);
  }

  static boost::asio::awaitable<bool> end(Manager* manager) {
    co_await manager->end(true);
    co_return true;
  }

  Sim sim;
  sim::ApiServer server{sim.io.get_executor(), sim.clock};
  std::vector<std::string> writes;
  std::vector<std::string> lease_writes;
  OneOperator a{sim, server, "a"};
  OneOperator b{sim, server, "b"};
};

TEST_F(ManagerTest, WithoutAnyOfOurCrdsItSyncsLeadsAndFallsSilent) {
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->leading && a.view->idle; }));
  run(5min);
  const std::size_t before = writes.size();
  run(40min);
  EXPECT_EQ(writes.size(), before) << writes.back();
  EXPECT_FALSE(lease_writes.empty());
  EXPECT_EQ(a.metric("leader_election_master_status", {{"name", "gpu-sharing-operator"}}), 1);
  EXPECT_EQ(a.metric("gpusharing_watches", {{"resource", "sharingpolicies"}}), 0) << "absent by discovery";
  EXPECT_EQ(a.metric("gpusharing_watch_synced", {{"resource", "sharingpolicies"}}), 1);
}

TEST_F(ManagerTest, WithOurCrdsTheDefaultPolicyIsCreatedOnce) {
  install_crds();
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return server.get(kPolicies, {"", "default"}).has_value(); }));
  run(1h);
  EXPECT_EQ(created_policies(), 1U);
}

TEST_F(ManagerTest, AMissingNamespaceOfTheLeaseIsSaidOnceInTheLogAndByTheReadinessProbe) {
  Runtime runtime;
  runtime.transport = &a.transport;
  runtime.clock = &sim.clock;
  runtime.view = std::make_shared<RuntimeView>();
  runtime.metrics = a.metrics;
  runtime.seed = 7;
  runtime.log = std::make_shared<Logger>(
      LogFormat::text, LogLevel::info, [this] { return sim.clock.now(); },
      [this](const std::string& line) { a.log += line + "\n"; });
  a.options.namespace_ = "elsewhere";
  Manager manager(runtime, a.options, sim.io.get_executor());
  manager.start();
  run(50s);
  const ProbeAnswer ready = manager.ready();
  EXPECT_FALSE(ready.ok);
  EXPECT_THAT(ready.text, HasSubstr("Lease elsewhere/gpu-sharing-operator cannot be created"));
  EXPECT_THAT(ready.text, HasSubstr("namespace elsewhere does not exist; create it, or name"));
  EXPECT_THAT(a.log, HasSubstr("namespace elsewhere does not exist"));
  EXPECT_EQ(a.log.find("WARN"), a.log.rfind("WARN")) << a.log;
  create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"elsewhere"}})");
  EXPECT_TRUE(eventually([&] { return manager.ready().ok && manager.leading(); }));
  EXPECT_THAT(a.log, HasSubstr("Over: Lease could not be acquired or renewed"));
  sim.run(end(&manager));
}

TEST_F(ManagerTest, CrdsThatAppearLaterAreFoundWithinTheDiscoveryPeriod) {
  a.start(sim);
  run(5min);
  install_crds();
  EXPECT_TRUE(eventually([&] { return created_policies() == 1; }, 35s));
}

TEST_F(ManagerTest, NothingIsWrittenBeforeEveryStoreThatIsReadHasSynced) {
  install_crds();
  a.transport.faults().add(always(sim::Fault::server_error, "nodes"));
  a.start(sim);
  run(3min);
  EXPECT_THAT(writes, IsEmpty()) << writes.front();
  EXPECT_FALSE(a.view->synced);
  EXPECT_TRUE(a.view->leading) << "the lease does not wait for the stores";
  a.transport.faults().clear();
  EXPECT_TRUE(eventually([&] { return created_policies() == 1; }));
}

TEST_F(ManagerTest, OneForbiddenKindStopsOnlyTheReconcilersThatReadIt) {
  install_crds();
  a.transport.faults().add(always(sim::Fault::forbidden, "sharingrollouts"));
  a.start(sim);
  run(3min);
  EXPECT_FALSE(a.view->synced);
  EXPECT_EQ(a.metric("controller_runtime_reconcile_total", {{"controller", "sharing.rollout"}, {"result", "success"}}),
            0);
  EXPECT_GT(a.metric("controller_runtime_reconcile_total", {{"controller", "sharing.rollout"}, {"result", "requeue"}}),
            0);
  EXPECT_GT(a.metric("controller_runtime_reconcile_total", {{"controller", "node.labels"}, {"result", "success"}}), 0);
  EXPECT_GT(a.metric("gpusharing_watch_failures_total", {{"resource", "sharingrollouts"}, {"reason", "forbidden"}}), 0);
  EXPECT_THAT(a.log, HasSubstr("sharingrollouts"));
}

TEST_F(ManagerTest, WatchesFollowTheDaemonSetsThatAreDiscovered) {
  create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}})");
  create_plugin("gpu-operator");
  a.start(sim);
  const auto pods = [&] { return a.metric("gpusharing_watches", {{"resource", "pods"}}); };
  const auto maps = [&] { return a.metric("gpusharing_watches", {{"resource", "configmaps"}}); };
  ASSERT_TRUE(eventually([&] { return a.view->synced; }));
  EXPECT_EQ(pods(), 1);
  EXPECT_EQ(maps(), 2) << "the plugin's and our own";
  const std::size_t streams = server.open_watches();
  create_plugin("other");
  run(5s);
  EXPECT_EQ(pods(), 2);
  EXPECT_EQ(maps(), 3);
  EXPECT_TRUE(a.view->synced);
  remove("/apis/apps/v1/namespaces/other/daemonsets/nvidia-device-plugin-daemonset");
  run(5s);
  EXPECT_EQ(pods(), 1);
  EXPECT_EQ(server.open_watches(), streams);
}

TEST_F(ManagerTest, ANamespaceThatMayNotBeReadIsToldByEventAndTheRestIsReady) {
  create_plugin("gpu-operator");
  a.transport.faults().add(always(sim::Fault::forbidden, "pods"));
  a.start(sim);
  run(3min);
  EXPECT_TRUE(a.view->synced) << "refused is not loading";
  const auto events = server.list({"events.k8s.io", "v1", "events"});
  const bool told = std::any_of(events.begin(), events.end(), [](const Json& event) {
    return event["reason"] == "Forbidden" && event["regarding"]["name"] == "gpu-operator";
  });
  EXPECT_TRUE(told);
  EXPECT_EQ(a.metric("gpusharing_findings", {{"severity", "error"}, {"reason", "Forbidden"}}), 1);
}

TEST_F(ManagerTest, ACleanStopReleasesTheLeaseAndTheStandbyTakesOverWithoutRelisting) {
  install_crds();
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced; })) << "a warm standby";
  EXPECT_FALSE(b.view->leading);
  EXPECT_EQ(b.view->passes, 0U);
  const std::uint64_t requests = b.transport.requests();
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 10s));
  EXPECT_TRUE(a.result->has_value());
  EXPECT_TRUE(a.view->finished);
  EXPECT_TRUE(eventually([&] { return b.view->leading; }, 5s));
  EXPECT_LE(b.transport.requests() - requests, 8U) << "nothing but the Lease";
  run(10min);
  EXPECT_EQ(created_policies(), 1U);
}

TEST_F(ManagerTest, AKilledOperatorReleasesNothingAndSendsNothingMore) {
  a.start(sim);
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading || b.view->leading; }));
  OneOperator& leader = a.view->leading ? a : b;
  OneOperator& standby = a.view->leading ? b : a;
  run(1min);
  leader.kill->notify();
  ASSERT_TRUE(eventually([&] { return leader.result.has_value(); }, 10s));
  EXPECT_EQ(leader.result->error().reason, k8s::Reason::cancelled);
  const std::uint64_t requests = leader.transport.requests();
  run(10s);
  EXPECT_FALSE(standby.view->leading);
  EXPECT_TRUE(eventually([&] { return standby.view->leading; }, 12s));
  EXPECT_EQ(leader.transport.requests(), requests);
}

TEST_F(ManagerTest, ACrashPointEndsItAfterThatWriteAndANewOneGoesOn) {
  install_crds();
  a.hooks.crash_after_write = [](std::uint64_t n, const PlannedAction&) { return n == 1; };
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }));
  EXPECT_EQ(a.result->error().reason, k8s::Reason::cancelled);
  EXPECT_EQ(a.view->writes, 1U);
  EXPECT_EQ(server.get(kLeases, {"gpu-sharing-operator", "gpu-sharing-operator"})->at("spec").at("holderIdentity"),
            "a");
  b.start(sim);
  EXPECT_TRUE(eventually([&] { return b.view->leading && b.view->idle; }));
  EXPECT_TRUE(server.get(kPolicies, {"", "default"}).has_value());
  EXPECT_EQ(created_policies(), 1U);
}

TEST_F(ManagerTest, ALeaderThatIsCutOffStopsWritingStandsByAndLeadsAgain) {
  install_crds();
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  a.transport.set_connected(false);
  run(11s);
  EXPECT_FALSE(a.view->leading);
  EXPECT_FALSE(a.result.has_value()) << "it goes on as a standby";
  a.transport.set_connected(true);
  EXPECT_TRUE(eventually([&] { return a.view->leading; }, 1min));
}

// Else the sum over the replicas, and an alert's maximum, would hold on to what was true once.
TEST_F(ManagerTest, AStandbyReportsNoStateOfTheFleetThatItKnewAsTheLeader) {
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

// Whoever scrapes a fleet of 50,000 nodes gets what a fleet of five costs.
TEST_F(ManagerTest, AsManySeriesForManyNodesAsForOne) {
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

TEST_F(ManagerTest, ExitOnLeaseLossEndsIt) {
  a.options.exit_on_lease_loss = true;
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading; }));
  a.transport.set_connected(false);
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 1min));
  EXPECT_EQ(a.result->error().reason, k8s::Reason::unavailable);
}

TEST_F(ManagerTest, ADryRunWritesNothingNotEvenTheLease) {
  install_crds();
  a.options.dry_run = true;
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->passes > 0; }));
  run(10min);
  EXPECT_THAT(writes, IsEmpty());
  EXPECT_THAT(lease_writes, IsEmpty());
  EXPECT_THAT(a.log, HasSubstr("Would act (dry run)"));
}

TEST_F(ManagerTest, AServerThatIsNotThereIsWaitedFor) {
  a.transport.set_connected(false);
  a.start(sim);
  run(5min);
  EXPECT_FALSE(a.result.has_value());
  a.transport.set_connected(true);
  EXPECT_TRUE(eventually([&] { return a.view->synced && a.view->leading; }, 1min));
}

TEST_F(ManagerTest, AStopWhileNothingCanBeReachedStillEnds) {
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading; }));
  a.transport.set_connected(false);
  a.stop->notify();
  EXPECT_TRUE(eventually([&] { return a.result.has_value(); }, 30s));
  EXPECT_TRUE(a.result->has_value());
}

TEST_F(ManagerTest, ContradictingOptionsAreRefusedAtOnce) {
  a.options.renew_deadline = 20s;
  a.start(sim);
  run(1s);
  ASSERT_TRUE(a.result.has_value());
  EXPECT_EQ(a.result->error().reason, k8s::Reason::invalid);
  EXPECT_THAT(a.result->error().message, HasSubstr("renew-deadline"));
}

Json debug(OneOperator& one, const std::string& path, bool put = false, int status = 200) {
  const DebugAnswer answer = one.view->debug({path, put});
  EXPECT_EQ(answer.status, status) << path << ": " << answer.json;
  return Json::parse(answer.json, nullptr, false);
}

TEST_F(ManagerTest, DebugShowsStoresQueueAndNodesAndSetsTheLogLevel) {
  create("/api/v1/nodes",
         R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"bare","labels":{"nvidia.com/gpu.count":"4"}}})");
  a.start(sim);
  EXPECT_TRUE(sim.clock.run_until([&] { return a.view->synced && a.view->passes > 0; }, 1min));
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
}

}  // namespace
}  // namespace gso
