// What KAI's presence makes us watch, on the simulated API server.
#include "controller/watches/kai_watches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "controller/watches/cluster_watches.h"
#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::kai_watches_test {
namespace {

using namespace std::chrono_literals;

class KaiWatchesTest : public testing::Test {
 protected:
  KaiWatchesTest() {
    const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(crds, sim::kai_config_crd());
    post(crds, sim::kai_bind_request_crd());
    for (const char* ns : {"kai-scheduler", sim::kReservations})
      post("/api/v1/namespaces", sim::kai_namespace(ns).dump());
    sim.clock.run_for(1s);
    post("/apis/kai.scheduler/v1/configs", sim::kai_config().dump());
    cluster.start(&tasks, sim.io.get_executor());
    sim.clock.run_for(5s);
  }
  ~KaiWatchesTest() override {
    watches.stop();
    cluster.stop();
    tasks.cancel();
    EXPECT_TRUE(sim.clock.run_until([&] { return tasks.size() == 0; }, 1min));
  }
  int send(k8s::Method method, const std::string& path, const std::string& body) {
    return server.handle(sim::local_request(method, path, body), {}).status;
  }
  void post(const std::string& path, const std::string& body) {
    ASSERT_EQ(send(k8s::Method::post, path, body), 201) << path;
  }
  void update(Duration then = 5s) {
    watches.update(cluster, KaiSettings{});
    sim.clock.run_for(then);
    watches.update(cluster, KaiSettings{});
  }
  bool has_class(const std::string& name) const { return world.kai.runtime_classes.find(name) != nullptr; }

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
  KaiWatches watches{{&client, &world, {}, &tasks, sim.io.get_executor()},
                     {.complete = [] {}, .failed = [](const std::string&, const k8s::Error&) {}}};
};

constexpr const char* kClasses = "/apis/node.k8s.io/v1/runtimeclasses";

std::string runtime_class(const std::string& name) {
  return R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","handler":"nvidia","metadata":{"name":")" + name +
         "\"}}";
}

// The store's keys are what its scopes count by: they must not move when the first view is complete.
TEST_F(KaiWatchesTest, ARuntimeClassOfTheFirstViewLeavesTheStoreWhenItIsDeleted) {
  post(kClasses, runtime_class("nvidia"));
  post(kClasses, runtime_class("gvisor"));
  EXPECT_FALSE(world.kai.runtime_classes.synced());
  update();
  EXPECT_TRUE(world.kai.runtime_classes.synced());
  ASSERT_TRUE(has_class("nvidia"));
  ASSERT_EQ(send(k8s::Method::del, std::string(kClasses) + "/nvidia", ""), 200);
  sim.clock.run_for(5s);
  EXPECT_FALSE(has_class("nvidia"));
  EXPECT_TRUE(has_class("gvisor"));
}

TEST_F(KaiWatchesTest, TheViewIsCompleteOnlyWhenEveryWatchIs) {
  watches.update(cluster, KaiSettings{});
  EXPECT_NE(world.kai.incomplete, "");
  sim.clock.run_for(5s);
  watches.update(cluster, KaiSettings{});
  EXPECT_EQ(world.kai.incomplete, "");
  EXPECT_TRUE(world.kai.use_known);
}

// A tenant's pods on a node, of the most that is kept of one: what they push out is named, and KAI's objects are not
// known until there is room for all of them.
TEST_F(KaiWatchesTest, PodsThatFillTheStoreMakeTheViewIncompleteUntilTheyGo) {
  constexpr int kPods = 200;
  std::string labels = R"("runai-gpu-group":"g")";
  for (int i = 0; i < 120; ++i)
    labels += fmt::format(R"(,"runai-gpu-group/{0}-{1:03}":"{0}-{1:03}")", std::string(50, 'x'), i);
  const std::string path = "/api/v1/namespaces/team/pods";
  post("/api/v1/namespaces", sim::kai_namespace("team").dump());
  for (int i = 0; i < kPods; ++i) {
    post(path, fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{:03}","labels":{{{}}}}},)"
                           R"("spec":{{"nodeName":"n1","containers":[{{"name":"c","image":"i"}}]}}}})",
                           i, labels));
  }
  update();
  EXPECT_LT(world.kai.pods.size(), 150U);
  EXPECT_GT(world.kai.pods.size(), 50U);
  EXPECT_NE(world.kai.incomplete.find("are left out, team/p"), std::string::npos) << world.kai.incomplete;
  EXPECT_NE(world.kai.incomplete.find("more than 4 MiB"), std::string::npos) << world.kai.incomplete;
  EXPECT_FALSE(world.kai.use_known);
  for (int i = 0; i < kPods - 20; ++i)
    ASSERT_EQ(send(k8s::Method::del, fmt::format("{}/p{:03}?gracePeriodSeconds=0", path, i), ""), 200);
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
    sim::FaultRule rule;
    rule.fault = sim::Fault::server_error;
    rule.resource = resource;
    transport.faults().add(rule);
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

}  // namespace
}  // namespace gso::kai_watches_test
