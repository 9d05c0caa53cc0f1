// S8: no node is rolled out to replicas of its GPUs while KAI shares them, whichever objects of KAI exist.
#include <gtest/gtest.h>

#include <set>
#include <variant>

#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::kai_test {
namespace {

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

KaiPod kai_pod(const char* ns, const char* name, const char* node, const char* phase) {
  KaiPod pod;
  pod.meta.ns = Interned(ns);
  pod.meta.name = name;
  pod.meta.uid = std::string("uid-") + name;
  pod.node_name = Interned(node);
  pod.phase = Interned(phase);
  pod.scheduler_name = Interned("kai-scheduler");
  pod.meta.labels.set(kai::kGroupLabel, "g");
  return pod;
}

KaiPod reservation(const char* node = "n01", const char* phase = "Running") {
  KaiPod pod = kai_pod("kai-resource-reservation", "r", node, phase);
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

using Use = std::variant<std::monostate, KaiPod, BindRequest>;

struct Row {
  const char* name;
  Use use;
  bool rolled;
  const char* profile = "ts-4";
};

TEST(KaiOnANode, DecidesWhetherItIsRolledToReplicas) {
  const Row rows[] = {{"nothing", {}, true},
                      {"a reservation", reservation(), false},
                      {"a reservation and mps", reservation(), false, "mps-4"},
                      {"a reservation elsewhere", reservation("n03"), true},
                      {"a failed reservation", reservation("n01", "Failed"), true},
                      {"a fraction pod", kai_pod("team", "p", "n01", "Running"), false},
                      {"a finished fraction pod", kai_pod("team", "p", "n01", "Succeeded"), true},
                      {"a bind in progress", bind_request("Pending"), false},
                      {"a bind not begun", bind_request(""), false},
                      {"a bind that has failed for good", bind_request("Failed"), true}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    FleetModel fleet(spec_of(2, "none"));
    begin(fleet);
    if (const auto* pod = std::get_if<KaiPod>(&row.use)) fleet.world.kai.pods.apply(*pod);
    if (const auto* bind = std::get_if<BindRequest>(&row.use)) fleet.world.kai.bind_requests.apply(*bind);
    fleet.forget_counts();
    fleet.edit("any", row.profile);
    const std::set<std::string> told = told_about(fleet, "n01");
    EXPECT_EQ(fleet.restarts("n01", "plugin") > 0, row.rolled) << ::testing::PrintToString(told);
    EXPECT_GT(fleet.restarts("n02", "plugin"), 0);  // A problem of one node delays no other node.
    EXPECT_EQ(fleet.label_of("n01", kStateLabel), row.rolled ? "" : "Blocked");
  }
}

TEST(KaiAndReplicas, NoNodeIsRolledToReplicasBeforeItIsKnownWhereKaiIs) {
  FleetModel fleet(spec_of(2, "none"));
  begin(fleet);
  fleet.world.kai.use_known = false;
  fleet.edit("any", "ts-4");
  tick(fleet, 300);
  EXPECT_EQ(fleet.restarts("n01", "plugin") + fleet.restarts("n02", "plugin"), 0);
  fleet.world.kai.use_known = true;
  ASSERT_TRUE(fleet.settle());
  EXPECT_GT(fleet.restarts("n01", "plugin"), 0);
}

// A multi-device pod is in no watch; if its reservation is missing, only its BindRequest shows that it might exist.
TEST(KaiAndReplicas, APodThatOnlyABindRequestShowsKeepsTheNodeUntilItIsKnownToBeGone) {
  FleetModel fleet(spec_of(2, "none"));
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
    tick(fleet, 300);
    EXPECT_EQ(fleet.restarts("n01", "plugin") > 0, answer == false);
    EXPECT_GT(fleet.restarts("n02", "plugin"), 0);
  }
  EXPECT_TRUE(wanted);
  fleet.on_plan = nullptr;
}

// The node is out of service already, and its target has been replaced.
TEST(KaiAndReplicas, ANodeThatIsHalfWayGoesOnToOtherReplicasOnceKaiHasLeftIt) {
  for (const bool known : {true, false}) {
    SCOPED_TRACE(known);
    FleetModel fleet(spec_of(1, "mps-4"));
    fleet.settings.settle = Duration::zero();
    begin(fleet);
    fleet.edit("any", "mps-8");
    tick(fleet, 3);
    const std::string target = read_change(fleet.node("n01")).to;
    ASSERT_EQ(fleet.restarts("n01", "mps"), 1);
    ASSERT_EQ(fleet.restarts("n01", "plugin"), 0);
    if (known) fleet.world.kai.pods.apply(reservation());
    fleet.world.kai.use_known = known;
    fleet.edit("any", "mps-6");
    EXPECT_TRUE(told_about(fleet, "n01").contains(std::string(kKaiReservations)));
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
