// A change of the chart's values is one SharingRollout: it shows how far the daemons are, and its switches hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/standalone/standalone_fleet.h"

namespace gso::test::template_rollouts_test {
namespace {

using testing::HasSubstr;

class TemplateRollouts : public StandaloneMps {
 protected:
  void install(int nodes) {
    crds = true;
    begin(nodes);
    ASSERT_NE(fleet->world.policies.find("default"), nullptr);
  }
  // A new template, under clients of these nodes.
  void roll(int nodes, const std::vector<std::string>& busy, Duration span) {
    install(nodes);
    use(busy);
    new_template("new");
    run(span);
  }
  // The daemon of the first node that gets the template "new" does not get Ready.
  void fail_on_the_canary(int nodes) {
    install(nodes);
    default_policy("{rollout: {verifyTimeout: 5m}}");
    broken = true;
    new_template("new");
    run(10min);
  }
  // The SharingRollout of that template; null: there is none.
  [[nodiscard]] const SharingRollout* rollout_to(const std::string& hash) const {
    for (const auto& [key, rollout] : fleet->world.rollouts.all())
      if (rollout->to_revision == hash) return rollout.get();
    return nullptr;
  }
  [[nodiscard]] std::string phase_of(const std::string& hash) const {
    const SharingRollout* rollout = rollout_to(hash);
    return rollout == nullptr ? "(none)" : rollout->phase;
  }
  [[nodiscard]] nlohmann::json status_of(const std::string& hash) const {
    const SharingRollout* rollout = rollout_to(hash);
    return rollout == nullptr ? nlohmann::json() : nlohmann::json::parse(rollout->status_json);
  }
  void turn(const std::string& hash, std::string_view field, bool value) {
    ASSERT_NE(rollout_to(hash), nullptr);
    fleet->rollout_switch(rollout_to(hash)->meta.name, field, value);
  }
  [[nodiscard]] std::string marked_node() const {
    for (const auto& [key, node] : fleet->world.nodes.all())
      if (mps_daemon_change_on(*node).change) return key.name;
    return {};
  }
  // `rollout start`.
  void retry(const std::string& value) {
    SharingPolicy policy = *fleet->world.policies.find("default");
    policy.meta.annotations.set(kRetryAnnotation, value);
    fleet->world.policies.apply(policy);
  }
  void default_policy(const std::string& spec) {
    fleet->policy("apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\nspec: " + spec);
  }
};

TEST_F(TemplateRollouts, ShowHowFarTheyAre) {
  roll(3, {"n01"}, 200s);
  ASSERT_EQ(fleet->world.rollouts.size(), 1U);
  const SharingRollout& rollout = *rollout_to("new");
  EXPECT_EQ(rollout.policy, "default");
  EXPECT_EQ(rollout.config_map, "DaemonSet gpu-sharing-operator/gpu-sharing-operator-mps");
  EXPECT_EQ(rollout.key, "");
  EXPECT_TRUE(rollout.meta.name.starts_with("default-gpu-sharing-operator-mps-")) << rollout.meta.name;
  EXPECT_EQ(rollout.phase, "Progressing");
  const auto counts = status_of("new")["counts"];
  EXPECT_EQ(counts["total"], 3);
  EXPECT_EQ(counts["updated"], 2);
  EXPECT_EQ(counts["inProgress"], 1);
  const auto nodes = status_of("new")["nodes"];
  ASSERT_EQ(nodes.size(), 1U) << nodes;
  EXPECT_EQ(nodes[0]["name"], "n01");
  EXPECT_EQ(nodes[0]["reason"], kWaitingForWorkloads);
  fleet->release("n01");
  run(60s);
  EXPECT_EQ(phase_of("new"), "Completed");
  EXPECT_EQ(status_of("new")["counts"]["updated"], 3);
  EXPECT_FALSE(status_of("new").contains("nodes"));
  EXPECT_TRUE(fleet->plan().actions.empty());
}

TEST_F(TemplateRollouts, AreRecordedBeforeTheFirstNodeIsTouched) {
  install(2);
  new_template("new");
  std::vector<std::string> kinds;
  fleet->advance(30s);
  for (int i = 0; i < 60 && kinds.empty(); ++i) {
    tick();
    for (const PlannedAction& planned : last.actions) {
      if (std::holds_alternative<CreateObject>(planned.action)) kinds.emplace_back("create");
      if (std::holds_alternative<PatchNode>(planned.action)) kinds.emplace_back("patch");
    }
  }
  ASSERT_GE(kinds.size(), 1U);
  EXPECT_EQ(kinds.front(), "create");
}

TEST_F(TemplateRollouts, AreNotMadeForPodsThatAreCreatedAnyway) {
  install(2);
  run(120s);
  EXPECT_EQ(fleet->world.rollouts.size(), 0U);
  replace_pod("n01");
  run(60s);
  EXPECT_EQ(fleet->world.rollouts.size(), 0U);
}

TEST_F(TemplateRollouts, ArePausedAndResumed) {
  roll(3, {"n01"}, 60s);
  turn("new", "paused", true);
  const int before = on("new");
  run(200s);
  EXPECT_LT(before, 3);
  EXPECT_EQ(on("new"), before);
  EXPECT_EQ(in_change(), 0);  // The operator uncordons nodes that only wait.
  EXPECT_EQ(phase_of("new"), "Paused");
  turn("new", "paused", false);
  fleet->release("n01");
  run(200s);
  EXPECT_EQ(phase_of("new"), "Completed");
}

TEST_F(TemplateRollouts, AreAbortedAlsoAfterTheirObjectIsDeleted) {
  roll(3, {"n01", "n02", "n03"}, 60s);
  turn("new", "aborted", true);
  run(30s);
  EXPECT_EQ(phase_of("new"), "Failed");
  for (const char* node : {"n01", "n02", "n03"}) fleet->release(node);
  run(60s);
  EXPECT_EQ(on("new"), 0);
  fleet->delete_rollouts();
  run(200s);
  EXPECT_EQ(on("new"), 0);
  ASSERT_NE(rollout_to("new"), nullptr);
  EXPECT_TRUE(rollout_to("new")->aborted);
  new_template("newer");  // The abort was for the other template.
  run(200s);
  EXPECT_EQ(on("newer"), 3);
  EXPECT_EQ(phase_of("newer"), "Completed");
}

TEST_F(TemplateRollouts, AreApproved) {
  install(2);
  default_policy("{mode: Approve}");
  new_template("new");
  run(60s);
  EXPECT_EQ(on("new"), 0);
  EXPECT_EQ(phase_of("new"), "AwaitingApproval");
  EXPECT_THAT(finding(kStandaloneMpsWaits), HasSubstr("rollout approve " + rollout_to("new")->meta.name));
  turn("new", "approved", true);
  run(200s);
  EXPECT_EQ(on("new"), 2);
  EXPECT_EQ(phase_of("new"), "Completed");
}

TEST_F(TemplateRollouts, StopWhenTheCanaryFails) {
  fail_on_the_canary(3);
  EXPECT_EQ(phase_of("new"), "Paused");
  const auto status = status_of("new");
  EXPECT_EQ(status["counts"]["failed"], 1);
  EXPECT_EQ(status["counts"]["pending"], 2);
  EXPECT_EQ(status["conditions"][0]["reason"], kMaxFailures);
  ASSERT_EQ(status["nodes"].size(), 1U);
  EXPECT_EQ(status["nodes"][0]["state"], "Failed");
  EXPECT_EQ(status["conditions"][0]["message"],
            "1 node (" + status["nodes"][0]["name"].get<std::string>() +
                ") failed. Correct the chart's standaloneMps values (helm upgrade), or the node");
  EXPECT_EQ(on("new"), 1);
  EXPECT_EQ(in_change(), 1);
  EXPECT_THAT(finding(kStandaloneMpsFailed),
              HasSubstr("the standalone MPS daemon is not Ready 5m0s after its replacement"));
  fleet->restart_operator();
  run(30s);
  EXPECT_EQ(status_of("new")["counts"]["failed"], 1);
  EXPECT_EQ(phase_of("new"), "Paused");
  broken = false;
  new_template("newer");
  run(10min);
  EXPECT_EQ(phase_of("new"), "Superseded");
  EXPECT_EQ(phase_of("newer"), "Completed");
  EXPECT_EQ(on("newer"), 3);
  EXPECT_EQ(in_change(), 0);
}

TEST_F(TemplateRollouts, AreTriedAgainWhenAPersonAsks) {
  fail_on_the_canary(3);
  ASSERT_EQ(status_of("new")["counts"]["failed"], 1);
  broken = false;
  run(10min);
  EXPECT_EQ(status_of("new")["counts"]["failed"], 1) << "its pod is as it was created";
  retry("1");
  run(10min);
  EXPECT_EQ(phase_of("new"), "Completed");
}

TEST_F(TemplateRollouts, FailAgainIfTheCauseRemains) {
  fail_on_the_canary(2);
  retry("1");
  run(2min);
  EXPECT_EQ(status_of("new")["counts"]["failed"], 0);
  run(10min);
  EXPECT_EQ(status_of("new")["counts"]["failed"], 1);
  const std::string failed = marked_node();
  const auto before = pod_on(failed)->meta.uid;
  run(10min);
  EXPECT_EQ(pod_on(failed)->meta.uid, before) << "one attempt for each request";
}

TEST_F(TemplateRollouts, ThatWereDeferredBeginAtOnceWhenAPersonAsks) {
  install(1);
  default_policy("{rollout: {idleTimeout: 5h}}");
  use({"n01"});
  new_template("new");
  run(60s);
  ASSERT_EQ(in_change(), 1);
  fleet->cordon("n01", false);
  run(30s);
  ASSERT_EQ(in_change(), 0);
  fleet->release("n01");
  run(10min);
  ASSERT_EQ(on("new"), 0);
  retry("1");
  run(2min);
  EXPECT_EQ(on("new"), 1);
}

TEST_F(TemplateRollouts, BeginAnewWhenATemplateReturns) {
  roll(2, {}, 100s);
  ASSERT_EQ(phase_of("new"), "Completed");
  turn("new", "approved", true);  // Of that attempt only.
  const std::string first(rollout_to("new")->meta.uid);
  new_template("newer");
  run(100s);
  ASSERT_EQ(phase_of("newer"), "Completed");
  default_policy("{mode: Approve}");
  new_template("new");
  run(100s);
  EXPECT_EQ(on("new"), 0);
  EXPECT_NE(rollout_to("new")->meta.uid, first);
  EXPECT_EQ(phase_of("new"), "AwaitingApproval");
  turn("new", "approved", true);
  run(100s);
  EXPECT_EQ(on("new"), 2);
  EXPECT_EQ(phase_of("new"), "Completed");
}

TEST_F(TemplateRollouts, EndWithTheirDaemonSet) {
  roll(1, {"n01"}, 60s);
  ASSERT_EQ(phase_of("new"), "Progressing");
  fleet->world.daemonsets.erase(kDaemons);
  end_pod("n01");
  run(60s);
  EXPECT_EQ(phase_of("new"), "Superseded");
  EXPECT_EQ(mark("n01"), "");
  EXPECT_FALSE(fleet->node("n01").unschedulable);
}

}  // namespace
}  // namespace gso::test::template_rollouts_test
