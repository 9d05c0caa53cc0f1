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
using Names = std::set<std::string>;

std::set<std::string> told_by_event(const Plan& plan) {
  std::set<std::string> out;
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* event = std::get_if<RecordEvent>(&planned.action)) out.insert(event->why.code);
  }
  return out;
}

TEST(TruthCheck, NamesReservationsThatKaiCountsAsFree) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  EXPECT_FALSE(reasons(cluster.run(120s), "n1").contains(std::string(kKaiMismatch)));  // A bind may take that long.
  const Plan plan = cluster.run(60s);
  EXPECT_TRUE(reasons(plan, "n1").contains(std::string(kKaiMismatch)));
  EXPECT_TRUE(told_by_event(plan).contains(std::string(kKaiMismatch)));
  EXPECT_NE(message(plan, "n1", kKaiMismatch).find("kai-resource-reservation/r"), std::string::npos);
}

TEST(TruthCheck, CountsNoGpuForAReservationThatHasEnded) {
  KaiCluster cluster;
  cluster.reservation("r", "g").phase = Interned("Failed");
  cluster.reservation("s", "h").meta.deletion_timestamp = cluster.now;
  EXPECT_EQ(reasons(cluster.run(180s), "n1"), Names{});
}

TEST(TruthCheck, NamesConsumersWithoutAReservation) {
  KaiCluster cluster;
  cluster.consumer("p", "g");
  const Plan plan = cluster.run(180s);
  EXPECT_NE(message(plan, "n1", kKaiMismatch).find("team/p"), std::string::npos);
}

// The binder goes by the namespace: it holds their GPU, although the scheduler does not know it any more.
TEST(TruthCheck, TakesAReservationUnderAFormerAppLabelForNoConsumer) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.consumer("p", "g");
  cluster.config().reservation_app_label = "new";
  const Plan plan = cluster.run(180s);
  EXPECT_EQ(message(plan, "n1", kKaiMismatch), "");
  EXPECT_EQ(reasons(plan, "r"), Names{"KAILeftover"});
  EXPECT_NE(message(plan, "r", "KAILeftover").find("without the label app=new"), std::string::npos);
  cluster.pods.erase({"kai-resource-reservation", "r"});
  EXPECT_NE(message(cluster.run(180s), "n1", kKaiMismatch).find("team/p"), std::string::npos);
}

TEST(TruthCheck, SaysNothingOfANodeWithoutAName) {
  KaiCluster cluster;
  cluster.reservation("r", "g", "");
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

TEST(TruthCheck, NamesExtraReservations) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.reservation("s", "g", "n1", "GPU-b");
  cluster.consumer("p", "g");
  EXPECT_NE(message(cluster.run(180s), "n1", kKaiMismatch).find("more than one reservation"), std::string::npos);
}

TEST(TruthCheck, IsSatisfiedByMultiDeviceConsumersAndByBindsInProgress) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.multi_consumer("p", {"g"});
  cluster.reservation("s", "h", "n2", "GPU-b");
  cluster.request("q", "h", "Pending");
  const Plan plan = cluster.run(300s);
  EXPECT_EQ(reasons(plan, "n1"), Names{});
  EXPECT_EQ(reasons(plan, "n2"), Names{});
}

// The watches select by the plain label, which such a pod does not have: only its BindRequest names it.
TEST(TruthCheck, NamesMultiDeviceConsumersWithoutAReservation) {
  using Change = void (*)(KaiCluster&);
  const struct {
    const char* name;
    Change change;
    const char* told;  // Part of the message; empty: nothing.
  } rows[] = {
      {"neither group has one", [](KaiCluster&) {}, "team/p"},
      {"one has", [](KaiCluster& c) { c.reservation("r", "h"); }, "team/p"},
      {"one has it on another node",
       [](KaiCluster& c) {
         c.reservation("r", "h");
         c.reservation("s", "g", "n2");
       },
       "team/p"},
      {"both have",
       [](KaiCluster& c) {
         c.reservation("r", "h");
         c.reservation("s", "g", "n1", "GPU-b");
       },
       ""},
      {"it has ended", [](KaiCluster& c) { c.pods.at({"team", "p"}).phase = Interned("Succeeded"); }, ""},
      {"it is gone", [](KaiCluster& c) { c.pods.erase({"team", "p"}); }, ""},
      {"it is being bound", [](KaiCluster& c) { c.requests.at({"team", "p"}).phase = Interned("Pending"); }, ""},
      {"its label was lost", [](KaiCluster& c) { c.pods.at({"team", "p"}).meta.labels = StringMap(); }, "team/p"},
  };
  for (const bool replicas : {false, true}) {
    for (const auto& row : rows) {
      KaiCluster cluster;
      if (replicas) cluster.nodes.at("n1").meta.labels.set("nvidia.com/gpu.replicas", "4");
      cluster.multi_consumer("p", {"g", "h"});
      cluster.request("p", "g", "Succeeded").groups = {Interned("g"), Interned("h")};
      row.change(cluster);
      const Plan plan = cluster.run(180s);
      const std::string text = message(plan, "n1", kKaiMismatch);
      EXPECT_NE(text.find(row.told), std::string::npos) << row.name << ": " << text;
      EXPECT_EQ(text.find("team/p") != std::string::npos, *row.told != '\0') << row.name << ": " << text;
      const bool uses = *row.told != '\0' || std::string_view(row.name) == "both have";
      const std::string shared = message(plan, "n1", kKaiOnSharedNode);
      const bool in_progress = std::string_view(row.name) == "it is being bound";
      EXPECT_EQ(!shared.empty(), replicas && (uses || in_progress)) << row.name << ": " << shared;
    }
  }
}

TEST(TruthCheck, LooksUpNoMoreThanSoManyPodsInASweep) {
  KaiCluster cluster;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "p" + std::to_string(i);
    cluster.request(name, "g-" + name, "Succeeded");
  }
  EXPECT_EQ(cluster.pass().kai_wanted.pods.size(), 0u);  // Asked for and answered before.
  EXPECT_EQ(cluster.world.kai.lookups.pods.size(), 64u);
  cluster.run(59s, 1s);
  EXPECT_EQ(cluster.world.kai.lookups.pods.size(), 64u);
}

TEST(TruthCheck, LooksUpNothingWhereTheReservationsAreThere) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.multi_consumer("p", {"g"});
  cluster.request("p", "g", "Succeeded");
  cluster.apply();
  KaiIndex index;
  index.attach(cluster.world);
  index.refresh(cluster.world, cluster.settings);
  EXPECT_TRUE(index.unreserved().empty());
  cluster.pods.erase({"kai-resource-reservation", "r"});
  cluster.apply();
  index.refresh(cluster.world, cluster.settings);
  EXPECT_EQ(index.unreserved().size(), 1u);
  cluster.requests.clear();
  cluster.apply();
  index.refresh(cluster.world, cluster.settings);
  EXPECT_TRUE(index.unreserved().empty());
}

TEST(TruthCheck, SaysNothingBeforeMultiDeviceConsumersHaveBeenListed) {
  KaiCluster cluster;
  cluster.lookups_answered = false;
  cluster.reservation("r", "g");
  EXPECT_EQ(reasons(cluster.run(300s), "n1"), Names{});
}

TEST(TruthCheck, NamesAGpuThatTwoGroupsClaim) {
  struct {
    const char* name;
    std::function<void(KaiCluster&)> change;
    bool told;
  } rows[] = {
      {"two groups", [](KaiCluster&) {}, true},
      {"one group",
       [](KaiCluster& c) { c.pods.at({"kai-resource-reservation", "s"}).meta.labels.set(kai::kGroupLabel, "g"); },
       false},
      {"another GPU",
       [](KaiCluster& c) {
         c.pods.at({"kai-resource-reservation", "s"}).meta.annotations.set(kai::kDeviceAnnotation, "GPU-b");
       },
       false},
      {"another node", [](KaiCluster& c) { c.pods.at({"kai-resource-reservation", "s"}).node_name = Interned("n2"); },
       false},
      {"one has ended", [](KaiCluster& c) { c.pods.at({"kai-resource-reservation", "s"}).phase = Interned("Failed"); },
       false},
      {"one is gone", [](KaiCluster& c) { c.pods.erase({"kai-resource-reservation", "s"}); }, false},
  };
  for (const auto& row : rows) {
    KaiCluster cluster;
    cluster.reservation("r", "g");
    cluster.consumer("p", "g");
    cluster.reservation("s", "h");
    cluster.consumer("q", "h");
    EXPECT_TRUE(reasons(cluster.pass(), "n1").contains(std::string(kKaiClaimedTwice)));
    row.change(cluster);
    const Plan plan = cluster.pass();
    EXPECT_EQ(reasons(plan, "n1").contains(std::string(kKaiClaimedTwice)), row.told) << row.name;
    EXPECT_EQ(told_by_event(plan).contains(std::string(kKaiClaimedTwice)), row.told) << row.name;
    if (row.told) {
      const std::string text = message(plan, "n1", kKaiClaimedTwice);
      EXPECT_NE(text.find("kai-resource-reservation/r (group g), kai-resource-reservation/s (group h)"),
                std::string::npos)
          << text;
    }
  }
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

TEST(KaiIndex, CountsWhatIsOnANode) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  cluster.consumer("p", "g");
  cluster.consumer("done", "g").phase = Interned("Succeeded");
  cluster.request("p", "g", "Succeeded");
  cluster.request("q", "h", "Pending");
  KaiIndex index;
  index.attach(cluster.world);
  cluster.apply();
  index.refresh(cluster.world, cluster.settings);
  EXPECT_EQ(index.use_of("n1"), "1 reservation, 1 fraction pod, 1 unfinished BindRequest");
  EXPECT_EQ(index.use_of("n2"), "");
  EXPECT_EQ(index.take_changed_nodes(), std::vector<std::string>{"n1"});
  cluster.pods.clear();
  cluster.requests.clear();
  cluster.apply();
  index.refresh(cluster.world, cluster.settings);
  EXPECT_EQ(index.use_of("n1"), "");
  EXPECT_TRUE(index.groups().empty());
  EXPECT_TRUE(index.attention().empty());
}

}  // namespace
}  // namespace gso::test::truth_check_test
