// What `cleanup` does with annotations of the operator that cannot be read: it keeps them, and says what else might be
// the operator's on the node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/status/status.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::cleanup_unreadable_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

FleetModel one_node(bool cordoned) {
  FleetSpec out;
  out.profiles = {{"any", "ts-2"}};
  out.nodes = alike_nodes(1);
  out.nodes[0].cordoned = cordoned;
  return FleetModel(std::move(out));
}

Cleanup leave(FleetModel& fleet) {
  fleet.index.note_everything_changed();
  fleet.index.refresh(fleet.world, fleet.settings);
  Cleanup out = plan_cleanup(fleet.world, fleet.index, {}, {}, fleet.now);
  for (const PlannedAction& action : out.actions) fleet.apply(action);
  return out;
}

bool has_annotation(const FleetModel& fleet, std::string_view annotation) {
  return fleet.world.nodes.find("n01")->meta.annotations.contains(annotation);
}

// As gpusharing.dev/change does: the cordon might be the operator's.
TEST(CleanupUnreadable, AChangeOfADaemonStaysWithItsCordonAndIsNamed) {
  for (const char* text : {"garbage", R"({"v":9,"cordoned":true})"}) {
    FleetModel fleet = one_node(true);
    fleet.annotate("n01", kMpsDaemonChangeAnnotation, text);
    const Cleanup done = leave(fleet);
    EXPECT_TRUE(has_annotation(fleet, kMpsDaemonChangeAnnotation)) << text;
    EXPECT_THAT(done.kept, Contains(AllOf(HasSubstr("n01"), HasSubstr("cordon")))) << text;
  }
}

TEST(CleanupUnreadable, TheMemoryOfPartitioningStaysWithTheProfileLabelAndIsNamed) {
  FleetModel fleet = one_node(false);
  fleet.label("n01", std::string(kConfigLabel), "gso-n01-0123456789-0123456789ab");
  fleet.annotate("n01", kPartitioningAnnotation, "garbage");
  const Cleanup done = leave(fleet);
  EXPECT_TRUE(has_annotation(fleet, kPartitioningAnnotation));
  EXPECT_THAT(done.kept, Contains(AllOf(HasSubstr("n01"), HasSubstr(std::string(kPartitioningAnnotation)))));
}

// The operator writes no such label: whoever wrote that text is mistaken.
TEST(CleanupUnreadable, ALabelThatTheOperatorNeverWritesStays) {
  FleetModel fleet = one_node(false);
  fleet.label("n01", "topology.kubernetes.io/zone", "a");
  fleet.annotate("n01", kOwnedAnnotation,
                 R"({"v":1,"labels":{"topology.kubernetes.io/zone":{"before":null,"value":"a"}}})");
  (void)leave(fleet);
  EXPECT_TRUE(fleet.world.nodes.find("n01")->meta.labels.contains("topology.kubernetes.io/zone"));
}

}  // namespace
}  // namespace gso::test::cleanup_unreadable_test
