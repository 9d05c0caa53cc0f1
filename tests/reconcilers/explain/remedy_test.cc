// Commands that explain proposes, as they work in the cluster at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/checks/catalogue.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::remedy_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A command that says NODE fails for whoever copies it.
TEST(Remedy, TextsThatManyNodesShareAreCompletedWithTheirNames) {
  const std::string lift = "`kubectl annotate node NODE gpusharing.dev/hold-`";
  const struct {
    std::string text;
    std::vector<std::string> nodes;
    std::string completed;
  } rows[] = {
      {lift, {"a01"}, "`kubectl annotate node a01 gpusharing.dev/hold-`"},
      {lift, {"a01", "a02"}, "`kubectl annotate node a01 a02 gpusharing.dev/hold-`"},
      {lift,
       {"a01", "a02", "a03", "a04", "a05", "a06", "a07"},
       "`kubectl annotate node a01 a02 a03 a04 a05 gpusharing.dev/hold-` (the same for 2 more nodes)"},
      {lift, {}, lift},
      {"`kubectl uncordon NODE`", {"a01", "a02"}, "`kubectl uncordon a01 a02`"},
      {"metadata.name=nvidia-features-for-NODE", {"a01"}, "metadata.name=nvidia-features-for-a01"},
      {"metadata.name=nvidia-features-for-NODE", {"a01", "a02"}, "metadata.name=nvidia-features-for-NODE"},
      {"variable NODE_LABEL", {"a01"}, "variable NODE_LABEL"},
      {"no command", {"a01", "a02", "a03", "a04", "a05", "a06"}, "no command"},
  };
  for (const auto& row : rows) EXPECT_EQ(name_nodes_in(row.text, row.nodes), row.completed);
}

TEST(Remedy, AHoldIsLiftedByACommandWithTheNameOfTheNode) {
  EXPECT_THAT(std::string(remedy_of(kHeld)), HasSubstr(" node NODE ")) << "as the documents have it";
  EXPECT_THAT(name_nodes_in(std::string(remedy_of(kHeld)), {"a01"}), Not(HasSubstr("NODE")));
}

TEST(Remedy, APolicyThatEvictsIsNotToldToEvict) {
  Explained explained(cluster(kSliced, "", R"(nvidia.com/gpu: "8")"));
  const auto remedy = [&](WorkloadMode mode, bool bare) {
    SharingPolicy policy;
    policy.meta.name = kDefaultPolicy;
    policy.rollout.workloads = mode;
    policy.rollout.evict_bare_pods = bare;
    explained.world.policies.apply(policy);
    explained.index.note_everything_changed();
    explained.index.refresh(explained.world, explained.settings);
    return std::string(remedy_here(explained.world, explained.index.impl(), kWaitingForWorkloads, node_ref("gpu-1")));
  };
  EXPECT_EQ(remedy(WorkloadMode::wait_for_idle, false), remedy_of(kWaitingForWorkloads));
  EXPECT_THAT(remedy(WorkloadMode::evict, false),
              testing::AllOf(Not(HasSubstr("`workloads: Evict`")), HasSubstr("`rollout.evictBarePods: true`")));
  EXPECT_THAT(remedy(WorkloadMode::evict, true), Not(HasSubstr("vict")));
}

TEST(Remedy, WhatOnlyAnOperatorCarriesOutIsKnown) {
  EXPECT_TRUE(adopt_command("default").needs_operator());
  EXPECT_TRUE(start_command("default").needs_operator());
  EXPECT_TRUE(approve_command("default").needs_operator());
  EXPECT_TRUE(resume_command("policy/default").needs_operator());
  EXPECT_TRUE(rollout_status_command().needs_operator());
  EXPECT_FALSE(edit_policy_command("default").needs_operator());
  EXPECT_FALSE(describe_node_command("n").needs_operator());
}

// `rollout status` answers there that the CRDs are missing: whoever follows the advice goes round in a circle.
TEST(Remedy, WithoutSharingRolloutsTheProgressIsShownByStatus) {
  World world;
  EXPECT_EQ(command_here(world, rollout_status_command()).text(), "gpu-sharing-operator status");
  EXPECT_EQ(command_here(world, describe_node_command("n")).text(), "kubectl describe node n");
  world.policies_served = true;
  EXPECT_EQ(command_here(world, rollout_status_command()).text(), "gpu-sharing-operator rollout status");
}

}  // namespace
}  // namespace gso::remedy_test
