// Who writes which sharing label of a node, and labels that another client changes again and again.
#include "reconcilers/node/node_labels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::node_labels_test {
namespace {

using LabelMode = PlannerSettings::LabelMode;
using std::chrono::hours;
using std::chrono::minutes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const PlannerSettings kSettings;
const WallTime kNoon = *k8s::parse_rfc3339("2026-01-02T12:00:00Z");
const std::string kReplicas(kGpuReplicas), kStrategy(kSharingStrategy);

// The node with the labels that a change leaves on it.
Node after(Node node, const LabelChange& change) {
  for (const auto& [key, value] : change.set) node.meta.labels.set(key, value);
  for (const std::string& key : change.remove) node.meta.labels.erase(key);
  if (change.owned) node.meta.annotations.set(kOwnedAnnotation, print_owned(*change.owned));
  return node;
}

NodeExpectation with_labels(decltype(NodeExpectation::labels) labels) {
  NodeExpectation out;
  out.labels = std::move(labels);
  return out;
}

const LabelRules kRules{kSettings, std::nullopt};

TEST(MpsCapableLabel, IsWrittenByTheLabellerUnlessNfdOwnsIt) {
  struct Case {
    const char* what;
    const char* present;  // The label's value; empty: absent.
    const char* nfd_owns;
    LabelMode mode;
    bool gfd;
    bool written;
  };
  const Case cases[] = {
      {"absent, and nobody else labels the node", "", "", LabelMode::automatic, false, true},
      {"another value", "true", "", LabelMode::automatic, false, true},
      {"the value that is wanted", "false", "", LabelMode::automatic, false, false},
      {"NFD owns it", "true", "cpu-model.family,nvidia.com/mps.capable", LabelMode::automatic, false, false},
      {"NFD owns it, and labels are enforced", "true", "nvidia.com/mps.capable", LabelMode::enforce, false, false},
      {"NFD owns others", "true", "nvidia.com/gpu.replicas", LabelMode::automatic, false, true},
      {"GFD labels the node", "true", "", LabelMode::automatic, true, false},
      {"GFD labels the node, and labels are enforced", "true", "", LabelMode::enforce, true, true},
      {"labels are only verified", "true", "", LabelMode::verify, false, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Node node;
    if (*c.present != '\0') node.meta.labels.set(kMpsCapable, c.present);
    if (*c.nfd_owns != '\0') node.meta.annotations.set(kFeatureLabels, c.nfd_owns);
    PlannerSettings settings;
    settings.label_mode = c.mode;
    const LabelChange change = mps_capable_change(node, false, c.gfd, {settings, std::nullopt});
    EXPECT_EQ(change.set.contains(std::string(kMpsCapable)), c.written);
    EXPECT_EQ(change.owned.has_value(), c.written) << "what stood there before is remembered with the write";
  }
}

TEST(OwnedLabels, AreReadBackAsTheyWereWritten) {
  const OwnedLabels owned{{"nvidia.com/gpu.product", {std::nullopt, "", "", {}}},
                          {"nvidia.com/gpu.replicas", {"1", "", "", {}}},
                          {"c", {"x", "p", "slices", {}}},
                          {"nvidia.com/mps.capable", {"1", "", "2", {*k8s::parse_rfc3339("2026-03-02T08:00:00Z")}}}};
  Node node;
  node.meta.annotations.set(kOwnedAnnotation, print_owned(owned));
  EXPECT_EQ(owned_labels(node), owned);
  EXPECT_FALSE(is_owner_unknown(node));
  EXPECT_EQ(
      print_owned({{"nvidia.com/gpu.product", {}}, {"nvidia.com/gpu.replicas", {"1", "", "4", {kNoon}}}}),
      R"({"labels":{"nvidia.com/gpu.product":null,"nvidia.com/gpu.replicas":{"before":"1","rewrites":["2026-01-02T12:00:00Z"],"value":"4"}},"v":1})");
}

// An upgrade: that release had no version in the annotation.
TEST(OwnedLabels, OfAnEarlierReleaseAreRead) {
  const auto eight = *k8s::parse_rfc3339("2026-03-02T08:00:00Z");
  const std::pair<const char*, OwnedLabels> cases[] = {
      {R"({})", {}},
      {R"({"nvidia.com/gpu.product":null,"nvidia.com/gpu.replicas":"1"})",
       {{"nvidia.com/gpu.product", {std::nullopt, "", "", {}}}, {"nvidia.com/gpu.replicas", {"1", "", "", {}}}}},
      {R"({"nvidia.com/gpu.product":{"before":null,"value":"4"}})",
       {{"nvidia.com/gpu.product", {std::nullopt, "", "4", {}}}}},
      {R"({"nvidia.com/gpu.product":{"before":"x","policy":"p","value":"slices"}})",
       {{"nvidia.com/gpu.product", {"x", "p", "slices", {}}}}},
      {R"({"nvidia.com/gpu.product":{"before":"x","value":"4","rewrites":["2026-03-02T08:00:00Z"]}})",
       {{"nvidia.com/gpu.product", {"x", "", "4", {eight}}}}},
  };
  for (const auto& [text, owned] : cases) {
    Node node;
    node.meta.annotations.set(kOwnedAnnotation, text);
    EXPECT_EQ(owned_labels(node), owned) << text;
    EXPECT_FALSE(is_owner_unknown(node)) << text;
  }
}

// By mistake or malice: only what the operator can have written is its own.
TEST(OwnedLabels, OfOthersAreIgnored) {
  Node node;
  node.meta.labels.set("topology.kubernetes.io/zone", "a");
  node.meta.labels.set("nvidia.com/gpu.present", "true");
  node.meta.labels.set("example.com/x.replicas", "3");
  node.meta.annotations.set(kOwnedAnnotation, R"({"v":1,"labels":{
      "topology.kubernetes.io/zone":{"before":null,"value":"a"},
      "nvidia.com/gpu.present":{"before":null,"value":"true"},
      "example.com/x.replicas":null,
      "nvidia.com/mig-1g.5gb.replicas":{"before":null,"value":"2"}}})");
  EXPECT_FALSE(is_owner_unknown(node));
  EXPECT_EQ(owned_labels(node).size(), 1U);
  const NodeExpectation expectation = with_labels({{kReplicas, "4"}});
  const LabelChange change = label_change_to(node, expectation, false, kRules);
  EXPECT_TRUE(change.remove.empty());
  ASSERT_TRUE(change.owned);
  EXPECT_EQ(change.owned->size(), 1U) << "the others are dropped with the next write";
}

TEST(OwnedLabels, ThatCannotBeReadAreNeitherChangedNorForgotten) {
  const NodeExpectation expectation = with_labels({{kReplicas, "4"}});
  for (const char* text : {"oops", "[]", R"({"labels":{}})", R"({"v":2,"labels":{}})", R"({"v":1})",
                           R"({"v":1,"labels":{"a":1}})", R"({"v":1,"labels":{"a":{"before":"x"}}})",
                           R"({"v":1,"labels":{"a":{"before":1,"policy":"p","value":"x"}}})"}) {
    SCOPED_TRACE(text);
    Node node;
    node.meta.annotations.set(kOwnedAnnotation, text);
    EXPECT_TRUE(is_owner_unknown(node));
    EXPECT_TRUE(owned_labels(node).empty());
    EXPECT_TRUE(label_change_to(node, expectation, false, kRules).empty());
    EXPECT_TRUE(release_label(node, kConfigLabel).empty());
    EXPECT_TRUE(mps_capable_change(node, true, false, kRules).empty());
  }
}

TEST(OwnedLabels, OfAPolicyGoToTheNextOneThatWantsTheSameKeyWithTheValueFromBeforeTheFirst) {
  Node node;
  node.meta.labels.set(kConfigLabel, "k");
  node.meta.annotations.set(
      kOwnedAnnotation,
      R"({"v":1,"labels":{"nvidia.com/device-plugin.config":{"before":"mine","policy":"p","value":"k"}}})");
  node = after(node, hand_over_label(node, kConfigLabel, "r"));
  EXPECT_EQ(node.meta.labels.get(kConfigLabel), "k");
  EXPECT_EQ(label_writer(node, kConfigLabel), "r");
  EXPECT_EQ(owned_labels(node).at(std::string(kConfigLabel)).before, "mine");
  EXPECT_TRUE(hand_over_label(node, kConfigLabel, "r").empty());

  node.meta.annotations.set(kOwnedAnnotation, R"({"v":1,"labels":{}})");
  EXPECT_TRUE(hand_over_label(node, kConfigLabel, "r").empty()) << "a person's label stays a person's";
}

TEST(OwnedLabels, OfAnEarlierProfileGetTheirValueBackAndAreForgotten) {
  const NodeExpectation shared = with_labels({{kReplicas, "4"}, {kStrategy, "mps"}});
  const NodeExpectation whole = with_labels({{kStrategy, "none"}});
  Node node;
  node.meta.labels.set("nvidia.com/gpu.replicas", "1");
  node = after(node, label_change_to(node, shared, false, kRules));
  EXPECT_EQ(node.meta.labels.get("nvidia.com/gpu.replicas"), "4");
  EXPECT_EQ(owned_labels(node).size(), 2U);

  node = after(node, label_change_to(node, whole, false, kRules));
  EXPECT_EQ(node.meta.labels.get("nvidia.com/gpu.replicas"), "1") << "what stood there before";
  EXPECT_FALSE(owned_labels(node).contains("nvidia.com/gpu.replicas"));
  EXPECT_TRUE(label_change_to(node, whole, false, kRules).empty());

  node.meta.labels.set("nvidia.com/gpu.replicas", "2");  // By a person.
  EXPECT_TRUE(label_change_to(node, whole, false, kRules).empty()) << "it is not the operator's any more";
}

TEST(LabelModeOfANode, IsItsAnnotationUnlessTheOperatorWritesNoLabelAtAll) {
  struct Case {
    const char* annotation;  // Null: absent.
    LabelMode setting;
    LabelMode mode;
    bool unknown;
  };
  const Case cases[] = {
      {nullptr, LabelMode::automatic, LabelMode::automatic, false},
      {nullptr, LabelMode::enforce, LabelMode::enforce, false},
      {"verify", LabelMode::enforce, LabelMode::verify, false},
      {"auto", LabelMode::enforce, LabelMode::automatic, false},
      {"enforce", LabelMode::automatic, LabelMode::enforce, false},
      {"enforce", LabelMode::verify, LabelMode::verify, false},
      {"Enforce", LabelMode::enforce, LabelMode::verify, true},
      {"", LabelMode::automatic, LabelMode::verify, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.annotation == nullptr ? "absent" : c.annotation);
    Node node;
    if (c.annotation != nullptr) node.meta.annotations.set(kLabelModeAnnotation, c.annotation);
    PlannerSettings settings;
    settings.label_mode = c.setting;
    EXPECT_EQ(label_mode_of(node, settings), c.mode);
    EXPECT_EQ(!unknown_label_mode(node).empty(), c.unknown);
  }
}

TEST(OwnedLabels, ThatAnotherClientHasChangedStayWithItWhenTheProfileNoLongerHasThem) {
  const NodeExpectation shared = with_labels({{kReplicas, "4"}, {kStrategy, "mps"}});
  Node node = after({}, label_change_to({}, shared, false, kRules));
  node.meta.labels.set(kReplicas, "7");
  node = after(node, label_change_to(node, {}, false, kRules));
  EXPECT_EQ(node.meta.labels.get(kReplicas), "7");
  EXPECT_EQ(node.meta.labels.get(kStrategy), std::nullopt);
  EXPECT_TRUE(owned_labels(node).empty());
}

TEST(ContestedLabel, IsSetThreeTimesADayAndTheOthersAreSetAsBefore) {
  NodeExpectation expectation = with_labels({{kReplicas, "4"}});
  WallTime now = kNoon;
  Node node;
  const auto look = [&] {
    LabelChange change = label_change_to(node, expectation, false, {kSettings, now});
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
    const NodeExpectation expectation = with_labels({{kReplicas, std::to_string(2 + i)}});
    const LabelChange change = label_change_to(node, expectation, false, {kSettings, kNoon});
    EXPECT_TRUE(change.set.contains(kReplicas)) << i;
    node = after(node, change);
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
  strip();
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4") << "once they are set again";
  EXPECT_EQ(writes, 1);
  for (int i = 1; i < 30; ++i) strip();
  EXPECT_EQ(writes, 2) << "beside the first one, when the node came";
  EXPECT_THAT(events, ElementsAre("LabelContested SharingPolicy"));
  EXPECT_TRUE(reasons().contains("LabelContested"));
  fleet->advance(hours(24));
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4") << "it tries again";
  EXPECT_FALSE(reasons().contains("LabelContested"));
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
  const Plan plan = fleet->plan();
  const auto left = std::ranges::find(plan.findings, "LabelsLeftBehind", [](const Finding& f) { return f.why.code; });
  ASSERT_NE(left, plan.findings.end());
  EXPECT_THAT(left->why.message,
              AllOf(HasSubstr("`kubectl delete nodefeatures.nfd.k8s-sigs.io --all-namespaces --field-selector "
                              "metadata.name=nvidia-features-for-NODE`"),
                    HasSubstr("nvidia.com/gpu.replicas from annotation nfd.node.kubernetes.io/feature-labels "
                              "(`kubectl edit node NODE`)")));
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "8");
  fleet->annotate("n01", kFeatureLabels, "nvidia.com/gpu.sharing-strategy");
  EXPECT_TRUE(fleet->settle());
  EXPECT_EQ(fleet->label_of("n01", kReplicas), "4") << "nobody owns it any more";
}

// A node whose labels many clients write, and who wrote the present value of each.
class ManyOwners {
 public:
  explicit ManyOwners(unsigned seed) : random_(seed) {}

  void play(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      someone_acts();
      look();
    }
  }

 private:
  const std::vector<std::string> kKeys{kReplicas, kStrategy, std::string(kGpuProduct), std::string(kMpsCapable),
                                       std::string(kConfigLabel)};

  unsigned any(unsigned below) { return static_cast<unsigned>(random_() % below); }
  const std::string& any_key() { return kKeys[any(static_cast<unsigned>(kKeys.size()))]; }

  void set_by_other(const std::string& key) {
    if (any(4) == 0) {
      node_.meta.labels.erase(key);
    } else {
      node_.meta.labels.set(key, fmt::format("other-{}", any(3)));
    }
    of_operator_.erase(key);
  }

  void list_of_nfd() {
    std::string list = "cpu-model.family";
    for (const std::string& key : nfd_) list += "," + key;
    node_.meta.annotations.set(kFeatureLabels, list);
  }

  void someone_acts() {
    now_ += minutes(any(400));
    const std::string& key = any_key();
    switch (any(7)) {
      case 0:  // NFD takes it over, with its own value.
        nfd_.insert(key);
        set_by_other(key);
        return list_of_nfd();
      case 1:
        nfd_.erase(key);
        return list_of_nfd();
      case 2:
        gfd_ = any(2) == 0;
        return;
      case 3:
        mode_ = static_cast<LabelMode>(any(3));
        node_.meta.annotations.set(kLabelModeAnnotation, mode_ == LabelMode::automatic ? "auto"
                                                         : mode_ == LabelMode::enforce ? "enforce"
                                                                                       : "verify");
        return;
      case 4:
        expectation_.labels.clear();
        for (const std::string& label : kKeys) {
          if (label != kConfigLabel && any(4) != 0) expectation_.labels[label] = fmt::format("v{}", any(3));
        }
        return;
      default:
        return set_by_other(key);
    }
  }

  void look() {
    const LabelChange change = label_change_to(node_, expectation_, gfd_, {kSettings, now_});
    const bool writes = mode_ == LabelMode::enforce || (mode_ == LabelMode::automatic && !gfd_);
    if (!writes) {
      EXPECT_TRUE(change.set.empty() && change.remove.empty());
      if (mode_ == LabelMode::verify) {
        EXPECT_FALSE(change.owned) << "not a single write";
      }
    }
    std::set<std::string> written = change.remove;
    for (const auto& [key, value] : change.set) written.insert(key);
    for (const std::string& key : written) {
      EXPECT_FALSE(nfd_.contains(key)) << key;
      EXPECT_NE(key, kConfigLabel) << "it belongs to people and to policies";
      const bool wanted = expectation_.labels.contains(key);
      EXPECT_TRUE(wanted || of_operator_.contains(key)) << key << " is removed, and another client wrote it";
    }
    node_ = after(node_, change);
    for (const auto& [key, value] : change.set) of_operator_.insert(key);
    EXPECT_TRUE(label_change_to(node_, expectation_, gfd_, {kSettings, now_}).empty()) << "one write is enough";
  }

  std::mt19937 random_;
  WallTime now_ = kNoon;
  Node node_;
  NodeExpectation expectation_;
  bool gfd_ = false;
  LabelMode mode_ = LabelMode::automatic;
  std::set<std::string> nfd_, of_operator_;
};

TEST(SharingLabels, ThatSomeoneElseOwnsAreNeverWrittenWhoeverOwnsThem) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    ManyOwners(seed).play(200);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gso::test::node_labels_test
