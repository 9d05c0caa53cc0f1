// Who writes nvidia.com/mps.capable, case by case.
#include "reconcilers/node/node_labels.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "reconcilers/model/labels.h"

namespace gso::test {
namespace {

using LabelMode = PlannerSettings::LabelMode;

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
    const LabelChange change = mps_capable_change(node, false, c.gfd, settings);
    EXPECT_EQ(change.set.contains(std::string(kMpsCapable)), c.written);
    EXPECT_EQ(change.owned.has_value(), c.written) << "what stood there before is remembered with the write";
  }
}

// The labels that a change leaves on its node.
Node after(Node node, const LabelChange& change) {
  for (const auto& [key, value] : change.set) node.meta.labels.set(key, value);
  for (const std::string& key : change.remove) node.meta.labels.erase(key);
  if (change.owned) node.meta.annotations.set(kOwnedAnnotation, print_owned(*change.owned));
  return node;
}

TEST(OwnedLabels, OfAnEarlierProfileGetTheirValueBackAndAreForgotten) {
  NodeExpectation shared;
  shared.labels = {{"nvidia.com/gpu.replicas", "4"}, {"nvidia.com/gpu.sharing-strategy", "mps"}};
  NodeExpectation whole;
  whole.labels = {{"nvidia.com/gpu.sharing-strategy", "none"}};
  Node node;
  node.meta.labels.set("nvidia.com/gpu.replicas", "1");
  node = after(node, label_change_to(node, shared, false, {}));
  EXPECT_EQ(node.meta.labels.get("nvidia.com/gpu.replicas"), "4");
  EXPECT_EQ(owned_labels(node).size(), 2U);

  node = after(node, label_change_to(node, whole, false, {}));
  EXPECT_EQ(node.meta.labels.get("nvidia.com/gpu.replicas"), "1") << "what stood there before";
  EXPECT_FALSE(owned_labels(node).contains("nvidia.com/gpu.replicas"));
  EXPECT_TRUE(label_change_to(node, whole, false, {}).empty());

  node.meta.labels.set("nvidia.com/gpu.replicas", "2");  // By a person.
  EXPECT_TRUE(label_change_to(node, whole, false, {}).empty()) << "it is not the operator's any more";
}

}  // namespace
}  // namespace gso::test
