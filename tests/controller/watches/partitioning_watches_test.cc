// What a node that is labelled for partitioning makes us watch, on the simulated API server.
#include "controller/watches/partitioning_watches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "controller/watches/cluster_watches.h"
#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso::partitioning_watches_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kLabel = "nos.nebuly.com/gpu-partitioning";

class PartitioningWatchesTest : public testing::Test {
 protected:
  PartitioningWatchesTest() {
    for (const char* node : {"gpu-01", "gpu-02", "cpu-01"})
      post(kNodes, fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}"}}}})", node));
    cluster.start(&tasks, sim.io.get_executor());
    sim.clock.run_for(5s);
  }
  ~PartitioningWatchesTest() override {
    watches.stop();
    cluster.stop();
    tasks.cancel();
    EXPECT_TRUE(sim.clock.run_until([&] { return tasks.size() == 0; }, 1min));
  }
  int send(k8s::Method method, const std::string& path, const std::string& body,
           const std::string& type = "application/json") {
    return server.handle(sim::local_request(method, path, body, type), {}).status;
  }
  void post(const std::string& path, const std::string& body) {
    ASSERT_EQ(send(k8s::Method::post, path, body), 201) << path;
  }
  void label(const std::string& node, const char* key, const char* value) {
    const std::string body = fmt::format(R"({{"metadata":{{"labels":{{"{}":{}}}}}}})", key, value);
    ASSERT_EQ(send(k8s::Method::patch, std::string(kNodes) + "/" + node, body, "application/merge-patch+json"), 200);
    sim.clock.run_for(1s);
  }
  // `node` empty: without one. `resource` empty: it asks for no device.
  void pod(const std::string& name, const std::string& node, const std::string& resource) {
    const std::string limits =
        resource.empty() ? "" : fmt::format(R"(,"resources":{{"limits":{{"{}":"1"}}}})", resource);
    post(kPods, fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"}},"spec":{{{}"containers":[
                               {{"name":"main","image":"app:1"{}}}]}}}})",
                            name, node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", node), limits));
  }
  void update(PartitioningMode mode = PartitioningMode::enforce) {
    watches.update(mode);
    sim.clock.run_for(5s);
    watches.update(mode);
  }
  [[nodiscard]] std::set<std::string> pods() const {
    std::set<std::string> out;
    for (const auto& [key, pod] : world.partitioning.pods.all()) out.insert(key.name);
    return out;
  }

  Sim sim;
  sim::ApiServer server{sim.io.get_executor(), sim.clock};
  sim::InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  World world;
  TaskGroup tasks{&sim.clock};
  ClusterWatches cluster{
      &client,
      &sim.clock,
      &world,
      {},
      {.complete = [](const std::string&, std::size_t) {}, .failed = [](const std::string&, const k8s::Error&) {}}};
  PartitioningWatches watches{{&client, &world, {}, &tasks, sim.io.get_executor()},
                              {.complete = [] {}, .failed = [](const std::string&, const k8s::Error&) {}}};
};

using Names = std::set<std::string>;

TEST_F(PartitioningWatchesTest, NothingIsWatchedWhileNoNodeIsLabelledOrPartitioningIsOff) {
  update();
  EXPECT_EQ(watches.open(), 0U);
  label("gpu-01", kLabel, "\"mps\"");
  update(PartitioningMode::off);
  EXPECT_EQ(watches.open(), 0U);
  update(PartitioningMode::observe);
  EXPECT_EQ(watches.open(), 3U) << "pending pods, the Lease, and the pods of gpu-01";
}

TEST_F(PartitioningWatchesTest, APodThatAsksForGpusIsKeptWhileItWaitsAndEachPodOfLabelledNodes) {
  label("gpu-01", kLabel, "\"mps\"");
  label("gpu-02", "nos.nebuly.ai/gpu-partitioning", "\"mps\"");
  pod("waits", "", "nvidia.com/gpu-10gb");
  pod("waits-for-cpu", "", "");
  pod("on-01", "gpu-01", "nvidia.com/gpu-10gb");
  pod("on-02", "gpu-02", "nvidia.com/gpu");
  pod("on-01-without", "gpu-01", "");
  pod("elsewhere", "cpu-01", "nvidia.com/gpu-10gb");
  update();
  EXPECT_EQ(pods(), (Names{"waits", "on-01", "on-01-without", "on-02"}));
  EXPECT_EQ(world.partitioning.nodes_known, (Names{"gpu-01", "gpu-02"}));
  ASSERT_EQ(send(k8s::Method::del, std::string(kPods) + "/waits", R"({"gracePeriodSeconds":0})"), 200);
  sim.clock.run_for(5s);
  EXPECT_EQ(pods(), (Names{"on-01", "on-01-without", "on-02"}));
}

TEST_F(PartitioningWatchesTest, APodThatIsBoundStaysKnownOnItsNode) {
  label("gpu-01", kLabel, "\"mps\"");
  pod("client", "", "nvidia.com/gpu-10gb");
  update();
  const std::string binding = R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"client"},
                                  "target":{"kind":"Node","name":"gpu-01"}})";
  ASSERT_EQ(send(k8s::Method::post, std::string(kPods) + "/client/binding", binding), 201);
  sim.clock.run_for(5s);
  const SlicePod* pod = world.partitioning.pods.find(ObjectKey{"default", "client"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->node_name, "gpu-01");
}

TEST_F(PartitioningWatchesTest, PodsAndTheLeaseAreKnownOnlyOnceTheirViewsAreComplete) {
  label("gpu-01", kLabel, "\"mps\"");
  watches.update(PartitioningMode::enforce);
  EXPECT_FALSE(world.partitioning.pending_known);
  EXPECT_FALSE(world.partitioning.leases_known);
  EXPECT_TRUE(world.partitioning.nodes_known.empty());
  sim.clock.run_for(5s);
  watches.update(PartitioningMode::enforce);
  EXPECT_TRUE(world.partitioning.pending_known);
  EXPECT_TRUE(world.partitioning.leases_known);
  EXPECT_EQ(world.partitioning.nodes_known, Names{"gpu-01"});
}

TEST_F(PartitioningWatchesTest, NothingIsKnownWhileAWatchFails) {
  label("gpu-01", kLabel, "\"mps\"");
  update();
  ASSERT_TRUE(world.partitioning.pending_known);
  sim::FaultRule rule;
  rule.fault = sim::Fault::server_error;
  rule.resource = "pods";
  transport.faults().add(rule);
  transport.reset_streams();
  sim.clock.run_for(10min);
  watches.update(PartitioningMode::enforce);
  EXPECT_FALSE(world.partitioning.pending_known);
  EXPECT_TRUE(world.partitioning.nodes_known.empty());
  transport.faults().clear();
  sim.clock.run_for(10min);
  update();
  EXPECT_TRUE(world.partitioning.pending_known);
  EXPECT_EQ(world.partitioning.nodes_known, Names{"gpu-01"});
}

TEST_F(PartitioningWatchesTest, ARefusalIsNamed) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "leases";
  transport.faults().add(rule);
  label("gpu-01", kLabel, "\"mps\"");
  update();
  EXPECT_NE(world.partitioning.incomplete.find("leases (gpu-partitioner.nebuly.com) cannot be watched"),
            std::string::npos)
      << world.partitioning.incomplete;
  EXPECT_EQ(watches.refused().size(), 1U);
}

TEST_F(PartitioningWatchesTest, ALabelThatGoesTakesItsPodsAlong) {
  label("gpu-01", kLabel, "\"mps\"");
  label("gpu-02", kLabel, "\"mps\"");
  pod("on-01", "gpu-01", "nvidia.com/gpu-10gb");
  pod("on-02", "gpu-02", "nvidia.com/gpu-10gb");
  update();
  ASSERT_EQ(pods(), (Names{"on-01", "on-02"}));
  label("gpu-01", kLabel, "null");
  update();
  EXPECT_EQ(pods(), Names{"on-02"});
  ASSERT_EQ(send(k8s::Method::del, std::string(kNodes) + "/gpu-02", ""), 200);
  sim.clock.run_for(1s);
  update();
  EXPECT_EQ(watches.open(), 0U);
  EXPECT_EQ(pods(), Names{});
}

TEST_F(PartitioningWatchesTest, OnlyTheLeaseOfNosIsRead) {
  label("gpu-01", kLabel, "\"mps\"");
  for (const char* name : {"gpu-partitioner.nebuly.com", "other"}) {
    post("/apis/coordination.k8s.io/v1/namespaces/default/leases",
         fmt::format(R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{}"}},
                          "spec":{{"holderIdentity":"nos-0","leaseDurationSeconds":15}}}})",
                     name));
  }
  update();
  ASSERT_EQ(world.partitioning.leases.size(), 1U);
  EXPECT_EQ((*world.partitioning.leases.all().begin()).second->holder, "nos-0");
}

}  // namespace
}  // namespace gso::partitioning_watches_test
