// Nodes that are left as they are, and what is said of them: held ones, tainted ones, and DaemonSets changed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

std::unique_ptr<FleetModel> fleet_of(int nodes, const char* profile) {
  FleetSpec spec;
  spec.profiles = {{"any", profile}, {"other", "ts-2"}};
  spec.nodes = alike_nodes(nodes);
  auto fleet = std::make_unique<FleetModel>(spec);
  fleet->settings.cluster_max_unavailable = {100, true};
  fleet->settings.rollout.canary_soak = 5s;
  EXPECT_TRUE(fleet->settle());
  fleet->advance(5s);
  return fleet;
}

TEST(SetAside, AHoldCountsAsAnnotationAndAsLabel) {
  const std::string key(kHoldAnnotation);
  for (const bool by_label : {false, true}) {
    const auto fleet = fleet_of(2, "ts-4");
    const auto hold = [&](std::optional<std::string> value) {
      by_label ? fleet->label("n01", key, value) : fleet->annotate("n01", key, value);
    };
    hold("true");
    EXPECT_TRUE(is_held(fleet->node("n01")));
    EXPECT_EQ(hold_of(fleet->node("n01")), (by_label ? "label " : "annotation ") + key);
    fleet->edit("any", "ts-8");
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 0) << by_label;
    EXPECT_EQ(fleet->restarts("n02", "plugin"), 1) << by_label;
    hold(std::nullopt);
    EXPECT_TRUE(fleet->settle());
    EXPECT_EQ(fleet->restarts("n01", "plugin"), 1) << by_label;
    hold("yes");
    EXPECT_FALSE(is_held(fleet->node("n01"))) << "only the value true holds";
  }
}

}  // namespace
}  // namespace gso::test
