// KaiReader over a simulated API server, with one reservation that nobody needs.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "controller/kai/kai_lookups.h"
#include "k8sclient/api/client.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/registry.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim::kai_test {

using namespace std::chrono_literals;

inline const std::string kTeamPods = std::string("/api/v1/namespaces/") + kTeam + "/pods";
inline const std::string kReservation = std::string("/api/v1/namespaces/") + kReservations + "/pods/r";
inline const std::string kRequests =
    std::string("/apis/scheduling.run.ai/v1alpha2/namespaces/") + kTeam + "/bindrequests";
inline const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/kai-scheduler/leases";

// KAI with one reservation "r" of group "g" on node n1 that nobody needs; the world is as it was when that was planned.
class KaiChecksTest : public ::testing::Test {
 public:
  KaiChecksTest() {
    install_kai(server, sim.clock, {"n1"}, sim.clock.now());
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kReservations + "/pods",
         kai_reservation("r", "g", "n1"));
    world.kai.configs.apply(project_kai_config(kai_config().dump()).value());
    world.kai.configs_served = world.kai.bind_requests_served = true;
    see();
  }
  void TestBody() override {}  // A row is not a test of its own.
  void send(k8s::Method method, const std::string& path, const Json& body,
            const std::string& type = "application/json") {
    EXPECT_LT(send_as_kai(server, method, path, body, type), 300) << path;
  }
  void patch(const std::string& path, const Json& body) {
    send(k8s::Method::patch, path, body, "application/merge-patch+json");
  }
  // The reservation as the watch has it now, and its deletion as planned by that.
  void see() { deletion = deletion_of("r", "NoConsumers"); }
  PlannedAction deletion_of(const std::string& name, const std::string& reason) {
    KaiPod pod = project_kai_pod(server.get(kPods, {kReservations, name}).value().dump()).value();
    world.kai.pods.apply(pod);
    DeletePod action;
    action.pod = pod.meta.key();
    action.uid = pod.meta.uid;
    action.resource_version = pod.meta.resource_version;
    return {std::string(kReservationGc), action, {reason, ""}, true, ""};
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
  KaiReader checks{&client, &sim.clock, &world, &settings, log};
  PlannedAction deletion;
};

}  // namespace gso::sim::kai_test
