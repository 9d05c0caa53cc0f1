// The whole operator on the simulated API server: when it may plan, what it watches, leader changes, stops and crashes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "controller/config/logging.h"
#include "controller/runtime/manager.h"
#include "controller/runtime/run_operator.h"
#include "tests/controller/operators.h"
#include "tests/sim/apiserver/request.h"

namespace gso {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

const k8s::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
const k8s::ObjectKey kLease{"gpu-sharing-operator", "gpu-sharing-operator"};

sim::FaultRule always(sim::Fault fault, const std::string& resource) {
  sim::FaultRule rule;
  rule.fault = fault;
  rule.resource = resource;
  return rule;
}

// The first policy is created, and its answer is lost.
sim::FaultRule first_creation_without_an_answer() {
  sim::FaultRule lost = always(sim::Fault::ambiguous, "sharingpolicies");
  lost.verb = "create";
  lost.times = 1;
  return lost;
}

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

// Of a Manager that a test asks directly.
Runtime runtime_of(OneOperator& one, Sim& sim) {
  Runtime runtime;
  runtime.transport = &one.transport;
  runtime.clock = &sim.clock;
  runtime.view = std::make_shared<RuntimeView>();
  runtime.metrics = one.metrics;
  runtime.seed = 7;
  runtime.log = std::make_shared<Logger>(
      LogFormat::text, LogLevel::info, [&sim] { return sim.clock.now(); },
      [&one](const std::string& line) { one.log += line + "\n"; });
  return runtime;
}

TEST_F(ManagerTest, AMissingNamespaceOfTheLeaseIsSaidOnceInTheLogAndByTheReadinessProbe) {
  a.options.namespace_ = "elsewhere";
  Manager manager(runtime_of(a, sim), a.options, sim.io.get_executor());
  manager.start();
  run(50s);
  const ProbeAnswer ready = manager.ready();
  EXPECT_FALSE(ready.ok);
  EXPECT_THAT(ready.text, HasSubstr("Lease elsewhere/gpu-sharing-operator could not be created"));
  EXPECT_THAT(ready.text, HasSubstr("namespace elsewhere does not exist. Nothing is planned or written"));
  EXPECT_THAT(a.log, HasSubstr("namespace elsewhere does not exist"));
  EXPECT_EQ(a.log.find("WARN"), a.log.rfind("WARN")) << a.log;
  create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"elsewhere"}})");
  EXPECT_TRUE(eventually([&] { return manager.ready().ok && manager.leading(); }));
  EXPECT_THAT(a.log, HasSubstr("Recovered: Lease could not be acquired or renewed"));
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
  for (const char* name : {"here", "gone"}) {
    create("/api/v1/nodes", fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}"}}}})", name));
  }
  create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}})");
  create_plugin("gpu-operator");
  create_plugin("other");
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
TEST_F(ManagerTest, WhereNoWatchOpensInTimeTheFirstViewIsListed) {
  sim::FaultRule slow = always(sim::Fault::latency, "nodes");
  slow.verb = "watch";
  slow.delay = 40s;
  a.transport.faults().add(slow);
  a.start(sim);
  EXPECT_TRUE(eventually([&] { return a.view->synced; }, 2min));
}

// In chunks that come too late.
TEST_F(ManagerTest, InitialEventsThatStayAwayAreListed) {
  sim::FaultRule silent = always(sim::Fault::latency, "nodes");
  silent.verb = "watch";
  silent.delay = 40s;
  silent.skip = 1;  // It opens.
  silent.times = 1;
  a.transport.faults().add(silent);
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced; }, 2min));
  EXPECT_EQ(a.metric("gpusharing_watch_synced", {{"resource", "nodes"}}), 1);
}

TEST_F(ManagerTest, WatchesFollowTheDaemonSetsThatAreDiscovered) {
  create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}})");
  create_plugin("gpu-operator");
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

TEST_F(ManagerTest, ANamespaceThatCannotBeReadIsReportedByEventAndTheRestIsReady) {
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

// Nothing is planned then, so nobody but the probe and the Event can say why.
TEST_F(ManagerTest, ARecordThatCannotBeReadIsReportedByEventAndByTheReadinessProbe) {
  create_plugin("gpu-operator");
  a.transport.faults().add(always(sim::Fault::forbidden, "configmaps"));
  Runtime runtime = runtime_of(a, sim);
  runtime.instance = "pod-1";
  Manager manager(std::move(runtime), a.options, sim.io.get_executor());
  manager.start();
  run(1min);
  EXPECT_FALSE(manager.ready().ok);
  EXPECT_THAT(manager.ready().text, HasSubstr("configmaps of gpu-sharing-operator"));
  EXPECT_THAT(manager.ready().text, HasSubstr("forbidden"));
  const auto events = server.list({"events.k8s.io", "v1", "events"});
  EXPECT_TRUE(std::ranges::any_of(events, [](const Json& event) {
    return event["reason"] == "Forbidden" && event["regarding"]["name"] == "gpu-sharing-operator";
  }));
  a.transport.faults().clear();
  EXPECT_TRUE(eventually([&] { return manager.ready().ok; }, 5min));
  sim.run(end(&manager));
}

// A namespace of a plugin does not keep the operator from its work elsewhere.
TEST_F(ManagerTest, ANamespaceThatCannotBeReadIsNamedByAReadyProbe) {
  create_plugin("gpu-operator");
  a.transport.faults().add(always(sim::Fault::forbidden, "pods"));
  Manager manager(runtime_of(a, sim), a.options, sim.io.get_executor());
  manager.start();
  run(1min);
  EXPECT_TRUE(manager.ready().ok);
  EXPECT_THAT(manager.ready().text, HasSubstr("ok, leading\nwithout pods of gpu-operator"));
  sim.run(end(&manager));
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
  EXPECT_TRUE(eventually([&] { return b.view->leading; }, 200ms)) << "its watch shows that the Lease is free";
  run(5s);
  EXPECT_LE(b.transport.requests() - requests, 8U) << "nothing but the Lease";
  run(10min);
  EXPECT_EQ(created_policies(), 1U);
}

TEST_F(ManagerTest, TheLeasesEventsSayWhoBecameTheLeader) {
  install_crds();
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  run(1min);
  std::vector<std::string> notes;
  for (const auto& event : server.list({"events.k8s.io", "v1", "events"})) {
    if (event.at("reason") == "LeaderElection") notes.push_back(event.at("note"));
  }
  EXPECT_EQ(notes, std::vector<std::string>{"a became leader"});
}

TEST_F(ManagerTest, AStandbyThatIsNotAllowedToWatchTheLeaseTakesOverALittleLater) {
  install_crds();
  for (const char* verb : {"watch", "list"}) {
    sim::FaultRule denied = always(sim::Fault::forbidden, "leases");
    denied.verb = verb;
    b.transport.faults().add(denied);
  }
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced; }));
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 10s));
  EXPECT_TRUE(eventually([&] { return b.view->leading; }, 5s));
}

TEST_F(ManagerTest, ALeaderWhoseLeaseIsDeletedCreatesItAnewAtOnceAndGoesOn) {
  install_crds();
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
  remove("/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases/gpu-sharing-operator");
  EXPECT_TRUE(eventually([&] { return server.get(kLeases, kLease).has_value(); }, 200ms));
  EXPECT_TRUE(a.view->leading);
}

// A successor that leads at once could write beside the write that was cancelled here (S4).
TEST_F(ManagerTest, AStopWithAnUnansweredWriteKeepsTheLeaseUntilItExpires) {
  install_crds();
  a.options.shutdown_timeout = 1s;
  sim::FaultRule slow = always(sim::Fault::latency, "sharingpolicies");
  slow.verb = "create";
  slow.delay = 9s;
  a.transport.faults().add(slow);
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.metric("gpusharing_writes_in_flight") == 1; }));
  b.start(sim);
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 3s));
  EXPECT_EQ(server.get(kLeases, kLease)->at("spec").at("holderIdentity"), "a");
  run(9s);
  EXPECT_FALSE(b.view->leading) << "the write can still land";
  EXPECT_TRUE(eventually([&] { return b.view->leading && b.view->idle; }, 30s));
  EXPECT_EQ(created_policies(), 1U);
}

// Whoever asks in vain has given up, the server need not have.
TEST_F(ManagerTest, AStopAMomentAfterAnAnswerWasLostKeepsTheLeaseUntilItExpires) {
  install_crds();
  a.transport.faults().add(first_creation_without_an_answer());
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.transport.faults().count(sim::Fault::ambiguous) == 1; }));
  b.start(sim);
  run(3s);
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 3s));
  EXPECT_EQ(server.get(kLeases, kLease)->at("spec").at("holderIdentity"), "a");
  EXPECT_TRUE(eventually([&] { return b.view->leading && b.view->idle; }, 30s));
  EXPECT_EQ(created_policies(), 1U);
}

TEST_F(ManagerTest, AStopLongAfterAnAnswerWasLostReleasesTheLease) {
  install_crds();
  a.transport.faults().add(first_creation_without_an_answer());
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.transport.faults().count(sim::Fault::ambiguous) == 1; }));
  run(1min);
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }, 3s));
  EXPECT_EQ(server.get(kLeases, kLease)->at("spec").at("holderIdentity"), "");
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
  EXPECT_EQ(server.get(kLeases, kLease)->at("spec").at("holderIdentity"), "a");
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

// A load balancer without a backend: every watch breaks, and none can be opened again for 30 seconds.
TEST_F(ManagerTest, AfterAnOutageBehindALoadBalancerEveryWatchGoesOnWhereItWas) {
  install_crds();
  create_plugin("gpu-operator");
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->leading && a.view->idle; }));
  run(3min);
  const std::size_t streams = server.open_watches();
  ASSERT_GT(streams, 5U);
  const std::set<std::string> absent{"nvidia.com", "resource.k8s.io", "kai.scheduler", "scheduling.run.ai"};
  std::size_t watches = 0;
  std::vector<std::string> views;  // Requests for a complete view.
  a.transport.set_request_listener([&](const k8s::HttpRequest& request) {
    const sim::RequestInfo info = sim::parse_request(request);
    if (absent.contains(info.group)) return;  // Asked for now and then.
    if (info.verb == "watch") ++watches;
    if (info.verb == "list" || info.flag("sendInitialEvents")) views.push_back(request.path);
  });
  a.transport.faults().add({.fault = sim::Fault::bad_gateway, .status = 502});
  a.transport.reset_streams();
  run(30s);
  EXPECT_GE(watches, 4 * streams) << "each watch has failed as often as a silent one may be silent";
  EXPECT_EQ(server.open_watches(), 0U);
  create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}})");
  a.transport.faults().clear();
  ASSERT_TRUE(eventually([&] { return server.open_watches() == streams && a.view->leading && a.view->idle; }));
  run(1min);
  EXPECT_THAT(views, IsEmpty()) << views.front();
  EXPECT_EQ(a.metric("gpusharing_store_objects", {{"resource", "nodes"}}), 2) << "what happened meanwhile is known";
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

// The view outlives the operator: a debug function that points into it must not.
TEST_F(ManagerTest, AnOperatorThatEndsByAnExceptionLeavesNoDebugFunctionBehind) {
  Runtime runtime;
  runtime.transport = &a.transport;
  runtime.clock = &sim.clock;
  runtime.view = a.view;
  runtime.seed = 7;
  bool had_debug = false;
  runtime.log = std::make_shared<Logger>(
      LogFormat::text, LogLevel::info, [this] { return sim.clock.now(); },
      [&](const std::string& line) {
        had_debug = a.view->debug != nullptr;
        if (line.find("Started") != std::string::npos) throw std::runtime_error("the log is full");
      });
  std::string thrown;
  boost::asio::co_spawn(sim.io, run_operator(runtime, a.options),
                        [&thrown](const std::exception_ptr& error, const k8s::Result<void>&) {
                          if (error == nullptr) return;
                          try {
                            std::rethrow_exception(error);
                          } catch (const std::exception& e) {
                            thrown = e.what();
                          }
                        });
  run(1s);
  EXPECT_EQ(thrown, "the log is full");
  EXPECT_TRUE(had_debug);
  EXPECT_FALSE(a.view->debug);
}

}  // namespace
}  // namespace gso
