// The last look before a reservation is deleted, and the look-ups, against the simulated API server: what has changed
// since the plan, and every error, keeps the pod.
#include "controller/kai_checks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "k8sclient/client.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/registry.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim {
namespace {

using namespace std::chrono_literals;

const k8s::Gvr kPods{"", "v1", "pods"};
const std::string kTeamPods = std::string("/api/v1/namespaces/") + kTeam + "/pods";
const std::string kReservation = std::string("/api/v1/namespaces/") + kReservations + "/pods/r";
const std::string kRequests = std::string("/apis/scheduling.run.ai/v1alpha2/namespaces/") + kTeam + "/bindrequests";
const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/kai-scheduler/leases";

// KAI with one reservation "r" of group "g" on node n1 that nobody needs; the world is as it was when that was planned.
class KaiChecksTest : public ::testing::Test {
 protected:
  KaiChecksTest() {
    const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    send(k8s::Method::post, crds, Json::parse(kai_config_crd()));
    send(k8s::Method::post, crds, Json::parse(kai_bind_request_crd()));
    for (const char* ns : {"kai-scheduler", kReservations, kTeam}) {
      send(k8s::Method::post, "/api/v1/namespaces", kai_namespace(ns));
    }
    send(k8s::Method::post, "/api/v1/nodes", kai_node("n1"));
    sim.clock.run_for(1s);
    send(k8s::Method::post, "/apis/kai.scheduler/v1/configs", kai_config());
    Json pod = kai_reservation("r", "g", "n1");
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kReservations + "/pods", pod);
    world.kai.configs.apply(project_kai_config(kai_config().dump()).value());
    world.kai.configs_served = world.kai.bind_requests_served = true;
    see();
  }
  int send(k8s::Method method, const std::string& path, const Json& body,
           const std::string& type = "application/json") {
    const std::string text = body.is_null() ? std::string() : body.dump();
    const k8s::HttpResponse answer =
        server.handle(local_request(method, path, text, type), {.user = "kai", .user_agent = "kai"});
    EXPECT_LT(answer.status, 300) << path << ": " << answer.body;
    return answer.status;
  }
  void patch(const std::string& path, const Json& body) {
    send(k8s::Method::patch, path, body, "application/merge-patch+json");
  }
  // The reservation as the watch has it now, and its deletion as planned by that.
  void see() {
    const auto found = server.get(kPods, {kReservations, "r"});
    ASSERT_TRUE(found);
    KaiPod pod = project_kai_pod(found->dump()).value();
    world.kai.pods.apply(pod);
    DeletePod action;
    action.pod = pod.meta.key();
    action.uid = pod.meta.uid;
    action.resource_version = pod.meta.resource_version;
    deletion = {std::string(kReservationGc), action, "NoConsumers", "", true, ""};
  }
  void replicas(std::int64_t count) {
    Deployment binder;
    binder.meta.name = "binder";
    binder.meta.ns = Interned("kai-scheduler");
    binder.replicas = count;
    world.kai.deployments.apply(binder);
  }
  void lease(const std::string& holder, const std::string& acquired) {
    send(k8s::Method::post, kLeases,
         {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", kai::kBinderLease}, {"namespace", "kai-scheduler"}}},
          {"spec", {{"holderIdentity", holder}, {"acquireTime", acquired}}}});
  }
  void consumer(const std::string& label, const std::string& value, const std::string& phase) {
    Json pod = kai_fraction_pod("p", 1, "kai-scheduler");
    pod["metadata"]["labels"] = {{label, value}};
    pod["spec"]["nodeName"] = "n1";
    send(k8s::Method::post, kTeamPods, pod);
    patch(kTeamPods + "/p/status", {{"status", {{"phase", phase}}}});
  }
  void request(const std::string& phase, bool new_field = false) {
    send(k8s::Method::post, kRequests,
         kai_bind_request({{"metadata", {{"name", "p"}, {"uid", "u"}}}}, "n1", {"g"}, new_field));
    if (!phase.empty()) patch(kRequests + "/p/status", {{"status", {{"phase", phase}}}});
  }
  void fault(Fault kind, const std::string& verb, const std::string& resource) {
    FaultRule rule;
    rule.fault = kind;
    rule.verb = verb;
    rule.resource = resource;
    rule.delay = 1min;
    transport.faults().add(rule);
  }
  bool due() {
    const std::set<k8s::ObjectKey> found = sim.run(checks.still_due({deletion}));
    return found.contains({kReservations, "r"});
  }

  Sim sim;
  ApiServer server{sim.io.get_executor(), sim.clock};
  InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  World world;
  KaiSettings settings;
  std::shared_ptr<Logger> log =
      std::make_shared<Logger>(LogFormat::text, LogLevel::off, [this] { return sim.clock.now(); });
  KaiChecks checks{&client, &sim.clock, &world, &settings, log};
  PlannedAction deletion;
};

TEST_F(KaiChecksTest, ConfirmsAnOrphan) {
  EXPECT_TRUE(due());
}

// Rows reach the fixture through this, which makes its helpers public.
class LastLook : public KaiChecksTest {
 public:
  using KaiChecksTest::consumer;
  using KaiChecksTest::deletion;
  using KaiChecksTest::fault;
  using KaiChecksTest::lease;
  using KaiChecksTest::patch;
  using KaiChecksTest::replicas;
  using KaiChecksTest::request;
  using KaiChecksTest::see;
  using KaiChecksTest::send;
};

struct Change {
  const char* name;
  void (*make)(LastLook&);
  bool due;
};

void PrintTo(const Change& change, std::ostream* out) {
  *out << change.name;
}

class Changes : public LastLook, public ::testing::WithParamInterface<Change> {};

TEST_P(Changes, SinceThePlanDecide) {
  GetParam().make(*this);
  EXPECT_EQ(due(), GetParam().due);
}

INSTANTIATE_TEST_SUITE_P(
    LastLook, Changes,
    ::testing::Values(
        Change{"a_consumer", [](LastLook& look) { look.consumer("runai-gpu-group", "g", "Running"); }, false},
        Change{"a_consumer_of_unknown_phase", [](LastLook& look) { look.consumer("runai-gpu-group", "g", "Unknown"); },
               false},
        Change{"a_multi_device_consumer", [](LastLook& look) { look.consumer("runai-gpu-group/g", "g", "Running"); },
               false},
        Change{"a_multi_device_consumer_with_an_edited_value",
               [](LastLook& look) { look.consumer("runai-gpu-group/g", "edited", "Running"); }, false},
        Change{"a_finished_consumer", [](LastLook& look) { look.consumer("runai-gpu-group", "g", "Failed"); }, true},
        Change{"a_consumer_of_another_group", [](LastLook& look) { look.consumer("runai-gpu-group", "h", "Running"); },
               true},
        Change{"a_bind_not_begun", [](LastLook& look) { look.request(""); }, false},
        Change{"a_bind_in_flight", [](LastLook& look) { look.request("Pending"); }, false},
        Change{"a_bind_in_flight_by_the_newer_field", [](LastLook& look) { look.request("Pending", true); }, false},
        Change{"a_bind_that_has_failed_for_good", [](LastLook& look) { look.request("Failed"); }, true},
        Change{"a_bind_that_has_succeeded_for_a_pod_that_is_gone", [](LastLook& look) { look.request("Succeeded"); },
               true},
        Change{"a_bind_that_has_succeeded_for_a_pod_that_lives_without_the_label",
               [](LastLook& look) {
                 look.consumer("other", "x", "Running");
                 look.request("Succeeded");
               },
               false},
        Change{"a_bind_that_has_succeeded_for_a_pod_that_has_ended",
               [](LastLook& look) {
                 look.consumer("other", "x", "Succeeded");
                 look.request("Succeeded");
               },
               true},
        Change{"another_version_of_the_reservation",
               [](LastLook& look) { look.patch(kReservation, {{"metadata", {{"annotations", {{"a", "b"}}}}}}); },
               false},
        Change{"another_version_that_was_planned_by",
               [](LastLook& look) {
                 look.patch(kReservation, {{"metadata", {{"annotations", {{"a", "b"}}}}}});
                 look.see();
               },
               true},
        Change{"another_pod_of_that_name",
               [](LastLook& look) { std::get<DeletePod>(look.deletion.action).uid = "uid-of-before"; }, false},
        Change{
            "another_group",
            [](LastLook& look) { look.patch(kReservation, {{"metadata", {{"labels", {{"runai-gpu-group", "h"}}}}}}); },
            false},
        Change{"another_app_label",
               [](LastLook& look) { look.patch(kReservation, {{"metadata", {{"labels", {{"app", "mine"}}}}}}); },
               false},
        Change{"the_pod_is_gone",
               [](LastLook& look) { look.send(k8s::Method::del, kReservation, {{"gracePeriodSeconds", 0}}); }, false},
        Change{"another_reason", [](LastLook& look) { look.deletion.reason = "DuplicateReservation"; }, false},
        Change{"one_of_two_apis_is_gone",
               [](LastLook& look) {
                 look.send(k8s::Method::del,
                           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bindrequests.scheduling.run.ai",
                           nullptr);
               },
               false},
        Change{"pods_cannot_be_listed", [](LastLook& look) { look.fault(Fault::server_error, "list", "pods"); }, false},
        Change{"requests_cannot_be_listed",
               [](LastLook& look) { look.fault(Fault::server_error, "list", "bindrequests"); }, false},
        Change{"no_answer_comes", [](LastLook& look) { look.fault(Fault::hang, "list", "pods"); }, false},
        Change{"a_node_that_is_there_after_all",
               [](LastLook& look) { std::get<DeletePod>(look.deletion.action).grace_period_seconds = 0; }, false},
        Change{"a_node_that_is_gone",
               [](LastLook& look) {
                 std::get<DeletePod>(look.deletion.action).grace_period_seconds = 0;
                 look.send(k8s::Method::del, "/api/v1/nodes/n1", nullptr);
               },
               true},
        Change{"replicas_without_a_lease", [](LastLook& look) { look.replicas(2); }, true},
        Change{"replicas_with_an_old_leader",
               [](LastLook& look) {
                 look.replicas(2);
                 look.lease("binder-a", "2025-12-31T00:00:00.000000Z");
               },
               true},
        Change{"replicas_with_a_new_leader",
               [](LastLook& look) {
                 look.replicas(2);
                 look.lease("binder-a", "2025-12-31T23:59:00.000000Z");
               },
               false},
        Change{"replicas_without_a_leader",
               [](LastLook& look) {
                 look.replicas(2);
                 look.lease("", "2025-12-31T00:00:00.000000Z");
               },
               false},
        Change{"a_lease_that_cannot_be_read",
               [](LastLook& look) {
                 look.replicas(2);
                 look.fault(Fault::server_error, "get", "leases");
               },
               false},
        Change{"one_replica_whose_lease_nobody_reads",
               [](LastLook& look) {
                 look.replicas(1);
                 look.fault(Fault::server_error, "get", "leases");
               },
               true}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(KaiChecksTest, ListsPodsThatWait) {
  send(k8s::Method::post, kTeamPods, kai_fraction_pod("waits", 1, "kai-scheduler"));
  Json plain = kai_fraction_pod("plain", 1, "kai-scheduler");
  plain["metadata"].erase("annotations");
  send(k8s::Method::post, kTeamPods, plain);
  consumer("runai-gpu-group", "g", "Running");
  KaiWants wants;
  wants.waiting_pods = true;
  EXPECT_EQ(sim.run(checks.answer(wants)), KaiChecks::Answered::some);
  ASSERT_TRUE(world.kai.lookups.waiting);
  ASSERT_EQ(world.kai.lookups.waiting->pods.size(), 1u);
  EXPECT_EQ(world.kai.lookups.waiting->pods[0].pod.meta.name, "waits");
}

TEST_F(KaiChecksTest, KeepsWhatItKnewWhereALookUpFails) {
  KaiWants wants;
  wants.groups = {"g"};
  wants.pods = {{kTeam, "p"}};
  wants.binder_lease = true;
  EXPECT_EQ(sim.run(checks.answer(wants)), KaiChecks::Answered::some);
  const auto times = [this] {
    const KaiLookups& lookups = world.kai.lookups;
    return std::vector<k8s::WallTime>{lookups.groups.at("g").at, lookups.pods.at({kTeam, "p"}).at,
                                      lookups.binder_lease.value().at};
  };
  const std::vector<k8s::WallTime> before = times();
  sim.clock.run_for(10s);
  fault(Fault::server_error, "", "");
  EXPECT_EQ(sim.run(checks.answer(wants)), KaiChecks::Answered::failed);
  EXPECT_EQ(times(), before);
}

}  // namespace
}  // namespace gso::sim
