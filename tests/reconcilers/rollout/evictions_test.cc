// Which pods are evicted under `workloads: Evict`: no more pods than must leave, the least important first, and no pod
// that nothing would create again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/drain.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::evictions_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct User {
  std::string name;
  std::int64_t gpus = 1;
  std::int32_t priority = 0;
  int age = 0;  // In hours.
  bool bare = false;
  std::string annotation = {};  // Set to "true".
  bool protected_by_budget = false;
  std::string ns = "jobs";
};

struct Row {
  std::string name;
  std::vector<User> users;  // Users of a node that serves 12, and will serve 8.
  std::set<std::string> evicted;
};

std::unique_ptr<FleetModel> fleet_of(const std::vector<User>& users, const std::string& rollout = "workloads: Evict") {
  FleetSpec spec = spec_of(1, "ts-12");
  spec.nodes.front().gpus = 1;
  auto fleet = std::make_unique<FleetModel>(spec);
  free_cluster_budget(*fleet);
  EXPECT_TRUE(fleet->settle());
  fleet->policy(rollout_of(rollout));
  for (const User& user : users) {
    fleet->use("n01", user.name, "nvidia.com/gpu", user.gpus);
    Pod& pod = fleet->consumers["n01"].pods.back();
    pod.priority = user.priority;
    pod.meta.creation_timestamp = fleet->now - std::chrono::hours(user.age);
    if (user.bare) pod.meta.owners.clear();
    pod.meta.ns = k8s::Interned(user.ns);
    if (!user.annotation.empty()) pod.meta.annotations.set(user.annotation, "true");
    if (user.protected_by_budget) fleet->protect(user.name, "budget");
  }
  return fleet;
}

std::set<std::string> evicted_in(FleetModel& fleet, std::string_view profile) {
  std::set<std::string> out;
  fleet.edit("any", profile);
  for (int i = 0; i < 60; ++i) {
    for (const PlannedAction& planned : fleet.tick().actions) {
      const auto* evict = std::get_if<EvictPod>(&planned.action);
      if (evict == nullptr) continue;
      out.insert(evict->pod.name);
      EXPECT_THAT(planned.why.message, AllOf(HasSubstr("evicted from node n01"), HasSubstr("rollout default-any-")))
          << "for the pod's owner";
    }
  }
  return out;
}

TEST(Evictions, TakeNoMoreThanWhatMustLeaveTheLeastImportantFirst) {
  const std::vector<Row> rows = {
      {"one of nine equal ones", {{"p1"}, {"p2"}, {"p3"}, {"p4"}, {"p5"}, {"p6"}, {"p7"}, {"p8"}, {"p9"}}, {"p1"}},
      {"nobody where all fit", {{"a", 4}, {"b", 4}}, {}},
      {"the lowest priority", {{"a", 4, 0}, {"b", 4, 10}, {"c", 2, -5}}, {"c"}},
      {"a large one of low priority before a small one of high priority", {{"a", 8, 0}, {"b", 1, 10}}, {"a"}},
      {"the smallest of one priority", {{"a", 6}, {"b", 3}}, {"b"}},
      {"the youngest of one size", {{"a", 5, 0, 1}, {"b", 5, 0, 9}}, {"a"}},
      {"not one that another one makes unnecessary", {{"a", 1}, {"b", 2}, {"c", 7}}, {"b"}},
      {"two where one is not enough", {{"a", 2}, {"b", 2}, {"c", 8}}, {"a", "b"}},
      {"nobody who refuses", {{"a", 1, 0, 0, false, "gpusharing.dev/do-not-disrupt"}, {"b", 8}}, {"b"}},
      {"nobody without a controller", {{"a", 1, 0, 0, true}, {"b", 8}}, {"b"}},
      {"nobody for nothing", {{"a", 9, 0, 0, true}, {"b", 1}}, {}},
      {"nobody of the cluster", {{"a", 1, 0, 0, false, "", false, "kube-system"}, {"b", 8}}, {"b"}},
      {"nobody of the plugin's namespace", {{"a", 1, 0, 0, false, "", false, "gpu-operator"}, {"b", 8}}, {"b"}},
      {"nobody of its own namespace", {{"a", 1, 0, 0, false, "", false, "gpu-sharing-operator"}, {"b", 8}}, {"b"}},
      {"somebody of another system's namespace", {{"a", 1, 0, 0, false, "", false, "kube-public"}, {"b", 8}}, {"a"}},
      {"another one of the same priority where a budget keeps the first",
       {{"a", 1, 0, 0, false, "", true}, {"b", 1}, {"c", 7, 5}},
       {"a", "b"}},
  };
  for (const Row& row : rows) {
    const auto fleet = fleet_of(row.users);
    EXPECT_EQ(evicted_in(*fleet, "ts-8"), row.evicted) << row.name;
  }
}

TEST(Evictions, EveryClientOfMPSMustLeave) {
  const auto fleet = fleet_of({{"a"}, {"b", 2, 100}});
  EXPECT_EQ(evicted_in(*fleet, "mps-8"), (std::set<std::string>{"a", "b"}));
}

TEST(Evictions, AMemberOfAJobThatIsEndingAlreadyIsNotEvictedAgain) {
  const auto fleet = fleet_of({});
  for (const char* pod : {"train-0", "train-1"}) fleet->use_by_job("n01", pod, "train", {});
  for (Pod& pod : fleet->consumers["n01"].pods)
    if (pod.meta.name == "train-0") pod.meta.deletion_timestamp = fleet->now;
  EXPECT_EQ(evicted_in(*fleet, "mps-8"), std::set<std::string>{"train-1"});
}

TEST(Evictions, ABarePodIsWaitedForAndNamedUnlessThePolicySaysOtherwise) {
  const std::vector<User> users = {{"bare", 1, 0, 0, true}, {"owned", 1}};
  const auto fleet = fleet_of(users);
  EXPECT_EQ(evicted_in(*fleet, "mps-8"), std::set<std::string>{}) << "the node waits anyway";
  const std::string said = said_with(fleet->plan(), kWaitingForWorkloads).at(0);
  EXPECT_THAT(said, HasSubstr("jobs/bare has no controller"));
  EXPECT_THAT(said, HasSubstr("spec.rollout.evictBarePods: true in policy default"));
  EXPECT_THAT(said, HasSubstr("Until then no other pod of the node is evicted"));
  EXPECT_THAT(fleet->policy_status("default"), HasSubstr("jobs/bare has no controller")) << "in status.blocked";

  const auto willing = fleet_of(users, "workloads: Evict, evictBarePods: true");
  EXPECT_EQ(evicted_in(*willing, "mps-8"), (std::set<std::string>{"bare", "owned"}));
}

// Whoever has not listed the pods, the next operator or a command, reads there why they stay.
TEST(Evictions, WhyPodsStayIsInFieldsOfTheStatus) {
  const struct {
    std::vector<User> users;
    nlohmann::json bare, annotation;
  } rows[] = {
      {{{"bare", 1, 0, 0, true}}, true, nullptr},
      {{{"train", 1, 0, 0, false, "gpusharing.dev/do-not-disrupt"}}, nullptr, "gpusharing.dev/do-not-disrupt=true"},
      {{{"train", 1, 0, 0, false, "gpusharing.dev/do-not-disrupt"}, {"bare", 1, 0, 0, true}},
       true,
       "gpusharing.dev/do-not-disrupt=true"},
      {{}, nullptr, nullptr},
  };
  for (const auto& row : rows) {
    const auto fleet = fleet_of(row.users);
    EXPECT_EQ(evicted_in(*fleet, "mps-8"), std::set<std::string>{});
    nlohmann::json said = nlohmann::json::object();
    for (const auto& [key, rollout] : fleet->world.rollouts.all()) {
      const auto status = nlohmann::json::parse(rollout->status_json, nullptr, false);
      if (status.contains("nodes")) said = status["nodes"][0];
    }
    EXPECT_EQ(said.value("podsWithoutController", nlohmann::json()), row.bare) << said;
    EXPECT_EQ(said.value("evictionForbiddenBy", nlohmann::json()), row.annotation) << said;
    EXPECT_FALSE(said.contains("podsStayOtherwise")) << said;
  }
}

TEST(Evictions, APodOfAProtectedNamespaceBlocksItsNodeByName) {
  const User dns{"dns", 1, 0, 0, false, "", false, "kube-system"};
  const auto fleet = fleet_of({dns, {"train"}}, "workloads: Evict, evictBarePods: true");
  EXPECT_EQ(evicted_in(*fleet, "mps-8"), std::set<std::string>{});
  const std::string said = said_with(fleet->plan(), "ProtectedNamespace").at(0);
  EXPECT_TRUE(said.starts_with("n01: ")) << said;
  EXPECT_THAT(said, HasSubstr("kube-system/dns runs in a namespace of the cluster, where the operator evicts no pod"));
  EXPECT_THAT(said, HasSubstr("Delete it with kubectl, or move it to another namespace"));
  EXPECT_THAT(fleet->policy_status("default"), HasSubstr("\"reason\":\"ProtectedNamespace\"")) << "in status.blocked";
}

}  // namespace
}  // namespace gso::test::evictions_test
