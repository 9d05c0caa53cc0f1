// S8: no node is rolled out to replicas of its GPUs while KAI shares them, whichever objects of KAI exist.
#include <gtest/gtest.h>

#include <functional>

#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::kai_test {
namespace {

FleetSpec unshared_fleet() {
  FleetSpec spec;
  spec.profiles = {{"any", "none"}};
  spec.nodes = alike_nodes(2);
  return spec;
}

// A fleet at rest. These tests check the node's rollout: nothing is collected.
void begin(FleetModel& fleet) {
  KaiWorld& kai = fleet.world.kai;
  kai.configs_served = kai.bind_requests_served = true;
  kai.configs.init_done();
  kai.pods.init_done();
  kai.bind_requests.init_done();
  kai.deployments.init_done();
  fleet.settings.kai.gc_mode = KaiGcMode::off;
  fleet.settings.kai.mps_ready = MpsReadyMode::off;
  ASSERT_TRUE(fleet.settle());
}

KaiPod kai_pod(const char* ns, const char* name, const char* node) {
  KaiPod pod;
  pod.meta.ns = Interned(ns);
  pod.meta.name = name;
  pod.meta.uid = std::string("uid-") + name;
  pod.node_name = Interned(node);
  pod.phase = Interned("Running");
  pod.scheduler_name = Interned("kai-scheduler");
  pod.meta.labels.set(kai::kGroupLabel, "g");
  return pod;
}

KaiPod reservation(const char* node = "n01") {
  KaiPod pod = kai_pod("kai-resource-reservation", "r", node);
  pod.meta.labels.set("app", "kai-resource-reservation");
  return pod;
}

BindRequest bind_request(const char* phase) {
  BindRequest request;
  request.meta.ns = Interned("team");
  request.meta.name = request.pod_name = "q";
  request.selected_node = Interned("n01");
  request.groups = {Interned("h")};
  request.phase = Interned(phase);
  return request;
}

// All reports about the node until nothing changes any more. (Events of lasting findings are planned in every pass and
// sent once by the runtime: there a number of passes is the end.)
std::set<std::string> told_about(FleetModel& fleet, const std::string& node) {
  std::set<std::string> reasons;
  fleet.on_plan = [&](const Plan& plan) {
    for (const Finding& finding : plan.findings)
      if (finding.object.name == node) reasons.insert(finding.why.code);
  };
  (void)fleet.settle(300);
  fleet.on_plan = nullptr;
  return reasons;
}

struct Row {
  const char* name;
  std::function<void(FleetModel&)> use;
  const char* profile;
  bool rolled;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class KaiOnANode : public ::testing::TestWithParam<Row> {};

TEST_P(KaiOnANode, DecidesWhetherItIsRolledToReplicas) {
  FleetModel fleet(unshared_fleet());
  begin(fleet);
  GetParam().use(fleet);
  fleet.forget_counts();
  fleet.edit("any", GetParam().profile);
  const std::set<std::string> told = told_about(fleet, "n01");
  EXPECT_EQ(fleet.restarts("n01", "plugin") > 0, GetParam().rolled) << ::testing::PrintToString(told);
  EXPECT_GT(fleet.restarts("n02", "plugin"), 0);  // A problem of one node delays no other node.
  const std::string state = fleet.label_of("n01", kStateLabel);
  EXPECT_EQ(state, GetParam().rolled ? "" : "Blocked");
}

INSTANTIATE_TEST_SUITE_P(
    Uses, KaiOnANode,
    ::testing::Values(
        Row{"nothing", [](FleetModel&) {}, "ts-4", true},
        Row{"a_reservation", [](FleetModel& f) { f.world.kai.pods.apply(reservation()); }, "ts-4", false},
        Row{"a_reservation_and_mps", [](FleetModel& f) { f.world.kai.pods.apply(reservation()); }, "mps-4", false},
        Row{"a_reservation_elsewhere", [](FleetModel& f) { f.world.kai.pods.apply(reservation("n03")); }, "ts-4", true},
        Row{"a_failed_reservation",
            [](FleetModel& f) {
              KaiPod pod = reservation();
              pod.phase = Interned("Failed");
              f.world.kai.pods.apply(pod);
            },
            "ts-4", true},
        Row{"a_fraction_pod", [](FleetModel& f) { f.world.kai.pods.apply(kai_pod("team", "p", "n01")); }, "ts-4",
            false},
        Row{"a_finished_fraction_pod",
            [](FleetModel& f) {
              KaiPod pod = kai_pod("team", "p", "n01");
              pod.phase = Interned("Succeeded");
              f.world.kai.pods.apply(pod);
            },
            "ts-4", true},
        Row{"a_bind_in_progress", [](FleetModel& f) { f.world.kai.bind_requests.apply(bind_request("Pending")); },
            "ts-4", false},
        Row{"a_bind_not_begun", [](FleetModel& f) { f.world.kai.bind_requests.apply(bind_request("")); }, "ts-4",
            false},
        Row{"a_bind_that_has_failed_for_good",
            [](FleetModel& f) { f.world.kai.bind_requests.apply(bind_request("Failed")); }, "ts-4", true}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(KaiAndReplicas, TheNodeIsRolledOnceKaiHasLeftIt) {
  FleetModel fleet(unshared_fleet());
  begin(fleet);
  fleet.world.kai.pods.apply(reservation());
  fleet.edit("any", "ts-4");
  EXPECT_TRUE(told_about(fleet, "n01").contains(std::string(kKaiReservations)));
  EXPECT_EQ(fleet.restarts("n01", "plugin"), 0);
  fleet.world.kai.pods.erase(reservation().meta.key());
  ASSERT_TRUE(fleet.settle());
  EXPECT_GT(fleet.restarts("n01", "plugin"), 0);
  EXPECT_EQ(fleet.label_of("n01", kStateLabel), "");
}

TEST(KaiAndReplicas, NoNodeIsRolledToReplicasBeforeItIsKnownWhereKaiIs) {
  FleetModel fleet(unshared_fleet());
  begin(fleet);
  fleet.world.kai.use_known = false;
  fleet.edit("any", "ts-4");
  for (int i = 0; i < 300; ++i) fleet.tick();
  EXPECT_EQ(fleet.restarts("n01", "plugin") + fleet.restarts("n02", "plugin"), 0);
  fleet.world.kai.use_known = true;
  ASSERT_TRUE(fleet.settle());
  EXPECT_GT(fleet.restarts("n01", "plugin"), 0);
}

// A multi-device pod is in no watch; if its reservation is missing, only its BindRequest shows that it might exist.
TEST(KaiAndReplicas, APodThatOnlyABindRequestShowsKeepsTheNodeUntilItIsKnownToBeGone) {
  FleetModel fleet(unshared_fleet());
  begin(fleet);
  fleet.world.kai.bind_requests.apply(bind_request("Succeeded"));
  fleet.forget_counts();
  bool wanted = false;
  std::optional<bool> alive;
  fleet.on_plan = [&](const Plan& plan) {
    wanted = wanted || plan.kai_wanted.pods.contains({"team", "q"});
    if (alive) fleet.world.kai.lookups.pods[{"team", "q"}] = {one_look(fleet.now), *alive};
  };
  fleet.edit("any", "ts-4");
  for (const std::optional<bool> answer : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    alive = answer;
    for (int i = 0; i < 300; ++i) fleet.tick();
    EXPECT_EQ(fleet.restarts("n01", "plugin") > 0, answer == false);
    EXPECT_GT(fleet.restarts("n02", "plugin"), 0);
  }
  EXPECT_TRUE(wanted);
  fleet.on_plan = nullptr;
}

TEST(KaiAndReplicas, ANodeMayAlwaysLeaveReplicas) {
  FleetSpec spec = unshared_fleet();
  spec.profiles = {{"any", "ts-4"}};
  FleetModel fleet(spec);
  begin(fleet);
  fleet.world.kai.pods.apply(reservation());
  // KAI arrived on a node that has replicas.
  EXPECT_TRUE(told_about(fleet, "n01").contains(std::string(kKaiOnSharedNode)));
  fleet.edit("any", "none");
  fleet.forget_counts();
  EXPECT_FALSE(told_about(fleet, "n01").contains(std::string(kKaiReservations)));
  EXPECT_GT(fleet.restarts("n01", "plugin"), 0);
}

TEST(KaiAndReplicas, ANewNumberOfReplicasWaitsForKaiToo) {
  FleetSpec spec = unshared_fleet();
  spec.profiles = {{"any", "ts-4"}};
  FleetModel fleet(spec);
  begin(fleet);
  fleet.world.kai.pods.apply(reservation());
  fleet.forget_counts();
  fleet.edit("any", "ts-8");
  EXPECT_TRUE(told_about(fleet, "n01").contains(std::string(kKaiReservations)));
  EXPECT_EQ(fleet.restarts("n01", "plugin"), 0);
  EXPECT_GT(fleet.restarts("n02", "plugin"), 0);
}

// The node is out of service already, and its target has been replaced.
TEST(KaiAndReplicas, ANodeThatIsHalfWayGoesOnToOtherReplicasOnceKaiHasLeftIt) {
  for (const bool known : {true, false}) {
    SCOPED_TRACE(known);
    FleetSpec spec = unshared_fleet();
    spec.profiles = {{"any", "mps-4"}};
    spec.nodes = alike_nodes(1);
    FleetModel fleet(spec);
    fleet.settings.settle = Duration::zero();
    begin(fleet);
    fleet.edit("any", "mps-8");
    for (int i = 0; i < 3; ++i) fleet.tick();
    const std::string target = read_change(fleet.node("n01")).to;
    ASSERT_EQ(fleet.restarts("n01", "mps"), 1);
    ASSERT_EQ(fleet.restarts("n01", "plugin"), 0);
    if (known) fleet.world.kai.pods.apply(reservation());
    fleet.world.kai.use_known = known;
    fleet.edit("any", "mps-6");
    std::set<std::string> told = told_about(fleet, "n01");
    EXPECT_TRUE(told.contains(std::string(kKaiReservations)));
    EXPECT_EQ(read_change(fleet.node("n01")).to, target);
    EXPECT_EQ(fleet.restarts("n01", "plugin"), 0);
    fleet.world.kai.pods.erase(reservation().meta.key());
    fleet.world.kai.use_known = true;
    ASSERT_TRUE(fleet.settle());
    EXPECT_EQ(fleet.allocatable("n01", "nvidia.com/gpu"), 12);
  }
}

}  // namespace
}  // namespace gso::test::kai_test
