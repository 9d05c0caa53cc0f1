// What a SharingRollout's status says of its attempt, also a status that a person or an older release wrote.
#include "reconcilers/rollout/rollout_view.h"

#include <gtest/gtest.h>

#include "reconcilers/fleet/fleet_index.h"

namespace gso::attempts_test {
namespace {

WallTime at(std::string_view time) {
  return *k8s::parse_rfc3339(time);
}

struct Case {
  const char* name;
  const char* phase;
  const char* status;
  bool approved;
  bool aborted;
  bool ended_earlier;  // Its switches do not apply to the template of 12:00.
};

// The object was created at 10:00, and nodes wait for a template of 12:00 (OnDelete).
class StatusOfAnAttempt : public testing::TestWithParam<Case> {
 protected:
  StatusOfAnAttempt() {
    PluginInstallation installation;
    Operand plugin;
    plugin.component = Component::plugin;
    plugin.on_delete = true;
    plugin.newest_hash = "new";
    plugin.newest_since = at("2026-03-02T12:00:00Z");
    installation.operands.push_back(plugin);
    index.impl().discovery.installations.push_back(installation);
    nodes.tally.new_template = 1;
    nodes.tally.add(Phase::pending, 1);
    nodes.groups["A100"].tally.settled = 1;
    rollout.meta.name = "default-any-1";
    rollout.meta.creation_timestamp = std::chrono::floor<std::chrono::seconds>(at("2026-03-02T10:00:00Z"));
    rollout.phase = GetParam().phase;
    rollout.status_json = GetParam().status;
    rollout.approved = GetParam().approved;
    rollout.aborted = GetParam().aborted;
  }

  FleetIndex index;
  ProfileRollout nodes;
  SharingRollout rollout;
};

TEST_P(StatusOfAnAttempt, SaysWhetherItsSwitchesApplyToALaterTemplate) {
  EXPECT_EQ(ended_earlier(index.impl(), nodes, rollout), GetParam().ended_earlier);
}

// In doubt an approval does not apply, and an abort does.
constexpr const char* kAbortedAtEleven =
    R"({"conditions":[{"type":"Aborted","status":"True","lastTransitionTime":"2026-03-02T11:00:00Z"}]})";
INSTANTIATE_TEST_SUITE_P(
    Status, StatusOfAnAttempt,
    testing::Values(
        Case{"Absent", "", "", true, false, true},  //
        Case{"Completed", "Completed", R"({"completedAt":"2026-03-02T11:00:00Z"})", true, false, true},
        Case{"CompletedAfterTheTemplate", "Completed", R"({"completedAt":"2026-03-02T13:00:00Z"})", true, false, false},
        Case{"CompletedWithoutATime", "Completed", R"({})", true, false, true},
        Case{"CompletedAtATimeThatIsNone", "Completed", R"({"completedAt":"yesterday"})", true, false, true},
        Case{"CompletedAtANumber", "Completed", R"({"completedAt":7})", true, false, true},
        Case{"NotJson", "Completed", "oops", true, false, true},
        Case{"Progressing", "Progressing", R"({"completedAt":"2026-03-02T11:00:00Z"})", true, false, false},
        Case{"Aborted", "Failed", kAbortedAtEleven, false, true, true},
        Case{"AbortedWithoutATime", "Failed", R"({"conditions":[{"type":"Aborted","status":"True"}]})", false, true,
             false},
        Case{"AbortedWithoutItsCondition", "Failed", R"({"conditions":[]})", false, true, false}),
    [](const auto& instance) { return instance.param.name; });

TEST(RecordedTemplates, AreOthersOnceTheOperatorMustReplaceAPodForANewOne) {
  PluginInstallation installation;
  for (const char* name : {"plugin", "gfd"}) {
    Operand& operand = installation.operands.emplace_back();
    operand.key = {"gpu-operator", name};
    operand.newest_hash = "h1";
  }
  const auto switch_to = [&](bool on_delete) {
    for (Operand& operand : installation.operands) operand.on_delete = on_delete;
  };
  for (const bool then : {false, true}) {
    switch_to(then);
    const std::string text = templates_text(installation);
    EXPECT_FALSE(text.empty());
    for (const bool now : {false, true}) {
      switch_to(now);
      EXPECT_FALSE(has_other_templates(installation, text)) << "whatever the strategy: " << then << now;
    }
  }
  switch_to(true);
  for (const char* unknown : {"", "no templates", "gpu-operator/gfd=h1"})
    EXPECT_FALSE(has_other_templates(installation, unknown)) << unknown;
  EXPECT_TRUE(has_other_templates(installation, "gpu-operator/gfd=h0,gpu-operator/plugin=h1"));
  const std::string former = "gpu-operator/gfd=h1,gpu-operator/plugin=h0";
  EXPECT_TRUE(has_other_templates(installation, former));
  installation.operands.front().newest_hash = "";
  EXPECT_FALSE(has_other_templates(installation, former)) << "what is there now is unknown";
  installation.operands.front().newest_hash = "h0";
  EXPECT_FALSE(has_other_templates(installation, former)) << "the image was taken back";
  installation.operands.front().newest_hash = "h2";
  EXPECT_TRUE(has_other_templates(installation, former));
  switch_to(false);
  EXPECT_FALSE(has_other_templates(installation, former)) << "RollingUpdate replaces the pods";
}

TEST(Left, IsSaidByTheConditionAndNotByItsNameInAMessage) {
  SharingRollout rollout;
  const auto says = [&](const char* status) {
    rollout.status_json = status;
    return says_left(rollout);
  };
  for (const char* other :
       {"", R"({"conditions":[{"type":"Ready","status":"False","message":"Current: nodes wait"}]})",
        R"({"conditions":[{"type":"Ready","status":"False","reason":"Current"}]})", R"({"Current":"False"})"})
    EXPECT_FALSE(says(other)) << other;
  EXPECT_TRUE(says(R"({"conditions":[{"type":"Current","status":"False"}]})"));
}

}  // namespace
}  // namespace gso::attempts_test
