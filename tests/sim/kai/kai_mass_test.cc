// Many orphans, and many healthy multi-device groups, over a connection with latency: the collection keeps its bound,
// and passes for everything else go on.
//
// GSO_KAI_MASS=2600 GSO_KAI_NODES=325 runs it at that size (default: a small one).
#include <fmt/format.h>
#include <fmt/printf.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>

#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/kai/kai_objects.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/story/in_process_operator.h"

namespace gso::sim::kai_mass_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr const char* kUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";

int from_environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

class Mass : public ::testing::Test {
 protected:
  Mass() {
    server.add_audit_listener([this](const AuditEntry& entry) {
      if (entry.user == kUser && entry.verb == "delete" && entry.status < 300) ++deleted;
    });
    const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(crds, Json::parse(kai_config_crd()));
    post(crds, Json::parse(kai_bind_request_crd()));
    for (const char* ns : {"kai-scheduler", kReservations, kTeam, "gpu-sharing-operator"})
      post("/api/v1/namespaces", kai_namespace(ns));
    for (int n = 0; n < nodes; ++n) post("/api/v1/nodes", kai_node(fmt::format("n{}", n)));
    clock.run_for(1s);
    post("/apis/kai.scheduler/v1/configs", kai_config());
    post("/apis/apps/v1/namespaces/kai-scheduler/deployments", kai_binder());
    patch("/apis/apps/v1/namespaces/kai-scheduler/deployments/binder/status",
          kai_binder_status(true, k8s::format_time(clock.now() - 1h)));
  }
  ~Mass() override {
    bool ended = false;
    asio::co_spawn(io, op.kill(), [&ended](const std::exception_ptr&) { ended = true; });
    clock.run_until([&ended] { return ended; }, 1min);
    clock.run_for(1min);
  }
  void send(k8s::Method method, const std::string& path, const Json& body, const std::string& type) {
    const std::string text = body.dump();
    const int status =
        server.handle(local_request(method, path, text, type), {.user = "kai", .user_agent = "kai"}).status;
    ASSERT_LT(status, 300) << path;
  }
  void post(const std::string& path, const Json& body) { send(k8s::Method::post, path, body, "application/json"); }
  void patch(const std::string& path, const Json& body) {
    send(k8s::Method::patch, path, body, "application/merge-patch+json");
  }
  void reservation(int i) {
    Json pod = kai_reservation(fmt::format("r-{:05}", i), fmt::format("g-{:05}", i), fmt::format("n{}", i % nodes));
    pod["metadata"]["annotations"] = {{"run.ai/reserve_for_gpu_index", fmt::format("GPU-{}", i)}};
    const std::string pods = fmt::format("/api/v1/namespaces/{}/pods", kReservations);
    post(pods, pod);
    patch(fmt::format("{}/r-{:05}/status", pods, i), {{"status", {{"phase", "Running"}}}});
  }
  // Of the group's reservation; a BindRequest beside it where KAI still has one.
  void multi_device_consumer(int i, bool requested) {
    const std::string name = fmt::format("c-{:05}", i);
    const std::string group = fmt::format("g-{:05}", i);
    const std::string node = fmt::format("n{}", i % nodes);
    Json pod = kai_fraction_pod(name, 2, "kai-scheduler");
    pod["metadata"]["labels"] = {{"runai-gpu-group/" + group, group}};
    pod["spec"]["nodeName"] = node;
    const std::string pods = fmt::format("/api/v1/namespaces/{}/pods", kTeam);
    post(pods, pod);
    patch(fmt::format("{}/{}/status", pods, name), {{"status", {{"phase", "Running"}}}});
    if (!requested) return;
    const std::string requests = fmt::format("/apis/scheduling.run.ai/v1alpha2/namespaces/{}/bindrequests", kTeam);
    post(requests, kai_bind_request({{"metadata", {{"name", name}, {"uid", "u"}}}}, node, {group}, false));
    patch(fmt::format("{}/{}/status", requests, name), {{"status", {{"phase", "Succeeded"}}}});
  }
  void start() {
    const auto started = op.start({{"leader-elect", "false"}, {"log-level", "warn"}});
    ASSERT_TRUE(started) << started.error().message;
  }

  const int count = from_environment("GSO_KAI_MASS", 160);
  const int nodes = from_environment("GSO_KAI_NODES", 40);
  asio::io_context io{1};
  SimClock clock{io, *k8s::parse_rfc3339("2026-03-01T08:00:00Z")};
  ApiServer server{io.get_executor(), clock};
  InProcessTransport transport{server, {.user = kUser, .user_agent = "gpu-sharing-operator", .latency = 50ms}};
  InProcessOperator op{io.get_executor(), &transport, &clock};
  int deleted = 0;
};

TEST_F(Mass, OrphansAreGoneWithinTheirBoundAndPassesGoOn) {
  for (int i = 0; i < count; ++i) reservation(i);
  start();
  const int each = (count + nodes - 1) / nodes;
  const k8s::Duration bound = 5min + 1min + (each - 1) * 1min;
  const k8s::MonoTime begun = clock.monotonic();
  int slow = 0;
  for (int step = 0; deleted < count && clock.monotonic() - begun < bound + 5min; ++step) {
    const std::uint64_t before = op.view()->passes;
    patch("/api/v1/nodes/n0", {{"metadata", {{"labels", {{"step", std::to_string(step)}}}}}});
    clock.run_for(3s);
    if (op.view()->passes == before) ++slow;
    clock.run_for(7s);
  }
  EXPECT_EQ(deleted, count);
  EXPECT_LE(clock.monotonic() - begun, bound);
  EXPECT_EQ(slow, 0) << "changes that no pass looked at within three seconds";
  fmt::print("{} orphans on {} nodes gone in {} s (bound {} s), {} requests, {} passes\n", count, nodes,
             (clock.monotonic() - begun) / 1s, bound / 1s, transport.requests(), op.view()->passes);
}

// For the alert: the counter of failures says how many, and not which.
TEST_F(Mass, AReservationThatMustNotBeDeletedIsNamed) {
  transport.faults().add({.fault = Fault::forbidden, .verb = "delete", .resource = "pods", .name = "r-00001"});
  reservation(0);
  reservation(1);
  start();
  const std::string named = R"(gpusharing_affected_objects{reason="ReservationDue",kind="Pod",object="%s/r-0000%d"} 1)";
  const auto is_named = [&](int i) {
    const std::string line = fmt::sprintf(named, kReservations, i);
    return op.metrics_page().value_or("").find(line) != std::string::npos;
  };
  EXPECT_TRUE(clock.run_until([&] { return is_named(1); }, 15min));
  clock.run_for(10min);
  EXPECT_EQ(deleted, 1);
  EXPECT_TRUE(is_named(1)) << op.metrics_page().value_or("");
  EXPECT_FALSE(is_named(0)) << "it is gone";
}

TEST_F(Mass, HealthyMultiDeviceGroupsCostFewRequests) {
  for (int i = 0; i < count; ++i) {
    reservation(i);
    multi_device_consumer(i, i % 8 != 0);
  }
  start();
  clock.run_for(3min);
  for (int minute = 0; minute < 3; ++minute) {
    const std::uint64_t requests = transport.requests();
    clock.run_for(60s);
    EXPECT_LE(transport.requests() - requests, 200u);
  }
  EXPECT_EQ(deleted, 0);
}

}  // namespace
}  // namespace gso::sim::kai_mass_test
