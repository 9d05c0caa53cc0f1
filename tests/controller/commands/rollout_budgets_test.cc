// `rollout status` of a full budget: who holds its slots, what returns them, and which setting to raise last.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/node/node_change.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_budgets_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Verb = RolloutOptions::Verb;
using Json = nlohmann::json;

// The row "an idle node does not move" of docs/runbooks.md: which budget is full, also the cluster's, who holds it, and
// the setting to raise.
TEST_F(RolloutCommand, StatusOfAFullBudgetNamesItAndItsHoldersAndTheSettingToRaise) {
  const std::string edit = "  next: kubectl edit sharingpolicies.gpusharing.dev default  # to raise spec.rollout.";
  const std::string of_policy =
      edit + "maxUnavailable; the chart value config.max-unavailable is for a new cluster only\n";
  const std::string of_group =
      edit + "maxUnavailablePerGroup; the chart value config.max-unavailable-per-group is for a new cluster only\n";
  const std::string of_cluster = "  next: " + upgrade_chart("and a higher config.cluster-max-unavailable\n");
  const Json cluster = "cluster-max-unavailable", policy_wide = "maxUnavailable", group = "maxUnavailablePerGroup";
  const struct {
    Json budgets;
    std::string next;
  } rows[] = {
      {Json::array({policy_wide}), of_policy},
      {Json::array({group}), of_group},
      {Json::array({cluster}), of_cluster},
      {Json::array({policy_wide, cluster}),
       edit + "maxUnavailable; the chart value config.max-unavailable is for a new cluster only; raise the chart value "
              "config.cluster-max-unavailable with helm upgrade as well: all of these budgets are full, and one alone "
              "frees no slot\n"},
      {Json::array({policy_wide, group}),
       edit +
           "maxUnavailable and spec.rollout.maxUnavailablePerGroup; the chart values config.max-unavailable and "
           "config.max-unavailable-per-group are for a new cluster only: all of these budgets are full, and one alone "
           "frees no slot\n"},
      {Json::array(), ""},
  };
  const auto next_for = [&](const char* reason, const Json& budgets) {
    rollout("r", "Progressing", "v1-2");
    const Json condition{{"type", "Ready"},
                         {"status", "False"},
                         {"reason", reason},
                         {"message", "as the operator says it"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
          Json{{"status",
                {{"conditions", Json::array({condition})}, {"reason", {{"code", reason}, {"budgets", budgets}}}}}}
              .dump());
    (void)run(Verb::status, "r");
    EXPECT_THAT(out.str(), HasSubstr("as the operator says it"));
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
    const std::size_t at = out.str().find("  next: ");
    return at == std::string::npos ? std::string() : out.str().substr(at);
  };
  // Whoever keeps a holder out of service comes before the budget: here a person, and a kubelet. The plan knows all
  // holders, and the message names the first few.
  post_node("gpu-2", "Unknown");
  post_node("gpu-3", "True");
  record(print_head({edit_behind_pods_of({"gpu-1", "gpu-2", "gpu-3"})}));
  merge("/api/v1/nodes/gpu-1", R"({"spec":{"unschedulable":true}})");
  for (const char* reason : {"BudgetExhausted", "RollingOut"}) {
    EXPECT_EQ(next_for(reason, Json::array({cluster})),
              "  next: kubectl get nodes gpu-1  # cordoned by somebody: whoever did can return it with kubectl "
              "uncordon\n"
              "  next: kubectl describe nodes gpu-2  # NotReady: it holds a slot until it is Ready\n" +
                  of_cluster);
  }
  EXPECT_EQ(next_for("RollingOut", Json::array()), "") << "it waits for no slot";
  merge("/api/v1/nodes/gpu-1", R"({"spec":{"unschedulable":null}})");
  (void)send(k8s::Method::del, "/api/v1/nodes/gpu-2", "", "");
  for (const auto& row : rows) EXPECT_EQ(next_for("BudgetExhausted", row.budgets), row.next) << row.budgets;
  EXPECT_EQ(next_for("RollingOut", rows[0].budgets), "") << "nodes hold the slots of a wave that goes on";
  // The cluster's slots can belong to the rollout of another policy.
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
       policy("research", R"({"priority":10,"nodeSelector":{"matchLabels":{"team":"b"}}})"));
  test::ChangeWords change;
  change.to = target();
  merge("/api/v1/nodes/gpu-1",
        Json{{"metadata", {{"labels", {{"team", "b"}}}, {"annotations", test::write_change(change)}}}}.dump());
  EXPECT_EQ(next_for("RollingOut", Json::array({cluster})),
            "  next: gpu-sharing-operator rollout status policy/research  # gpu-1 holds the slots\n" + of_cluster);
}

// The node that holds the slot is what the rollout waits for: a higher budget is the last thing to try.
TEST_F(RolloutCommand, StatusOfAFullBudgetNamesTheWayOutOfItsHolderFirst) {
  rollout("r", "Progressing", "v1-2");
  const Json condition{{"type", "Ready"},
                       {"status", "False"},
                       {"reason", "BudgetExhausted"},
                       {"message", "no slot is free: gpu-1 holds 1 of 1 slot of policy default (maxUnavailable)"},
                       {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  const Json node{{"name", "gpu-1"}, {"state", "Restarting"}, {"reason", "NodesNotReady"}, {"message", "NotReady"}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
        Json{{"status",
              {{"conditions", Json::array({condition})},
               {"reason", {{"code", "BudgetExhausted"}, {"budgets", {"maxUnavailable"}}}},
               {"nodes", Json::array({node})}}}}
            .dump());
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})");
  (void)run(Verb::status, "r");
  const std::size_t holder = out.str().find("  next: kubectl describe node gpu-1");
  const std::size_t raise = out.str().find("to raise spec.rollout.maxUnavailable");
  ASSERT_NE(holder, std::string::npos) << out.str();
  ASSERT_NE(raise, std::string::npos) << out.str();
  EXPECT_LT(holder, raise) << out.str();
}

// An uncordon would defer the change of such a node.
TEST_F(RolloutCommand, StatusOfAFullBudgetSendsNobodyToNodesThatTheOperatorIsChanging) {
  post_node("gpu-2", "True");
  record(print_head({edit_behind_pods_of({"gpu-1", "gpu-2"})}));
  const auto next_of_full_budget = [&] {
    rollout("r", "Progressing", "v1-2");
    const Json condition{{"type", "Ready"},
                         {"status", "False"},
                         {"reason", "BudgetExhausted"},
                         {"message", "no slot is free: gpu-1 holds 1 of 1 slot of policy default (maxUnavailable)"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r/status",
          Json{{"status",
                {{"conditions", Json::array({condition})},
                 {"reason", {{"code", "BudgetExhausted"}, {"budgets", {"maxUnavailable"}}}}}}}
              .dump());
    (void)run(Verb::status, "r");
    (void)send(k8s::Method::del, "/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", "", "");
    return out.str();
  };
  test::ChangeWords change;
  change.to = target();
  merge("/api/v1/nodes/gpu-1", Json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  EXPECT_THAT(next_of_full_budget(),
              testing::AllOf(Not(HasSubstr("nodes gpu-1")), Not(HasSubstr("maxUnavailable; the chart"))))
      << "its slot is free when its change ends";
}

}  // namespace
}  // namespace gso::rollout_budgets_test
