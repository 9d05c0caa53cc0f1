// What kubelet says before it removes a pod, and what it does when its node is back.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "k8sclient/value/object.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/fleet/one_node.h"

namespace gso::sim::fleet_kubelet_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kDaemon = "mps-control-daemon-ctr";

// Notes how each MPS daemon ended, as its pod said last before it was removed; -1: it did not say.
void note_ends(TestCluster* cluster, std::vector<std::int64_t>* codes) {
  cluster->server.add_audit_listener([codes](const AuditEntry& entry) {
    if (entry.gvr.resource != "pods" || entry.before == nullptr || entry.after != nullptr) return;
    const json status = entry.before->value("status", json::object());
    for (const json& container : status.value("containerStatuses", json::array())) {
      if (container.value("name", "") != kDaemon) continue;
      const json ended = container["state"].value("terminated", json::object());
      codes->push_back(ended.value("exitCode", std::int64_t{-1}));
    }
  });
}

bool daemon_runs(const TestCluster& cluster) {
  const json status = cluster.container(kNode, kMpsSet, kDaemon);
  return !status.is_null() && status["state"].contains("running");
}

TEST(Kubelet, PublishesHowContainersEndedBeforeItRemovesTheirPod) {
  for (const k8s::Duration delay : {0ms, 300ms, 3000ms}) {
    std::vector<std::int64_t> codes;
    OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
    note_ends(&cluster, &codes);
    FaultRule slow;
    slow.fault = Fault::latency;
    slow.verb = "patch";
    slow.resource = "pods";
    slow.delay = delay;
    if (delay > 0ms) cluster.transport.faults().add(slow);
    cluster.fleet.faults().mps_unclean_exit = true;
    constexpr std::size_t kTimes = 6;
    for (std::size_t removed = 1; removed <= kTimes; ++removed) {
      cluster.delete_pods(kNode, kMpsSet);
      ASSERT_TRUE(cluster.eventually([&] { return codes.size() == removed && daemon_runs(cluster); }));
    }
    EXPECT_EQ(codes, std::vector<std::int64_t>(kTimes, 137)) << delay.count();
  }
}

TEST(Kubelet, RemovesAPodThatEndedWhileItsNodeWasLost) {
  std::vector<std::int64_t> codes;
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  note_ends(&cluster, &codes);
  cluster.fleet.faults().mps_unclean_exit = true;
  cluster.delete_pods(kNode, kMpsSet);
  cluster.pass(500ms);  // The daemon is killed after a second.
  cluster.fleet.node(kNode)->lose();
  cluster.pass(30s);
  EXPECT_TRUE(codes.empty());
  cluster.fleet.node(kNode)->recover();
  EXPECT_TRUE(cluster.eventually([&] { return codes.size() == 1 && daemon_runs(cluster); }));
  EXPECT_EQ(codes, std::vector<std::int64_t>{137});
}

TEST(Kubelet, SaysThatItsNodeIsReadyWhenItIsBack) {
  FleetOptions options = one_node();
  options.act_as_controllers = false;
  TestCluster cluster(std::move(options));
  const auto ready = [&] {
    const json node = cluster.server.get(kNodes, {"", kNode}).value_or(json::object());
    for (const json& condition : node.value("status", json::object()).value("conditions", json::array()))
      if (condition.value("type", "") == "Ready") return condition.value("status", "");
    return std::string();
  };
  ASSERT_TRUE(cluster.eventually([&] { return ready() == "True"; }));
  cluster.pass(1min);
  cluster.fleet.node(kNode)->lose();
  // What the node lifecycle controller makes of its silence.
  json silent;
  silent["status"]["conditions"] = {{{"type", "Ready"}, {"status", "Unknown"}}};
  const std::string path = k8s::object_path(kNodes, {"", kNode}) + "/status";
  const k8s::HttpResponse answer = cluster.server.handle(
      local_request(k8s::Method::patch, path, silent.dump(), "application/merge-patch+json"), {.user = "controller"});
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(ready(), "Unknown");
  cluster.fleet.node(kNode)->recover();
  EXPECT_TRUE(cluster.eventually([&] { return ready() == "True"; }));
}

TEST(Kubelet, IsLostBeforeItStopsAnMpsDaemonWhereThatFaultIsSet) {
  OneNode cluster("v0.20.0", {{"any", mps(4)}}, "any", 8);
  std::vector<std::int64_t> codes;
  note_ends(&cluster, &codes);
  cluster.fleet.faults().lost_before_mps_stops = true;
  cluster.delete_pods(kNode, kPluginSet);
  cluster.pass(30s);
  EXPECT_FALSE(cluster.fleet.node(kNode)->lost());
  cluster.delete_pods(kNode, kMpsSet);
  cluster.pass(30s);
  EXPECT_TRUE(cluster.fleet.node(kNode)->lost());
  EXPECT_TRUE(codes.empty());
  cluster.fleet.node(kNode)->recover();
  EXPECT_TRUE(cluster.eventually([&] { return codes.size() == 1 && daemon_runs(cluster); }));
  EXPECT_FALSE(cluster.fleet.node(kNode)->lost());
}

}  // namespace
}  // namespace gso::sim::fleet_kubelet_test
