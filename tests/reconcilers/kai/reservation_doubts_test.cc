// pod.reservation-gc: what is not known keeps a reservation. Look-ups are answered by hand here.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/kai_objects.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::reservation_doubts_test {
namespace {

using namespace std::chrono_literals;

// The reservation "r" of group "g"; one pass has listed no multi-device consumer of the group.
class Doubts : public ::testing::Test {
 protected:
  Doubts() {
    cluster.reservation("r", "g");
    cluster.lookups_answered = false;
  }
  void listed(std::vector<KaiPod> pods = {}) { lookups().groups["g"] = {one_look(cluster.now), std::move(pods)}; }
  LookupResults& lookups() { return cluster.world.kai.lookups; }
  [[nodiscard]] MonoTime before(Duration age) const { return one_look(cluster.now) - age; }
  KaiCluster cluster;
};

TEST_F(Doubts, NothingKeepsAnOrphanThatWasListedNow) {
  listed();
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"});
}

TEST_F(Doubts, APodThatCameBackUnderItsNameCountsAsTheNewOne) {
  KaiPod again = cluster.consumer("p", "g");
  again.meta.uid = "uid-p-2";
  cluster.pods.at(again.meta.key()).phase = Interned("Succeeded");
  listed({again});
  EXPECT_EQ(deleted(cluster.credited()), Names{});
  listed({cluster.pods.at(again.meta.key())});
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"});
}

TEST_F(Doubts, ASucceededRequestKeepsItUntilItsPodWasLookedUp) {
  const BindRequest& request = cluster.request("p", "g", "Succeeded");
  const ObjectKey pod{"team", request.pod_name};
  listed();
  const Plan unknown = cluster.credited();
  EXPECT_EQ(deleted(unknown), Names{});
  EXPECT_TRUE(unknown.kai_wanted.pods.contains(pod));
  lookups().pods[pod] = LookupResults::Pod{one_look(cluster.now), false};
  EXPECT_EQ(deleted(cluster.credited()), Names{"r"});
}

TEST_F(Doubts, AnOldAnswerAboutAPodIsAskedAgainAndProvesNothing) {
  const BindRequest& request = cluster.request("p", "g", "Succeeded");
  const ObjectKey pod{"team", request.pod_name};
  listed();
  lookups().pods[pod] = LookupResults::Pod{before(cluster.settings.kai.sweep), false};
  const Plan due = cluster.credited();
  EXPECT_EQ(deleted(due), Names{"r"});
  EXPECT_TRUE(due.kai_wanted.pods.contains(pod));
  lookups().pods[pod].at = before(4 * cluster.settings.kai.sweep);
  EXPECT_EQ(deleted(cluster.credited()), Names{});
}

// Such a list reads every pod of the cluster.
TEST_F(Doubts, AGroupThatABindRequestKeepsIsNotListed) {
  cluster.request("p", "g", "Succeeded");
  const Plan first = cluster.credited();
  EXPECT_TRUE(first.kai_wanted.groups.empty());
  EXPECT_TRUE(first.kai_wanted.pods.contains({"team", "p"}));
  lookups().pods[{"team", "p"}] = {before(cluster.settings.kai.sweep), true};
  const Plan due = cluster.credited();
  EXPECT_TRUE(due.kai_wanted.groups.empty());
  EXPECT_TRUE(due.kai_wanted.pods.contains({"team", "p"})) << "whether it has ended meanwhile";
  EXPECT_EQ(deleted(due), Names{});
}

TEST_F(Doubts, AGroupThatABindRequestKeepsIsListedWhereItsConsumersMayBeInDanger) {
  const std::vector<std::function<void(KaiPod&)>> rows{
      [](KaiPod& pod) { pod.phase = Interned("Failed"); },
      [](KaiPod& pod) { pod.meta.deletion_timestamp = pod.meta.creation_timestamp; },
      [](KaiPod& pod) { pod.meta.annotations.erase(kai::kDeviceAnnotation); },
      [](KaiPod& pod) { pod.node_name = Interned("n2"); },
  };
  cluster.request("p", "g", "Succeeded");
  const KaiPod sound = r(cluster);
  for (const auto& change : rows) {
    r(cluster) = sound;
    change(r(cluster));
    EXPECT_TRUE(cluster.credited().kai_wanted.groups.contains("g"));
  }
}

TEST_F(Doubts, AnAnswerThatNobodyLivesIsNotLeftStanding) {
  cluster.request("p", "g", "Succeeded");
  lookups().pods[{"team", "p"}] = {one_look(cluster.now), true};
  lookups().groups["g"] = {before(cluster.settings.kai.sweep), {}};
  EXPECT_TRUE(cluster.credited().kai_wanted.groups.contains("g"));
}

TEST_F(Doubts, AnAnswerThatAloneKeepsItIsAskedForAgain) {
  listed({cluster.multi_consumer("p", {"g"})});
  EXPECT_FALSE(cluster.credited().kai_wanted.groups.contains("g"));
  lookups().groups["g"].at = before(cluster.settings.kai.sweep);
  EXPECT_TRUE(cluster.credited().kai_wanted.groups.contains("g"));
}

TEST(KaiHold, LastsUntilEveryStoreHasSynced) {
  enum Which { nodes, pods, requests, configs, none };
  for (const Which missing : {nodes, pods, requests, configs, none}) {
    World world;
    if (missing != nodes) world.nodes.init_done();
    if (missing != pods) world.kai.pods.init_done();
    if (missing != requests) world.kai.bind_requests.init_done();
    if (missing != configs) world.kai.configs.init_done();
    EXPECT_EQ(kai_hold(world).empty(), missing == none) << missing;
  }
}

TEST(KaiSchemas, AreRecognisedByTheFieldsThatTheCollectionRestsOn) {
  const std::set<std::string> config{"spec.binder.resourceReservation.namespace",
                                     "spec.binder.resourceReservation.appLabel"};
  const struct {
    const char* name;
    std::optional<std::set<std::string>> config;
    std::optional<std::set<std::string>> request;
    bool recognised;
  } rows[] = {
      {"both, with the older field", config, {{"spec.selectedGPUGroups"}}, true},
      {"both, with the newer field", config, {{"spec.selectedFractionalGpuGroups"}}, true},
      {"a config without appLabel",
       {{"spec.binder.resourceReservation.namespace"}},
       {{"spec.selectedGPUGroups"}},
       false},
      {"a config without namespace",
       {{"spec.binder.resourceReservation.appLabel"}},
       {{"spec.selectedGPUGroups"}},
       false},
      {"a request that names no group", config, std::set<std::string>{}, false},
      {"no schema of the config", std::nullopt, {{"spec.selectedGPUGroups"}}, false},
      {"no schema of the request", config, std::nullopt, false},
  };
  for (const auto& row : rows) {
    KaiWorld kai;
    kai.configs_served = kai.bind_requests_served = kai.schemas_known = true;
    const auto add = [&](std::string_view name, const auto& fields) {
      if (!fields) return;
      KaiSchema schema;
      schema.meta.name = name;
      schema.fields = *fields;
      kai.schemas.apply(schema);
    };
    add(kai::kConfigCrd, row.config);
    add(kai::kBindRequestCrd, row.request);
    EXPECT_EQ(view_kai(kai, {}).unrecognised.empty(), row.recognised) << row.name;
  }
}

TEST(ReservationGc, ReportsADeletionOnTheNodeOrOnThePodWhereThatIsGone) {
  for (const char* node : {"n1", "gone"}) {
    KaiCluster cluster;
    cluster.reservation("r", "g", node);
    std::set<std::string> about;
    for (const PlannedAction& planned : cluster.credited().actions) {
      const auto* event = std::get_if<RecordEvent>(&planned.action);
      if (event != nullptr && event->why.code == "NoConsumers") about.insert(event->regarding.kind);
    }
    EXPECT_EQ(about, Names{std::string_view(node) == "n1" ? "Node" : "Pod"}) << node;
  }
}

TEST(ReservationGc, GivesAReservationTimeToNameItsGpu) {
  for (const bool young : {false, true}) {
    KaiCluster cluster;
    KaiPod& pod = cluster.reservation("r", "g", "n1", "");
    if (young) pod.meta.creation_timestamp = cluster.now - 1min;
    cluster.consumer("p", "g");
    const Plan plan = cluster.credited();
    EXPECT_EQ(reasons(plan, "r").contains("KAIReservationUnannotated"), !young);
    EXPECT_EQ(deleted(plan), Names{});
  }
}

}  // namespace
}  // namespace gso::test::reservation_doubts_test
