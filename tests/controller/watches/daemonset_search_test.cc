// The search for device plugins, on the simulated API server: what it finds, when it looks again, and what it costs.
#include "controller/watches/daemonset_search.h"

#include <fmt/format.h>

#include "controller/runtime/task_group.h"
#include "tests/controller/our_cluster.h"

namespace gso::daemonset_search_test {
namespace {

using namespace std::chrono_literals;

// A ClusterPolicy that the store has; `uid` as the DaemonSets name it.
ClusterPolicy cluster_policy() {
  ClusterPolicy out;
  out.meta.name = "cluster-policy";
  out.meta.uid = "the-policy";
  return out;
}

class DaemonSetSearchTest : public SimulatedServer {
 protected:
  DaemonSetSearchTest() : SimulatedServer(24h) {}
  ~DaemonSetSearchTest() override {
    search.stop();
    EXPECT_TRUE(sim.clock.run_until([&] { return tasks.size() == 0; }, 1min));
  }
  void add_daemonset(const std::string& ns, const std::string& name, const std::string& container,
                     const std::string& owner = "", const std::string& text = "") {
    const std::string owners =
        owner.empty() ? ""
                      : fmt::format(R"(,"ownerReferences":[{{"apiVersion":"nvidia.com/v1","kind":"ClusterPolicy",
                 "name":"cluster-policy","uid":"{}","controller":true}}])",
                                    owner);
    post(fmt::format("/apis/apps/v1/namespaces/{}/daemonsets", ns),
         fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"{1}"{2}}},
           "spec":{{"selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}},
           "spec":{{"containers":[{{"name":"{3}","image":"i","env":[{{"name":"X","value":"{4}"}}]}}]}}}}}}}})",
                     name, ns, owners, container, text));
  }
  // As the pass loop does: a decision is asked for again and again.
  bool decides(k8s::Duration within = 5s) {
    return sim.clock.run_until([&] { return search.decide(); }, within);
  }

  World world;
  PlannerSettings settings;
  TaskGroup tasks{&sim.clock};
  int ended = 0;
  int failures = 0;
  DaemonSetSearch search{{.client = &client,
                          .clock = &sim.clock,
                          .world = &world,
                          .settings = &settings,
                          .changed = [this] { ++ended; },
                          .failed = [this](const k8s::Error&) { ++failures; }}};
};

TEST_F(DaemonSetSearchTest, FindsWhoseDaemonSetsToBelieveAndWhatIsForeign) {
  for (const char* ns : {"gpu", "a-team"}) add_namespace(ns);
  add_daemonset("gpu", "plugin", "nvidia-device-plugin", "the-policy");
  add_daemonset("a-team", "evil", "nvidia-device-plugin", "another");
  add_daemonset("a-team", "web", "web");
  tasks.spawn(sim.io.get_executor(), search.run());
  EXPECT_FALSE(decides(1min)) << "the ClusterPolicies are not known";
  world.clusterpolicies.apply(cluster_policy());
  world.clusterpolicies.mark_synced();
  ASSERT_TRUE(decides());
  EXPECT_EQ(world.operand_namespaces, (std::set<std::string>{"gpu", "gpu-sharing-operator"}));
  EXPECT_FALSE(world.operand_namespaces_chosen);
  ASSERT_EQ(world.foreign_daemonsets.size(), 1U);
  EXPECT_NE(world.foreign_daemonsets.find(k8s::ObjectKey{"a-team", "evil"}), nullptr);
}

TEST_F(DaemonSetSearchTest, LooksOnceAnHourAndSoonerWhileSomethingIsMissing) {
  add_namespace("gpu");
  world.clusterpolicies.mark_synced();
  tasks.spawn(sim.io.get_executor(), search.run());
  ASSERT_TRUE(decides());
  sim.clock.run_for(5min);
  EXPECT_GE(ended, 5) << "nothing governs a node";
  world.clusterpolicies.apply(cluster_policy());
  add_daemonset("gpu", "plugin", "nvidia-device-plugin", "the-policy");
  ASSERT_TRUE(decides());
  sim.clock.run_for(1min);
  ASSERT_TRUE(search.decide());
  EXPECT_TRUE(world.operand_namespaces.contains("gpu"));
  const int before = ended;
  sim.clock.run_for(50min);
  EXPECT_EQ(ended, before);
  sim.clock.run_for(20min);
  EXPECT_EQ(ended, before + 1);
  world.clusterpolicies.erase(k8s::ObjectKey{"", "cluster-policy"});
  sim.clock.run_for(5s);
  EXPECT_EQ(ended, before + 2) << "the ClusterPolicy has gone";
}

TEST_F(DaemonSetSearchTest, TriesAgainAfterAFailureAndSaysSo) {
  transport.faults().add(always(sim::Fault::forbidden, "daemonsets"));
  world.clusterpolicies.mark_synced();
  tasks.spawn(sim.io.get_executor(), search.run());
  EXPECT_FALSE(decides(20s));
  EXPECT_GE(failures, 1);
  ASSERT_TRUE(search.error().has_value());
  EXPECT_EQ(search.error()->reason, k8s::Reason::forbidden);
  EXPECT_FALSE(search.ended());
  transport.faults().clear();
  EXPECT_TRUE(decides(2min));
  EXPECT_FALSE(search.error().has_value());
}

TEST_F(DaemonSetSearchTest, WaitsForTheRecord) {
  world.clusterpolicies.mark_synced();
  world.unsynced_namespaces.insert(settings.operator_namespace);
  tasks.spawn(sim.io.get_executor(), search.run());
  EXPECT_FALSE(decides(5min));
  world.refused_namespaces.insert(settings.operator_namespace);
  EXPECT_TRUE(decides()) << "no retry reads it";
  world.refused_namespaces.clear();
  world.unsynced_namespaces.clear();
  EXPECT_TRUE(decides());
}

TEST_F(DaemonSetSearchTest, KeepsNothingOfLargeDaemonSets) {
  add_namespace("a-team");
  const std::string text(600'000, 'x');
  constexpr int kMany = 4;
  for (int i = 0; i < kMany; ++i) add_daemonset("a-team", fmt::format("d{}", i), "nvidia-device-plugin", "", text);
  settings.operand_namespaces = {"gpu"};
  world.clusterpolicies.mark_synced();
  tasks.spawn(sim.io.get_executor(), search.run());
  ASSERT_TRUE(decides(1min));
  EXPECT_EQ(world.foreign_daemonsets.size(), static_cast<std::size_t>(kMany));
  for (const auto& [key, daemonset] : world.foreign_daemonsets.all()) {
    ASSERT_EQ(daemonset->containers.size(), 1U);
    EXPECT_TRUE(daemonset->containers.front().env.empty());
  }
}

}  // namespace
}  // namespace gso::daemonset_search_test
