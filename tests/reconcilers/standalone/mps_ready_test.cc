// node.mps-ready: the label nvidia.mps/enabled follows the standalone MPS daemon, and does not flap.
#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/standalone/standalone_fleet.h"

namespace gso::test::mps_ready_test {
namespace {

class MpsReady : public StandaloneMps {
 protected:
  void begin_with(MpsReadyMode mode) {
    begin(1);
    KaiWorld& kai = fleet->world.kai;
    kai.configs.init_done();
    kai.pods.init_done();
    kai.bind_requests.init_done();
    fleet->settings.kai.mps_ready = mode;
    fleet->restart_operator();
    run(90s);
  }
  [[nodiscard]] std::string label() const { return fleet->label_of("n01", std::string(kMpsEnabled)); }
  [[nodiscard]] std::string claim() const { return fleet->annotation_of("n01", kMpsMarkAnnotation); }
  void away(Duration span) {
    end_pod("n01");
    run(span);
    make_pod("n01");
  }
};

TEST_F(MpsReady, MarksANodeWhoseDaemonHasBeenUpForAWhile) {
  begin_with(MpsReadyMode::on);
  EXPECT_EQ(label(), "true");
  EXPECT_EQ(claim(), "true");
  EXPECT_TRUE(fleet->plan().actions.empty());
}

TEST_F(MpsReady, TakesTheMarkBackOnlyWhenTheDaemonStaysAway) {
  begin_with(MpsReadyMode::on);
  away(10s);
  run(10s);
  away(10s);
  EXPECT_EQ(label(), "true");  // Two short moments do not add up.
  away(20s);
  EXPECT_EQ(label(), "");
  EXPECT_EQ(claim(), "");
  run(50s);
  away(5s);
  run(50s);
  EXPECT_EQ(label(), "");  // Two short moments with a daemon do not add up either.
  run(20s);
  EXPECT_EQ(label(), "true");
}

TEST_F(MpsReady, BelievesAPersonAboutADaemonOfTheHost) {
  broken = true;
  begin_with(MpsReadyMode::on);
  EXPECT_EQ(label(), "");
  fleet->annotate("n01", kMpsHostAnnotation, "true");
  run(90s);
  EXPECT_EQ(label(), "true");
  fleet->annotate("n01", kMpsHostAnnotation, std::nullopt);
  run(90s);
  EXPECT_EQ(label(), "");
}

TEST_F(MpsReady, LeavesALabelOfSomebodyElse) {
  begin_with(MpsReadyMode::off);
  fleet->label("n01", std::string(kMpsEnabled), "false");
  fleet->settings.kai.mps_ready = MpsReadyMode::on;
  run(90s);
  EXPECT_EQ(label(), "false");
  EXPECT_EQ(claim(), "");
}

TEST_F(MpsReady, IsDoneWhereKaiIsServedOrWhereItIsAskedFor) {
  begin_with(MpsReadyMode::automatic);
  EXPECT_EQ(label(), "");
  fleet->world.kai.configs_served = fleet->world.kai.bind_requests_served = true;
  run(90s);
  EXPECT_EQ(label(), "true");
  fleet->world.kai.configs_served = fleet->world.kai.bind_requests_served = false;
  run(90s);
  EXPECT_EQ(label(), "true");  // KAI might be absent only temporarily.
  fleet->settings.kai.mps_ready = MpsReadyMode::off;
  fleet->restart_operator();
  run(90s);
  EXPECT_EQ(label(), "");
}

TEST_F(MpsReady, KeepsOffAHeldNodeAndWritesNothingWhereLabelsAreOnlyVerified) {
  begin_with(MpsReadyMode::off);
  fleet->annotate("n01", kHoldAnnotation, "true");
  fleet->settings.kai.mps_ready = MpsReadyMode::on;
  run(90s);
  EXPECT_EQ(label(), "");
  fleet->annotate("n01", kHoldAnnotation, std::nullopt);
  fleet->settings.label_mode = PlannerSettings::LabelMode::verify;
  fleet->restart_operator();
  run(90s);
  EXPECT_EQ(label(), "");
}

}  // namespace
}  // namespace gso::test::mps_ready_test
