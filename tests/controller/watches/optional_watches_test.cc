// What KAI's presence, and a node that is labelled for partitioning, make us watch, on the simulated API server.
#include <fmt/format.h>

#include "controller/watches/cluster_watches.h"
#include "controller/watches/kai_watches.h"
#include "controller/watches/partitioning_watches.h"
#include "tests/controller/our_cluster.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::optional_watches_test {
namespace {

using namespace std::chrono_literals;

// The watches of the cluster, and those of a kind that its objects ask for.
template <class Watches>
class OptionalWatches : public SimulatedServer {
 protected:
  ~OptionalWatches() override {
    watches.stop();
    cluster.stop();
    tasks.cancel();
    EXPECT_TRUE(sim.clock.run_until([&] { return tasks.size() == 0; }, 1min));
  }
  void start() {
    cluster.start(&tasks, sim.io.get_executor());
    sim.clock.run_for(5s);
  }

  World world;
  TaskGroup tasks{&sim.clock};
  ClusterWatches cluster{
      &client,
      &sim.clock,
      &world,
      {},
      {.complete = [](const std::string&, std::size_t) {}, .failed = [](const std::string&, const k8s::Error&) {}}};
  Watches watches{{&client, &world, {}, &tasks, sim.io.get_executor()},
                  {.complete = [] {}, .failed = [](const std::string&, const k8s::Error&) {}}};
};

class KaiWatchesTest : public OptionalWatches<KaiWatches> {
 protected:
  KaiWatchesTest() {
    const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(crds, sim::kai_config_crd());
    post(crds, sim::kai_bind_request_crd());
    for (const char* ns : {"kai-scheduler", sim::kReservations}) add_namespace(ns);
    sim.clock.run_for(1s);
    post("/apis/kai.scheduler/v1/configs", sim::kai_config().dump());
    start();
  }
  void update(Duration then = 5s) {
    watches.update(cluster, KaiSettings{});
    sim.clock.run_for(then);
    watches.update(cluster, KaiSettings{});
  }
  bool has_class(const std::string& name) const { return world.kai.runtime_classes.find(name) != nullptr; }
};

constexpr const char* kClasses = "/apis/node.k8s.io/v1/runtimeclasses";

// The store's keys are what its scopes count by: they must not move when the first view is complete.
TEST_F(KaiWatchesTest, ARuntimeClassOfTheFirstViewLeavesTheStoreWhenItIsDeleted) {
  for (const char* name : {"nvidia", "gvisor"})
    post(kClasses, fmt::format(R"({{"handler":"nvidia","metadata":{{"name":"{}"}}}})", name));
  EXPECT_FALSE(world.kai.runtime_classes.synced());
  watches.update(cluster, KaiSettings{});
  EXPECT_NE(world.kai.incomplete, "") << "not every watch has its view";
  update();
  EXPECT_EQ(world.kai.incomplete, "");
  EXPECT_TRUE(world.kai.use_known);
  EXPECT_TRUE(world.kai.runtime_classes.synced());
  ASSERT_TRUE(has_class("nvidia"));
  remove(std::string(kClasses) + "/nvidia");
  sim.clock.run_for(5s);
  EXPECT_FALSE(has_class("nvidia"));
  EXPECT_TRUE(has_class("gvisor"));
}

// A tenant's pods on a node, of the most that is kept of one: what they push out is named, and KAI's objects are not
// known until there is room for all of them.
TEST_F(KaiWatchesTest, PodsThatFillTheStoreMakeTheViewIncompleteUntilTheyGo) {
  constexpr int kMany = 200;
  std::string labels = R"("runai-gpu-group":"g")";
  for (int i = 0; i < 120; ++i)
    labels += fmt::format(R"(,"runai-gpu-group/{0}-{1:03}":"{0}-{1:03}")", std::string(50, 'x'), i);
  const std::string path = "/api/v1/namespaces/team/pods";
  add_namespace("team");
  for (int i = 0; i < kMany; ++i) {
    post(path, fmt::format(R"({{"metadata":{{"name":"p{:03}","labels":{{{}}}}},)"
                           R"("spec":{{"nodeName":"n1","containers":[{{"name":"c","image":"i"}}]}}}})",
                           i, labels));
  }
  update();
  EXPECT_LT(world.kai.pods.size(), 150U);
  EXPECT_GT(world.kai.pods.size(), 50U);
  EXPECT_NE(world.kai.incomplete.find("are left out, team/p"), std::string::npos) << world.kai.incomplete;
  EXPECT_NE(world.kai.incomplete.find("more than 4 MiB"), std::string::npos) << world.kai.incomplete;
  EXPECT_FALSE(world.kai.use_known);
  for (int i = 0; i < kMany - 20; ++i) remove(fmt::format("{}/p{:03}?gracePeriodSeconds=0", path, i));
  sim.clock.run_for(1min);
  update();
  EXPECT_EQ(world.kai.incomplete, "");
  EXPECT_TRUE(world.kai.use_known);
  EXPECT_EQ(world.kai.pods.size(), 20U);
}

// Ten minutes of server errors: a reservation that came in between is in no store, and no node may be taken for one
// without KAI (S8).
TEST_F(KaiWatchesTest, WhereKaiIsIsNotKnownWhileAWatchFails) {
  for (const char* resource : {"pods", "bindrequests", "configs"}) {
    update();
    ASSERT_TRUE(world.kai.use_known) << resource;
    transport.faults().add(always(sim::Fault::server_error, resource));
    transport.reset_streams();
    sim.clock.run_for(10min);
    watches.update(cluster, KaiSettings{});
    EXPECT_NE(world.kai.incomplete, "") << resource;
    EXPECT_FALSE(world.kai.use_known) << resource;
    transport.faults().clear();
    sim.clock.run_for(10min);
  }
  update();
  EXPECT_TRUE(world.kai.use_known);
}

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kLabel = "nos.nebuly.com/gpu-partitioning";

class PartitioningWatchesTest : public OptionalWatches<PartitioningWatches> {
 protected:
  PartitioningWatchesTest() {
    for (const char* node : {"gpu-01", "gpu-02", "cpu-01"})
      post(kNodes, fmt::format(R"({{"metadata":{{"name":"{}"}}}})", node));
    start();
  }
  void label(const std::string& node, const char* key = kLabel, const char* value = "\"mps\"") {
    merge(std::string(kNodes) + "/" + node, fmt::format(R"({{"metadata":{{"labels":{{"{}":{}}}}}}})", key, value));
    sim.clock.run_for(1s);
  }
  // `node` empty: without one. `resource` empty: it asks for no device.
  void pod(const std::string& name, const std::string& node, const std::string& resource) {
    const std::string limits =
        resource.empty() ? "" : fmt::format(R"(,"resources":{{"limits":{{"{}":"1"}}}})", resource);
    post(kPods, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}"containers":[
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
};

using Names = std::set<std::string>;

TEST_F(PartitioningWatchesTest, NothingIsWatchedWhileNoNodeIsLabelledOrPartitioningIsOff) {
  update();
  EXPECT_EQ(watches.open(), 0U);
  label("gpu-01");
  update(PartitioningMode::off);
  EXPECT_EQ(watches.open(), 0U);
  update(PartitioningMode::observe);
  EXPECT_EQ(watches.open(), 3U) << "pending pods, the Lease, and the pods of gpu-01";
}

TEST_F(PartitioningWatchesTest, APodThatAsksForGpusIsKeptWhileItWaitsAndEachPodOfLabelledNodes) {
  label("gpu-01");
  label("gpu-02", "nos.nebuly.ai/gpu-partitioning");
  pod("waits", "", "nvidia.com/gpu-10gb");
  pod("waits-for-cpu", "", "");
  pod("on-01", "gpu-01", "nvidia.com/gpu-10gb");
  pod("on-02", "gpu-02", "nvidia.com/gpu");
  pod("on-01-without", "gpu-01", "");
  pod("elsewhere", "cpu-01", "nvidia.com/gpu-10gb");
  update();
  EXPECT_EQ(pods(), (Names{"waits", "on-01", "on-01-without", "on-02"}));
  EXPECT_EQ(world.partitioning.nodes_known, (Names{"gpu-01", "gpu-02"}));
  remove(std::string(kPods) + "/waits?gracePeriodSeconds=0");
  sim.clock.run_for(5s);
  EXPECT_EQ(pods(), (Names{"on-01", "on-01-without", "on-02"}));
}

TEST_F(PartitioningWatchesTest, APodThatIsBoundStaysKnownOnItsNode) {
  label("gpu-01");
  pod("client", "", "nvidia.com/gpu-10gb");
  update();
  const std::string binding = R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"client"},
                                  "target":{"kind":"Node","name":"gpu-01"}})";
  post(std::string(kPods) + "/client/binding", binding);
  sim.clock.run_for(5s);
  const SlicePod* pod = world.partitioning.pods.find(ObjectKey{"default", "client"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->node_name, "gpu-01");
}

TEST_F(PartitioningWatchesTest, PodsAndTheLeaseAreKnownOnlyOnceTheirViewsAreCompleteAndWhileTheirWatchesWork) {
  const PartitioningWorld& objects = world.partitioning;
  label("gpu-01");
  watches.update(PartitioningMode::enforce);
  EXPECT_FALSE(objects.pending_known);
  EXPECT_FALSE(objects.leases_known);
  EXPECT_TRUE(objects.nodes_known.empty());
  sim.clock.run_for(5s);
  watches.update(PartitioningMode::enforce);
  EXPECT_TRUE(objects.pending_known);
  EXPECT_TRUE(objects.leases_known);
  EXPECT_EQ(objects.nodes_known, Names{"gpu-01"});
  transport.faults().add(always(sim::Fault::server_error, "pods"));
  transport.reset_streams();
  sim.clock.run_for(10min);
  watches.update(PartitioningMode::enforce);
  EXPECT_FALSE(objects.pending_known);
  EXPECT_TRUE(objects.nodes_known.empty());
  transport.faults().clear();
  sim.clock.run_for(10min);
  update();
  EXPECT_TRUE(objects.pending_known);
  EXPECT_EQ(objects.nodes_known, Names{"gpu-01"});
}

TEST_F(PartitioningWatchesTest, ARefusalIsNamed) {
  transport.faults().add(always(sim::Fault::forbidden, "leases"));
  label("gpu-01");
  update();
  EXPECT_NE(world.partitioning.incomplete.find("leases (gpu-partitioner.nebuly.com) cannot be watched"),
            std::string::npos)
      << world.partitioning.incomplete;
  EXPECT_EQ(watches.refused().size(), 1U);
}

TEST_F(PartitioningWatchesTest, ALabelThatGoesTakesItsPodsAlong) {
  label("gpu-01");
  label("gpu-02");
  pod("on-01", "gpu-01", "nvidia.com/gpu-10gb");
  pod("on-02", "gpu-02", "nvidia.com/gpu-10gb");
  update();
  ASSERT_EQ(pods(), (Names{"on-01", "on-02"}));
  label("gpu-01", kLabel, "null");
  update();
  EXPECT_EQ(pods(), Names{"on-02"});
  remove(std::string(kNodes) + "/gpu-02");
  sim.clock.run_for(1s);
  update();
  EXPECT_EQ(watches.open(), 0U);
  EXPECT_EQ(pods(), Names{});
}

TEST_F(PartitioningWatchesTest, OnlyTheLeaseOfNosIsRead) {
  label("gpu-01");
  for (const char* name : {"gpu-partitioner.nebuly.com", "other"}) {
    post("/apis/coordination.k8s.io/v1/namespaces/default/leases",
         fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"holderIdentity":"nos-0","leaseDurationSeconds":15}}}})",
                     name));
  }
  update();
  ASSERT_EQ(world.partitioning.leases.size(), 1U);
  EXPECT_EQ((*world.partitioning.leases.all().begin()).second->holder, "nos-0");
}

}  // namespace
}  // namespace gso::optional_watches_test
