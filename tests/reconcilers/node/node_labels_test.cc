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

}  // namespace
}  // namespace gso::test
