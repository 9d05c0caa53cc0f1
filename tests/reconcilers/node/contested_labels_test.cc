// Sharing labels that another client changes again and again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/node/labelled_node.h"

namespace gso::test::contested_labels_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ContestedLabel, IsSetThreeTimesADayAndTheOthersAreSetAsBefore) {
  NodeExpectation expectation;
  expectation.labels = {{kReplicas, "4"}};
  WallTime now = kNoon;
  Node node;
  const auto look = [&] {
    const LabelChange change = label_change_to(node, expectation, false, {kSettings, now});
    node = after(node, change);
    return change;
  };
  EXPECT_TRUE(look().set.contains(kReplicas));
  for (int i = 0; i < 3; ++i) {
    now += hours(2);  // 14:00, 16:00 and 18:00.
    node.meta.labels.set(kReplicas, "7");
    EXPECT_TRUE(look().set.contains(kReplicas)) << i;
    EXPECT_TRUE(look().empty()) << "nobody has changed it";
  }
  node.meta.labels.erase(kReplicas);
  expectation.labels[kStrategy] = "mps";
  const LabelChange change = look();
  EXPECT_FALSE(change.set.contains(kReplicas)) << "removing it is changing it";
  EXPECT_TRUE(change.set.contains(kStrategy));
  EXPECT_EQ(change.contested, (std::map<std::string, WallTime>{{kReplicas, kNoon + hours(26)}}));
  now = kNoon + hours(26) - minutes(1);
  EXPECT_TRUE(look().empty());
  now = kNoon + hours(26);
  EXPECT_TRUE(look().set.contains(kReplicas));
}

TEST(ContestedLabel, IsNoneThatTheOperatorItselfChangesWithTheProfile) {
  Node node;
  for (int i = 0; i < 20; ++i) {
    NodeExpectation expectation;
    expectation.labels = {{kReplicas, std::to_string(2 + i)}};
    const LabelChange change = label_change_to(node, expectation, false, {kSettings, kNoon});
    EXPECT_TRUE(change.set.contains(kReplicas)) << i;
    node = after(node, change);
  }
}

TEST(SharingLabels, AreSetAtMostThreeTimesADayAgainstAnotherClient) {
  std::mt19937 random(7);
  NodeExpectation expectation;
  expectation.labels = {{kReplicas, "4"}, {kStrategy, "mps"}};
  Node node;
  std::map<std::string, std::vector<WallTime>> sets;
  WallTime now = kNoon;
  for (int i = 0; i < 20'000; ++i) {
    now += std::chrono::seconds(random() % 3000);
    const std::string& key = random() % 2 == 0 ? kReplicas : kStrategy;
    if (random() % 3 == 0)
      node.meta.labels.erase(key);
    else
      node.meta.labels.set(key, random() % 2 == 0 ? "7" : "none");
    const LabelChange change = label_change_to(node, expectation, false, {kSettings, now});
    for (const auto& [label, value] : change.set) sets[label].push_back(now);
    node = after(node, change);
  }
  for (const auto& [label, times] : sets) {
    EXPECT_GT(times.size(), 100U) << "it tries again each day";
    // The first one is no rewrite.
    for (std::size_t i = 1; i + 3 < times.size(); ++i)
      EXPECT_GE(times[i + 3] - times[i], hours(24) - std::chrono::seconds(1)) << label << " " << i;
  }
}

class LabelsWithoutGfd : public testing::Test {
 protected:
  LabelsWithoutGfd() {
    FleetSpec spec;
    spec.profiles = {{"any", "ts-4"}};
    spec.nodes = alike_nodes(1);
    spec.nodes[0].gfd = false;
    fleet = std::make_unique<FleetModel>(spec);
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->label_of("n01", kReplicas), "4");
    fleet->on_plan = [this](const Plan& plan) {
      for (const PlannedAction& planned : plan.actions) {
        const auto* patch = std::get_if<PatchNode>(&planned.action);
        const auto* event = std::get_if<RecordEvent>(&planned.action);
        writes += patch != nullptr ? 1 : 0;
        if (event != nullptr) events.push_back(event->why.code + " " + event->regarding.kind);
      }
    };
  }

  std::set<std::string> reasons() {
    std::set<std::string> out;
    for (const Finding& finding : fleet->plan().findings) out.insert(finding.why.code);
    return out;
  }

  std::unique_ptr<FleetModel> fleet;
  int writes = 0;
  std::vector<std::string> events;
};

TEST_F(LabelsWithoutGfd, ThatAnotherClientKeepsChangingAreOneConditionAndOneEvent) {
  for (int i = 0; i < 30; ++i) {
    fleet->label("n01", kReplicas, "7");
    fleet->tick();
    fleet->tick();
  }
  EXPECT_EQ(writes, 3);
  EXPECT_THAT(events, ElementsAre("LabelContested SharingPolicy"));
  EXPECT_TRUE(reasons().contains("LabelContested"));
  EXPECT_THAT(fleet->policy_status("default"), AllOf(HasSubstr(R"("type":"LabelsContested")"),
                                                     HasSubstr("label nvidia.com/gpu.replicas, and the operator has")));
  fleet->restart_operator();
  for (int i = 0; i < 20; ++i) fleet->tick();
  EXPECT_EQ(writes, 3) << "what the operator has seen is on the node";
  fleet->advance(hours(24));
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4");
  EXPECT_FALSE(reasons().contains("LabelContested"));
  EXPECT_THAT(fleet->policy_status("default"), HasSubstr("NotContested"));
}

TEST_F(LabelsWithoutGfd, ThatAnotherClientTakesAwayWithTheAnnotationAreContestedToo) {
  const auto strip = [&] {
    fleet->label("n01", kReplicas, std::nullopt);
    fleet->annotate("n01", kOwnedAnnotation, std::nullopt);
    fleet->tick();
    fleet->tick();
  };
  for (int i = 0; i < 30; ++i) strip();
  EXPECT_EQ(writes, 2) << "beside the first one, when the node came";
  EXPECT_THAT(events, ElementsAre("LabelContested SharingPolicy"));
  EXPECT_TRUE(reasons().contains("LabelContested"));
  fleet->advance(hours(24));
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4") << "it tries again";
  EXPECT_FALSE(reasons().contains("LabelContested"));
}

TEST_F(LabelsWithoutGfd, ThatAreTakenAwayOnceAreSetAgain) {
  fleet->label("n01", kReplicas, std::nullopt);
  fleet->annotate("n01", kOwnedAnnotation, std::nullopt);
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4");
  EXPECT_EQ(writes, 1);
}

TEST_F(LabelsWithoutGfd, AreNotWrittenOnANodeThatIsOnlyVerified) {
  fleet->annotate("n01", kLabelModeAnnotation, "verify");
  fleet->label("n01", kReplicas, "7");
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(writes, 0);
  EXPECT_TRUE(reasons().contains("LabelsLeftBehind")) << "the label does not fit what the node serves";
  fleet->annotate("n01", kLabelModeAnnotation, "sometimes");
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(writes, 0);
  EXPECT_TRUE(reasons().contains("LabelModeUnknown"));
  fleet->annotate("n01", kLabelModeAnnotation, std::nullopt);
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4");
}

TEST_F(LabelsWithoutGfd, ThatNfdStillListsAndThatDoNotFitWhatIsServedAreNamed) {
  fleet->annotate("n01", kFeatureLabels, "nvidia.com/gpu.replicas,nvidia.com/gpu.sharing-strategy");
  EXPECT_TRUE(fleet->settle());
  EXPECT_FALSE(reasons().contains("LabelsLeftBehind")) << "they fit";
  fleet->label("n01", kReplicas, "8");
  EXPECT_TRUE(fleet->settle());
  EXPECT_TRUE(reasons().contains("LabelsLeftBehind"));
  EXPECT_THAT(
      fleet->plan().findings,
      testing::Contains(testing::Field(
          &Finding::why,
          testing::Field(&Reason::message,
                         AllOf(HasSubstr("`kubectl delete nodefeatures.nfd.k8s-sigs.io --all-namespaces "
                                         "--field-selector metadata.name=nvidia-features-for-NODE`"),
                               HasSubstr("nvidia.com/gpu.replicas from annotation "
                                         "nfd.node.kubernetes.io/feature-labels (`kubectl edit node NODE`)"))))));
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "8");
  fleet->annotate("n01", kFeatureLabels, "nvidia.com/gpu.sharing-strategy");
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4") << "nobody owns it any more";
}

}  // namespace
}  // namespace gso::test::contested_labels_test
