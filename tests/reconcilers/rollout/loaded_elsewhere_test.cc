// Nodes whose pods somebody else restarted loaded their profile outside a rollout: each is recorded, and how many
// Events say so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::loaded_elsewhere_test {
namespace {

using std::chrono::minutes;
using testing::Contains;
using testing::Each;
using testing::StartsWith;

class LoadedElsewhere : public testing::TestWithParam<int> {
 protected:
  FleetModel& under_a_pause(FleetSpec spec) {
    spec.profiles = {{"any", "ts-4"}};
    FleetModel& fleet = fleet_.emplace(std::move(spec));
    EXPECT_TRUE(fleet.settle());
    fleet.policy(
        "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: default}\n"
        "spec: {rollout: {paused: true}}\n");
    EXPECT_TRUE(fleet.settle());
    fleet.advance(std::chrono::seconds(5));
    return fleet;
  }
  // Each different Event LoadedUngated as "kind name: note". Each node is recorded once.
  static std::set<std::string> events_of(FleetModel& fleet, int ticks, std::size_t nodes) {
    std::set<std::string> out;
    std::multiset<std::string> recorded;
    for (int i = 0; i < ticks; ++i) {
      for (const PlannedAction& planned : fleet.tick().actions) {
        if (planned.why.code == kLoadedUngated && std::holds_alternative<PatchNode>(planned.action))
          recorded.insert(planned.node);
        const auto* event = std::get_if<RecordEvent>(&planned.action);
        if (event != nullptr && event->why.code == kLoadedUngated)
          out.insert(fmt::format("{} {}: {}", event->regarding.kind, event->regarding.name, event->why.message));
      }
    }
    EXPECT_EQ(recorded.size(), nodes);
    return out;
  }

 private:
  std::optional<FleetModel> fleet_;
};

TEST_P(LoadedElsewhere, HaveAnEventForEachOfAFewNodesAndOneForManyOfThem) {
  FleetSpec spec;
  spec.nodes = alike_nodes(GetParam(), "NVIDIA-A100-SXM4-40GB", "a");
  FleetModel& fleet = under_a_pause(spec);
  fleet.edit("any", "ts-8");
  fleet.advance(minutes(10));
  for (const NodeSpec& node : spec.nodes)
    for (const char* component : {"plugin", "gfd"}) fleet.delete_pod_of(node.name, component);
  const std::set<std::string> told = events_of(fleet, 40, spec.nodes.size());
  if (GetParam() <= 5) {
    EXPECT_EQ(told.size(), spec.nodes.size());
    EXPECT_THAT(told, Each(StartsWith("Node a0")));
  } else {
    EXPECT_THAT(told,
                Contains(StartsWith("SharingPolicy default: someone else restarted the pods of many nodes")).Times(1));
    EXPECT_LE(told.size(), 6U) << "the last ones have one of their own";
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, LoadedElsewhere, testing::Values(1, 5, 60));

class LoadedByDaemonSets : public LoadedElsewhere {};

TEST_P(LoadedByDaemonSets, HaveOneEventWhereTheirDaemonSetsReplaceThemOneAfterTheOther) {
  FleetSpec spec;
  spec.nodes = alike_nodes(GetParam(), "NVIDIA-A100-SXM4-40GB", "a");
  FleetModel& fleet = under_a_pause(spec);
  fleet.edit("any", "ts-8");
  fleet.advance(minutes(10));
  fleet.roll_templates("any");
  const std::set<std::string> told = events_of(fleet, 200, spec.nodes.size());
  EXPECT_EQ(std::ranges::count_if(told, [](const std::string& line) { return line.starts_with("SharingPolicy"); }), 1);
  EXPECT_LE(told.size(), 6U) << "the last ones have one of their own";
}

INSTANTIATE_TEST_SUITE_P(Nodes, LoadedByDaemonSets, testing::Values(12));

}  // namespace
}  // namespace gso::test::loaded_elsewhere_test
