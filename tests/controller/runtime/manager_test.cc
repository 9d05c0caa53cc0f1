// The whole operator on the simulated API server: when it may plan, what it watches, and what it reports that it cannot
// read.
#include <gmock/gmock.h>

#include "reconcilers/model/policy.h"
#include "tests/controller/operators.h"

namespace gso::manager_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(ManagerTest, WithoutAnyOfOurCrdsItSyncsLeadsAndFallsSilent) {
  lead(a);
  run(5min);
  const std::size_t before = writes.size();
  run(40min);
  EXPECT_EQ(writes.size(), before) << writes.back();
  EXPECT_FALSE(lease_writes.empty());
  EXPECT_EQ(a.metric("leader_election_master_status", {{"name", "gpu-sharing-operator"}}), 1);
  EXPECT_EQ(a.metric("gpusharing_watches", {{"resource", "sharingpolicies"}}), 0) << "absent by discovery";
  EXPECT_EQ(a.metric("gpusharing_watch_current", {{"resource", "sharingpolicies"}}), 1);
}

TEST_F(ManagerTest, AModeThatThePolicyDefaultDoesNotHaveIsSaidToHaveNoEffect) {
  install_crds();
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},
             "spec":{"mode":"Enforce"}})");
  a.options.mode = PolicyMode::observe;
  lead(a);
  run(5min);
  EXPECT_THAT(a.log,
              HasSubstr("SharingPolicy default exists with mode Enforce. To limit the operator, use --max-mode"));
  EXPECT_EQ(a.log.find("Setting has no effect"), a.log.rfind("Setting has no effect")) << "once";
}

TEST_F(ManagerTest, TheDefaultPolicyIsCreatedOnceAndItsModeHasAnEffect) {
  install_crds();
  a.options.mode = PolicyMode::approve;
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return created_policies() == 1; }));
  run(1h);
  EXPECT_EQ(created_policies(), 1U);
  EXPECT_THAT(a.log, testing::Not(HasSubstr("Setting has no effect"))) << "the operator has created the policy";
}

TEST_F(ManagerTest, AMissingNamespaceOfTheLeaseIsSaidOnceInTheLogAndByTheReadinessProbe) {
  a.options.namespace_ = "elsewhere";
  Manager manager(a.runtime(sim), a.options, sim.io.get_executor());
  manager.start();
  run(50s);
  const ProbeAnswer ready = manager.ready();
  EXPECT_FALSE(ready.ok);
  EXPECT_THAT(ready.text, HasSubstr("Lease elsewhere/gpu-sharing-operator could not be created"));
  EXPECT_THAT(ready.text, HasSubstr("namespace elsewhere does not exist. Nothing is planned or written"));
  EXPECT_THAT(a.log, HasSubstr("namespace elsewhere does not exist"));
  EXPECT_EQ(a.log.find("WARN"), a.log.rfind("WARN")) << a.log;
  add_namespace("elsewhere");
  EXPECT_TRUE(eventually([&] { return manager.ready().ok && manager.leading(); }));
  EXPECT_THAT(a.log, HasSubstr("Recovered: Lease could not be acquired or renewed"));
  sim.run(end(&manager));
}

TEST_F(ManagerTest, NothingIsWrittenBeforeEveryStoreThatIsReadHasSynced) {
  install_crds();
  a.transport.faults().add(always(sim::Fault::server_error, "nodes"));
  a.start(sim);
  run(3min);
  std::erase_if(writes, [](const std::string& write) { return write.starts_with("a create events "); });
  EXPECT_THAT(writes, IsEmpty()) << writes.front() << ": only that it leads is said";
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

TEST_F(ManagerTest, ObjectsThatAreDeletedWhileTheFirstViewIsSentAreNotInIt) {
  for (const char* name : {"here", "gone"}) add_node(name);
  add_namespace("other");
  create_plugin("gpu-operator");
  create_plugin("other");
  a.options.operand_namespaces = {"gpu-operator", "other"};
  remove("/api/v1/nodes/gone");
  remove("/apis/apps/v1/namespaces/other/daemonsets/nvidia-device-plugin-daemonset");
  for (const char* resource : {"nodes", "daemonsets"}) {
    a.transport.faults().add(
        {.fault = sim::Fault::stale, .verb = "watch", .resource = resource, .times = 1, .revisions = 2});
  }
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced; }));
  EXPECT_EQ(a.transport.faults().count(sim::Fault::stale), 2U);
  EXPECT_EQ(a.metric("gpusharing_store_objects", {{"resource", "nodes"}}), server.list({"", "v1", "nodes"}).size());
  EXPECT_EQ(a.metric("gpusharing_store_objects", {{"resource", "daemonsets"}}), 1);
}

// A loaded server, or a proxy that holds streams back: a LIST always works.
TEST_F(ManagerTest, WhereNoWatchBringsTheFirstViewInTimeItIsListed) {
  sim::FaultRule slow = always(sim::Fault::latency, "nodes");
  slow.verb = "watch";
  slow.delay = 40s;
  a.transport.faults().add(slow);  // None opens.
  a.start(sim);
  slow.skip = slow.times = 1;  // One opens, and its chunks come too late.
  b.transport.faults().add(slow);
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && b.view->synced; }, 2min));
  EXPECT_EQ(b.metric("gpusharing_watch_current", {{"resource", "nodes"}}), 1);
}

TEST_F(ManagerTest, WatchesFollowTheDaemonSetsThatAreDiscovered) {
  add_namespace("other");
  create_plugin("gpu-operator");
  a.options.operand_namespaces = {"gpu-operator", "other"};
  a.start(sim);
  const auto pods = [&] { return a.metric("gpusharing_watches", {{"resource", "pods"}}); };
  const auto maps = [&] { return a.metric("gpusharing_watches", {{"resource", "configmaps"}}); };
  ASSERT_TRUE(eventually([&] { return a.view->synced; }));
  EXPECT_EQ(pods(), 1);
  EXPECT_EQ(maps(), 3) << "the plugin's, our own, and the parts of its record";
  const std::size_t streams = server.open_watches();
  create_plugin("other");
  run(5s);
  EXPECT_EQ(pods(), 2);
  EXPECT_EQ(maps(), 4);
  EXPECT_TRUE(a.view->synced);
  remove("/apis/apps/v1/namespaces/other/daemonsets/nvidia-device-plugin-daemonset");
  run(5s);
  EXPECT_EQ(pods(), 1);
  EXPECT_EQ(server.open_watches(), streams);
}

// What the Events say that they cannot be read.
std::set<std::string> forbidden(const sim::ApiServer& server) {
  std::set<std::string> out;
  for (const Json& event : server.list({"events.k8s.io", "v1", "events"}))
    if (event["reason"] == "Forbidden") out.insert(event["regarding"]["name"]);
  return out;
}

// A namespace of a plugin does not keep the operator from its work elsewhere.
TEST_F(ManagerTest, ANamespaceThatCannotBeReadIsReportedByEventAndByAReadyProbe) {
  create_plugin("gpu-operator");
  a.transport.faults().add(always(sim::Fault::forbidden, "pods"));
  Runtime runtime = a.runtime(sim);
  const auto view = runtime.view;
  Manager manager(std::move(runtime), a.options, sim.io.get_executor());
  manager.start();
  run(3min);
  EXPECT_TRUE(view->synced) << "refused is not loading";
  EXPECT_TRUE(manager.ready().ok);
  EXPECT_THAT(manager.ready().text, HasSubstr("ok, leading\nwithout pods of gpu-operator"));
  EXPECT_TRUE(forbidden(server).contains("gpu-operator"));
  EXPECT_EQ(a.metric("gpusharing_findings", {{"severity", "error"}, {"reason", "Forbidden"}}), 1);
  sim.run(end(&manager));
}

// Nothing is planned then, so nobody but the probe and the Event can say why.
TEST_F(ManagerTest, ARecordThatCannotBeReadIsReportedByEventAndByTheReadinessProbe) {
  create_plugin("gpu-operator");
  a.transport.faults().add(always(sim::Fault::forbidden, "configmaps"));
  Manager manager(a.runtime(sim), a.options, sim.io.get_executor());
  manager.start();
  run(1min);
  EXPECT_FALSE(manager.ready().ok);
  EXPECT_THAT(manager.ready().text, HasSubstr("configmaps of gpu-sharing-operator"));
  EXPECT_THAT(manager.ready().text, HasSubstr("forbidden"));
  EXPECT_TRUE(forbidden(server).contains("gpu-sharing-operator"));
  a.transport.faults().clear();
  EXPECT_TRUE(eventually([&] { return manager.ready().ok; }, 5min));
  sim.run(end(&manager));
}

// A watch has a connection of its own, which is worth opening when discovery names the kind.
TEST_F(ManagerTest, AKindThatIsNotServedCostsNoWatchAndIsWatchedAtTheFirstLookAfterItAppears) {
  create_plugin("gpu-operator");
  a.start(sim);
  run(10s);
  std::vector<std::string> watches;
  a.transport.set_request_listener([&](const k8s::HttpRequest& request) {
    if (sim::parse_request(request).verb == "watch") watches.push_back(request.path);
  });
  run(4min);
  EXPECT_THAT(watches, IsEmpty()) << watches.front();
  install_crds();
  run(31s);
  EXPECT_EQ(created_policies(), 1U);
  EXPECT_EQ(a.metric("gpusharing_watches", {{"resource", "sharingpolicies"}}), 1);
  EXPECT_EQ(a.metric("gpusharing_watches", {{"resource", "sharingrollouts"}}), 1);
}

// A load balancer without a backend: every watch breaks, and none can be opened again for 30 seconds.
TEST_F(ManagerTest, AfterAnOutageBehindALoadBalancerEveryWatchGoesOnWhereItWas) {
  install_crds();
  create_plugin("gpu-operator");
  lead(a);
  run(3min);
  const std::size_t streams = server.open_watches();
  ASSERT_GT(streams, 5U);
  const std::set<std::string> absent{"nvidia.com", "resource.k8s.io", "kai.scheduler", "scheduling.run.ai"};
  std::size_t watches = 0;
  std::vector<std::string> views;  // Requests for a complete view.
  a.transport.set_request_listener([&](const k8s::HttpRequest& request) {
    const sim::RequestInfo info = sim::parse_request(request);
    if (absent.contains(info.group)) return;  // Asked for now and then.
    // After a connection broke, a list of one object reads its version and the server's.
    const bool version = request.path.ends_with("limit=1");
    if (info.verb == "watch" || version) ++watches;
    const bool of_leader = request.path.contains("gpusharing.dev%2Fstate");  // Nodes in a change, as it leads again.
    const bool view = info.verb == "list" || info.flag("sendInitialEvents");
    // The elector renews its Lease before the watch of it is open: another version than the newest that was seen.
    const bool of_lease = request.path.contains("/leases");
    if (view && !version && !of_leader && !of_lease) views.push_back(request.path);
  });
  a.transport.faults().add({.fault = sim::Fault::bad_gateway, .status = 502});
  a.transport.reset_streams();
  run(30s);
  EXPECT_GE(watches, 4 * streams) << "each watch has failed as often as a silent one may be silent";
  EXPECT_EQ(server.open_watches(), 0U);
  add_node("n2");
  a.transport.faults().clear();
  ASSERT_TRUE(eventually([&] { return server.open_watches() == streams && a.view->leading && a.view->idle; }));
  run(1min);
  EXPECT_THAT(views, IsEmpty()) << views.front();
  EXPECT_EQ(a.metric("gpusharing_store_objects", {{"resource", "nodes"}}), 2) << "what happened meanwhile is known";
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

// In the state ConfigMap, where commands of people read them.
TEST_F(ManagerTest, TheOptionsOfTheOperatorThatLeadsAreRecordedUnlessAllAreDefaults) {
  const auto recorded = [&] {
    return get("/api/v1/namespaces/gpu-sharing-operator/configmaps/gpu-sharing-operator-state")
        .value(Json::json_pointer("/data/options.json"), "none");
  };
  install_crds();
  create_plugin("gpu-operator");
  post("/api/v1/namespaces/gpu-operator/configmaps",
       R"({"metadata":{"name":"mps-config"},"data":{"any":"version: v1\n"}})");
  merge("/api/v1/nodes/n1", R"({"metadata":{"labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}}})");
  for (OneOperator* one : {&a, &b}) {
    one->options.operand_namespaces.clear();
    one->options.settle = 10s;
  }
  OneOperator usual{sim, server, "usual"};
  usual.options = a.options;
  usual.options.identity = "usual";
  lead(usual);
  run(5min);
  EXPECT_EQ(recorded(), "none");
  usual.stop->notify();
  ASSERT_TRUE(eventually([&] { return usual.result.has_value(); }));
  a.options.cluster_max_unavailable = {3, false};
  a.start(sim);
  EXPECT_TRUE(eventually([&] { return recorded() == R"({"cluster-max-unavailable":"3"})"; })) << recorded();
  run(1min);
  const std::size_t before = writes.size();
  run(5min);
  EXPECT_EQ(writes.size(), before) << "written once";
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }));
  b.start(sim);
  EXPECT_TRUE(eventually([&] { return recorded().empty(); })) << recorded() << ": it has the defaults again";
}

TEST_F(ManagerTest, AServerThatIsNotThereIsWaitedFor) {
  a.transport.set_connected(false);
  a.start(sim);
  run(5min);
  EXPECT_FALSE(a.result.has_value());
  a.transport.set_connected(true);
  EXPECT_TRUE(eventually([&] { return a.view->synced && a.view->leading; }, 1min));
}

TEST_F(ManagerTest, ContradictingOptionsAreRefusedAtOnce) {
  a.options.renew_deadline = 20s;
  a.start(sim);
  run(1s);
  ASSERT_TRUE(a.result.has_value());
  EXPECT_EQ(a.result->error().reason, k8s::Reason::invalid);
  EXPECT_THAT(a.result->error().message, HasSubstr("renew-deadline"));
}

}  // namespace
}  // namespace gso::manager_test
