// Nodes whose pods somebody else restarted loaded their profile outside a rollout: each is recorded, and how many
// Events say so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/rollout/rollout_fleet.h"

namespace gso::test::loaded_elsewhere_test {
namespace {

using testing::Contains;
using testing::Each;
using testing::StartsWith;

// Under a pause the text is edited, and somebody else restarts the pods. The different Events LoadedUngated, as "kind
// name: note". Each node is recorded once.
std::set<std::string> events_of(int nodes, const std::function<void(FleetModel&)>& restart) {
  FleetModel fleet(spec_of(nodes, "ts-4", "a"));
  EXPECT_TRUE(fleet.settle());
  fleet.policy(rollout_of("paused: true"));
  EXPECT_TRUE(fleet.settle());
  fleet.advance(std::chrono::seconds(5));
  fleet.edit("any", "ts-8");
  fleet.advance(std::chrono::minutes(10));
  restart(fleet);
  std::set<std::string> out;
  std::multiset<std::string> recorded;
  for (int second = 0; second < 200; ++second) {
    for (const PlannedAction& planned : fleet.tick().actions) {
      if (planned.why.code == kLoadedUngated && std::holds_alternative<PatchNode>(planned.action))
        recorded.insert(planned.node);
      const auto* event = std::get_if<RecordEvent>(&planned.action);
      if (event != nullptr && event->why.code == kLoadedUngated)
        out.insert(fmt::format("{} {}: {}", event->regarding.kind, event->regarding.name, event->why.message));
    }
  }
  EXPECT_EQ(recorded.size(), static_cast<std::size_t>(nodes));
  return out;
}

TEST(LoadedElsewhere, HaveAnEventForEachOfAFewNodesAndOneForManyOfThem) {
  for (const int nodes : {1, 5, 60}) {
    SCOPED_TRACE(nodes);
    const std::set<std::string> told = events_of(nodes, [](FleetModel& fleet) {
      for (const std::string& node : fleet.index.node_names())
        for (const char* component : {"plugin", "gfd"}) fleet.delete_pod_of(node, component);
    });
    if (nodes <= 5) {
      EXPECT_EQ(told.size(), static_cast<std::size_t>(nodes));
      EXPECT_THAT(told, Each(StartsWith("Node a0")));
    } else {
      EXPECT_THAT(
          told, Contains(StartsWith("SharingPolicy default: someone else restarted the pods of many nodes")).Times(1));
      EXPECT_LE(told.size(), 6U) << "the last ones have one of their own";
    }
  }
}

TEST(LoadedElsewhere, HaveOneEventWhereTheirDaemonSetsReplaceThemOneAfterTheOther) {
  const std::set<std::string> told = events_of(12, [](FleetModel& fleet) { fleet.roll_templates("any"); });
  EXPECT_THAT(told, Contains(StartsWith("SharingPolicy")).Times(1));
  EXPECT_LE(told.size(), 6U) << "the last ones have one of their own";
}

}  // namespace
}  // namespace gso::test::loaded_elsewhere_test
