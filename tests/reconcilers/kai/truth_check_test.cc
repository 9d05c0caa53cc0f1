// The truth check (reservations against what consumers use), exclusivity, and the index that both rest on.
#include <gtest/gtest.h>

#include <functional>

#include "reconcilers/kai/index.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test::truth_check_test {
namespace {

using namespace std::chrono_literals;

class TruthCheck : public ReservationGc {
 protected:
  void refresh(KaiIndex& index) {
    cluster.apply();
    index.refresh(cluster.world, cluster.settings);
  }
};

TEST_F(TruthCheck, NamesReservationsThatKaiCountsAsFree) {
  EXPECT_FALSE(reasons(cluster.run(120s), "n1").contains(std::string(kKaiMismatch)));  // A bind may take that long.
  const Plan plan = cluster.run(60s);
  EXPECT_TRUE(reasons(plan, "n1").contains(std::string(kKaiMismatch)));
  EXPECT_TRUE(told_by_event(plan).contains(std::string(kKaiMismatch)));
  EXPECT_NE(message(plan, "n1", kKaiMismatch).find("kai-resource-reservation/r"), std::string::npos);
}

TEST_F(TruthCheck, CountsNoGpuForAReservationThatHasEnded) {
  r(cluster).phase = Interned("Failed");
  cluster.reservation("s", "h").meta.deletion_timestamp = cluster.now;
  EXPECT_EQ(reasons(cluster.run(180s), "n1"), Names{});
}

// The binder goes by the namespace: it holds their GPU, although the scheduler does not know it any more.
TEST_F(TruthCheck, TakesAReservationUnderAFormerAppLabelForNoConsumer) {
  cluster.consumer("p", "g");
  cluster.config().reservation_app_label = "new";
  const Plan plan = cluster.run(180s);
  EXPECT_EQ(message(plan, "n1", kKaiMismatch), "");
  EXPECT_EQ(reasons(plan, "r"), Names{"KAILeftover"});
  EXPECT_NE(message(plan, "r", "KAILeftover").find("without the label app=new"), std::string::npos);
  cluster.pods.erase({"kai-resource-reservation", "r"});
  EXPECT_NE(message(cluster.run(180s), "n1", kKaiMismatch).find("team/p"), std::string::npos);
}

TEST_F(TruthCheck, SaysNothingOfANodeWithoutAName) {
  r(cluster).node_name = Interned();
  const Plan plan = cluster.run(300s);
  EXPECT_EQ(reasons(plan, ""), Names{});
  std::set<std::string> about;
  for (const PlannedAction& planned : cluster.credited().actions) {
    if (const auto* event = std::get_if<RecordEvent>(&planned.action)) about.insert(event->regarding.name);
    if (std::holds_alternative<DeletePod>(planned.action)) {
      EXPECT_NE(planned.why.message.find("it is on no node"), std::string::npos) << planned.why.message;
    }
  }
  EXPECT_EQ(about, Names{"r"});
}

TEST_F(TruthCheck, NamesExtraReservations) {
  cluster.reservation("s", "g", "n1", "GPU-b");
  cluster.consumer("p", "g");
  EXPECT_NE(message(cluster.run(180s), "n1", kKaiMismatch).find("more than one reservation"), std::string::npos);
}

TEST_F(TruthCheck, IsSatisfiedByMultiDeviceConsumersAndByBindsInProgress) {
  cluster.multi_consumer("p", {"g"});
  cluster.reservation("s", "h", "n2", "GPU-b");
  cluster.request("q", "h", "Pending");
  const Plan plan = cluster.run(300s);
  EXPECT_EQ(reasons(plan, "n1"), Names{});
  EXPECT_EQ(reasons(plan, "n2"), Names{});
}

// The watches select by the plain label, which such a pod does not have: only its BindRequest names it.
TEST(MultiDeviceConsumers, AreNamedWhereTheyHaveNoReservation) {
  // Whether the pod is named, and whether it counts as one that uses GPUs of its node.
  const auto expect = [](const char* rule, bool told, bool uses, const Change& change) {
    for (const bool replicas : {false, true}) {
      KaiCluster cluster;
      if (replicas) cluster.nodes.at("n1").meta.labels.set("nvidia.com/gpu.replicas", "4");
      cluster.multi_consumer("p", {"g", "h"});
      cluster.request("p", "g", "Succeeded").groups = {Interned("g"), Interned("h")};
      change(cluster);
      const Plan plan = cluster.run(180s);
      const std::string text = message(plan, "n1", kKaiMismatch);
      EXPECT_EQ(text.find("team/p") != std::string::npos, told) << rule << ": " << text;
      const std::string shared = message(plan, "n1", kKaiOnSharedNode);
      EXPECT_EQ(!shared.empty(), replicas && uses) << rule << ": " << shared;
    }
  };
  expect("neither group has one", true, true, [](auto&) {});
  expect("one has", true, true, [](auto& c) { c.reservation("r", "h"); });
  expect("one has it on another node", true, true, [](auto& c) {
    c.reservation("r", "h");
    c.reservation("s", "g", "n2");
  });
  expect("both have", false, true, [](auto& c) {
    c.reservation("r", "h");
    c.reservation("s", "g", "n1", "GPU-b");
  });
  expect("it has ended", false, false, [](auto& c) { c.pods.at({"team", "p"}).phase = Interned("Succeeded"); });
  expect("it is gone", false, false, [](auto& c) { c.pods.erase({"team", "p"}); });
  expect("it is being bound", false, true, [](auto& c) { c.requests.at({"team", "p"}).phase = Interned("Pending"); });
  expect("its label was lost", true, true, [](auto& c) { c.pods.at({"team", "p"}).meta.labels = StringMap(); });
}

TEST_F(TruthCheck, LooksUpNoMoreThanSoManyPodsInASweep) {
  for (int i = 0; i < 200; ++i) {
    const std::string name = "p" + std::to_string(i);
    cluster.request(name, "g-" + name, "Succeeded");
  }
  EXPECT_EQ(cluster.pass().kai_wanted.pods.size(), 0u);  // Asked for and answered before.
  EXPECT_EQ(cluster.world.kai.lookups.pods.size(), 64u);
  cluster.run(59s, 1s);
  EXPECT_EQ(cluster.world.kai.lookups.pods.size(), 64u);
}

TEST_F(TruthCheck, LooksUpNothingWhereTheReservationsAreThere) {
  cluster.multi_consumer("p", {"g"});
  cluster.request("p", "g", "Succeeded");
  KaiIndex index;
  index.attach(cluster.world);
  refresh(index);
  EXPECT_TRUE(index.unreserved().empty());
  cluster.pods.erase({"kai-resource-reservation", "r"});
  refresh(index);
  EXPECT_EQ(index.unreserved().size(), 1u);
  cluster.requests.clear();
  refresh(index);
  EXPECT_TRUE(index.unreserved().empty());
}

TEST_F(TruthCheck, SaysNothingBeforeMultiDeviceConsumersHaveBeenListed) {
  cluster.lookups_answered = false;
  EXPECT_EQ(reasons(cluster.run(300s), "n1"), Names{});
}

TEST(ClaimedGpus, AreNamedWithTheGroupsThatClaimThem) {
  const auto expect = [](const char* rule, bool told, const std::function<void(KaiCluster&, KaiPod&)>& change) {
    KaiCluster cluster;
    cluster.reservation("r", "g");
    cluster.consumer("p", "g");
    KaiPod& other = cluster.reservation("s", "h");
    cluster.consumer("q", "h");
    EXPECT_TRUE(reasons(cluster.pass(), "n1").contains(std::string(kKaiClaimedTwice)));
    change(cluster, other);
    const Plan plan = cluster.pass();
    EXPECT_EQ(told_by_event(plan).contains(std::string(kKaiClaimedTwice)), told) << rule;
    const std::string text = message(plan, "n1", kKaiClaimedTwice);
    EXPECT_EQ(text.empty(), !told) << rule;
    const bool both = text.contains("kai-resource-reservation/r (group g), kai-resource-reservation/s (group h)");
    EXPECT_EQ(both, told) << rule << ": " << text;
  };
  expect("two groups", true, [](auto&, auto&) {});
  expect("one group", false, [](auto&, auto& s) { s.meta.labels.set(kai::kGroupLabel, "g"); });
  expect("another GPU", false, [](auto&, auto& s) { s.meta.annotations.set(kai::kDeviceAnnotation, "GPU-b"); });
  expect("another node", false, [](auto&, auto& s) { s.node_name = Interned("n2"); });
  expect("one has ended", false, [](auto&, auto& s) { s.phase = Interned("Failed"); });
  expect("one is gone", false, [](auto& c, auto& s) { c.pods.erase(s.meta.key()); });
}

TEST(Exclusivity, ReportsWhereKaiSharesGpusThatThePluginServesAsReplicas) {
  struct {
    const char* key;
    const char* value;
    bool told;
  } rows[] = {{"nvidia.com/gpu.replicas", "4", true},
              {"nvidia.com/gpu.replicas", "1", false},
              {"nvidia.com/gpu.sharing-strategy", "mps", true},
              {"nvidia.com/gpu.sharing-strategy", "none", false}};
  for (const auto& row : rows) {
    KaiCluster cluster;
    cluster.nodes.at("n1").meta.labels.set(row.key, row.value);
    cluster.reservation("r", "g");
    cluster.consumer("p", "g");
    EXPECT_EQ(reasons(cluster.pass(), "n1").contains(std::string(kKaiOnSharedNode)), row.told)
        << row.key << "=" << row.value;
    cluster.pods.clear();
    EXPECT_EQ(reasons(cluster.pass(), "n1"), Names{}) << row.key << "=" << row.value;
  }
}

TEST_F(TruthCheck, CountsWhatIsOnANode) {
  cluster.consumer("p", "g");
  cluster.consumer("done", "g").phase = Interned("Succeeded");
  cluster.request("p", "g", "Succeeded");
  cluster.request("q", "h", "Pending");
  KaiIndex index;
  index.attach(cluster.world);
  refresh(index);
  EXPECT_EQ(index.use_of("n1"), "1 reservation, 1 fraction pod, 1 unfinished BindRequest");
  EXPECT_EQ(index.use_of("n2"), "");
  EXPECT_EQ(index.take_changed_nodes(), std::vector<std::string>{"n1"});
  cluster.pods.clear();
  cluster.requests.clear();
  refresh(index);
  EXPECT_EQ(index.use_of("n1"), "");
  EXPECT_TRUE(index.groups().empty());
  EXPECT_TRUE(index.attention().empty());
}

}  // namespace
}  // namespace gso::test::truth_check_test
