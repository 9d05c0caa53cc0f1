// `diff -f` of an edited SharingPolicy: which fields differ, and which stops are new.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/rollout/edited_file.h"
#include "reconcilers/model/project.h"

namespace gso::policy_edit_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SharingPolicy policy_of(const std::string& spec, const std::string& annotations = "{}") {
  const auto read =
      project_sharing_policy(R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"p",
        "annotations":)" + annotations +
                             R"(},"spec":)" + spec + "}");
  EXPECT_TRUE(read.has_value()) << spec;
  return read.value_or(SharingPolicy());
}

std::vector<std::string> changes(const SharingPolicy& before, const SharingPolicy& after) {
  std::vector<std::string> out;
  for (const FieldChange& change : policy_field_changes(before, after))
    out.push_back(change.field + " " + change.before + " -> " + change.after);
  return out;
}

TEST(PolicyEdit, EachFieldThatDiffersIsNamedWithBothValues) {
  const SharingPolicy before = policy_of("{}");
  const SharingPolicy after = policy_of(R"({"nodeSelector":{"matchLabels":{"pool":"a"}},"priority":3,
      "profile":{"inline":{"strategy":"mps","replicas":4}},"mode":"Approve","deletionPolicy":"Revert",
      "revisionHistoryLimit":5,"rollout":{"maxUnavailable":2,"canary":{"soak":"5m"},"workloads":"Evict","cordon":true,
      "maintenanceWindows":[{"cron":"0 22 * * *","duration":"2h"}]}})");
  EXPECT_THAT(changes(before, after),
              ElementsAre("spec.nodeSelector all nodes -> pool=a", "spec.priority 0 -> 3",
                          "spec.profile.inline.strategy unset -> mps", "spec.profile.inline.replicas unset -> 4",
                          "spec.profile.inline.renameByDefault unset -> false",
                          "spec.profile.inline.resource unset -> nvidia.com/gpu", "spec.mode Enforce -> Approve",
                          "spec.deletionPolicy Retain -> Revert", "spec.revisionHistoryLimit unset -> 5",
                          "spec.rollout.maxUnavailable 10% -> 2", "spec.rollout.canary.soak 1m0s -> 5m0s",
                          "spec.rollout.workloads WaitForIdle -> Evict", "spec.rollout.cordon unset -> true",
                          "spec.rollout.maintenanceWindows none -> 0 22 * * * (2h0m0s, UTC)"));
}

TEST(PolicyEdit, ADefaultThatIsWrittenOutIsNoDifference) {
  EXPECT_THAT(
      changes(policy_of("{}"), policy_of(R"({"nodeSelector":{},"priority":0,"mode":"Enforce","rollout":{"paused":false,
                                    "maxUnavailable":"10%","canary":{"nodesPerGroup":1}}})")),
      IsEmpty());
}

TEST(PolicyEdit, EachFieldIsShownByItselfOrWithWhatItIsPartOf) {
  const auto is_shown = [](std::string_view path) {
    if (path.ends_with("[]")) path.remove_suffix(2);
    const auto field = std::ranges::find(policy_fields(), path, &PolicyField::path);
    return field != policy_fields().end() && field->shown != nullptr;
  };
  for (const PolicyField& field : policy_fields()) {
    if (field.read == nullptr) continue;
    std::string_view path = field.path;
    while (!is_shown(path) && path.contains('.')) path = path.substr(0, path.rfind('.'));
    EXPECT_TRUE(is_shown(path)) << field.path;
  }
}

TEST(PolicyEdit, ARetryIsADifference) {
  EXPECT_THAT(changes(policy_of("{}"), policy_of("{}", R"({"gpusharing.dev/retry":"2"})")),
              ElementsAre("the annotation gpusharing.dev/retry unset -> 2"));
}

TEST(PolicyEdit, OnlyStopsThatAreNewCount) {
  PlannerSettings settings;
  const SharingPolicy running = policy_of("{}");
  const SharingPolicy stopped = policy_of(R"({"mode":"Observe","rollout":{"paused":true}})");
  EXPECT_EQ(added_stops(running, stopped, settings), "mode Observe, paused");
  EXPECT_EQ(added_stops(stopped, running, settings), "");
  EXPECT_EQ(added_stops(stopped, stopped, settings), "");
  EXPECT_EQ(added_stops(policy_of(R"({"mode":"Approve"})"), stopped, settings), "mode Observe, paused");
  // The operator's own limit has that mode in effect already.
  settings.rollouts = PolicyMode::observe;
  EXPECT_EQ(added_stops(running, stopped, settings), "paused");
}

}  // namespace
}  // namespace gso::policy_edit_test
