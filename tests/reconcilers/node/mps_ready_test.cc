// node.mps-ready: the label nvidia.mps/enabled follows the MPS control daemon, and does not flap.
#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::mps_ready_test {
namespace {

using namespace std::chrono_literals;

class MpsReady : public ::testing::Test {
 protected:
  static FleetSpec spec(const char* profile) {
    FleetSpec out;
    out.profiles = {{"any", profile}};
    out.nodes = alike_nodes(1);
    return out;
  }
  void begin(const char* profile, MpsReadyMode mode = MpsReadyMode::on) {
    fleet = std::make_unique<FleetModel>(spec(profile));
    KaiWorld& kai = fleet->world.kai;
    kai.configs.init_done();
    kai.pods.init_done();
    kai.bind_requests.init_done();
    fleet->settings.kai.mps_ready = mode;
    ASSERT_TRUE(fleet->settle());
  }
  void run(Duration span) {
    const WallTime end = fleet->now + std::chrono::duration_cast<std::chrono::milliseconds>(span);
    while (fleet->now < end) fleet->tick();
  }
  [[nodiscard]] std::string mark() const { return fleet->label_of("n01", std::string(kMpsEnabled)); }
  [[nodiscard]] std::string claim() const { return fleet->annotation_of("n01", kMpsMarkAnnotation); }
  // The model restarts pods that are not Ready at once, so the test sets the state again before each pass.
  void away(Duration span) {
    const WallTime end = fleet->now + std::chrono::duration_cast<std::chrono::milliseconds>(span);
    while (fleet->now < end) {
      Pod pod = *fleet->pods("n01", "mps").front();
      pod.ready = false;
      fleet->world.operand_pods.apply(pod);
      fleet->tick();
    }
  }
  std::unique_ptr<FleetModel> fleet;
};

TEST_F(MpsReady, MarksANodeWhoseDaemonHasBeenUpForAWhile) {
  begin("mps-4");
  EXPECT_EQ(mark(), "true");
  EXPECT_EQ(claim(), "true");
  EXPECT_TRUE(fleet->plan().actions.empty());
}

TEST_F(MpsReady, MarksNoNodeThatSharesByOtherMeans) {
  for (const char* profile : {"ts-4", "none"}) {
    begin(profile);
    EXPECT_EQ(mark(), "") << profile;
  }
}

TEST_F(MpsReady, TakesTheMarkBackOnlyWhenTheDaemonStaysAway) {
  begin("mps-4");
  away(10s);
  run(10s);
  away(10s);
  EXPECT_EQ(mark(), "true");  // Two short moments do not add up.
  away(10s);
  EXPECT_EQ(mark(), "");
  EXPECT_EQ(claim(), "");
  run(50s);
  away(5s);
  run(50s);
  EXPECT_EQ(mark(), "");  // Two short moments with a daemon do not add up either.
  run(20s);
  EXPECT_EQ(mark(), "true");
}

TEST_F(MpsReady, FollowsARolloutOutOfMps) {
  begin("mps-4");
  fleet->edit("any", "none");
  ASSERT_TRUE(fleet->settle());
  EXPECT_EQ(mark(), "");
  fleet->edit("any", "mps-8");
  ASSERT_TRUE(fleet->settle());
  EXPECT_EQ(mark(), "true");
}

TEST_F(MpsReady, BelievesAPersonAboutADaemonOfTheHost) {
  begin("none");
  fleet->annotate("n01", kMpsHostAnnotation, "true");
  ASSERT_TRUE(fleet->settle());
  EXPECT_EQ(mark(), "true");
  fleet->annotate("n01", kMpsHostAnnotation, std::nullopt);
  ASSERT_TRUE(fleet->settle());
  EXPECT_EQ(mark(), "");
}

TEST_F(MpsReady, LeavesALabelOfSomebodyElseAndSaysWhereItIsWrong) {
  begin("none");
  fleet->label("n01", std::string(kMpsEnabled), "true");
  ASSERT_TRUE(fleet->settle());
  EXPECT_EQ(mark(), "true");
  const Plan plan = fleet->plan();
  EXPECT_TRUE(
      std::ranges::any_of(plan.findings, [](const Finding& f) { return f.why.code == "MPSMarkWithoutDaemon"; }));
  begin("mps-4", MpsReadyMode::off);
  fleet->label("n01", std::string(kMpsEnabled), "false");
  fleet->settings.kai.mps_ready = MpsReadyMode::on;
  ASSERT_TRUE(fleet->settle());
  EXPECT_EQ(mark(), "false");
  EXPECT_EQ(claim(), "");
}

TEST_F(MpsReady, IsDoneWhereKaiIsServedOrWhereItIsAskedFor) {
  begin("mps-4", MpsReadyMode::automatic);
  EXPECT_EQ(mark(), "");
  fleet->world.kai.configs_served = fleet->world.kai.bind_requests_served = true;
  run(90s);
  EXPECT_EQ(mark(), "true");
  fleet->world.kai.configs_served = fleet->world.kai.bind_requests_served = false;
  run(90s);
  EXPECT_EQ(mark(), "true");  // KAI might be absent only temporarily.
  fleet->settings.kai.mps_ready = MpsReadyMode::off;
  fleet->restart_operator();
  run(90s);
  EXPECT_EQ(mark(), "");
}

TEST_F(MpsReady, KeepsOffAHeldNodeAndWritesNothingWhereLabelsAreOnlyVerified) {
  begin("mps-4", MpsReadyMode::off);
  fleet->annotate("n01", kHoldAnnotation, "true");
  fleet->settings.kai.mps_ready = MpsReadyMode::on;
  run(90s);
  EXPECT_EQ(mark(), "");
  fleet->annotate("n01", kHoldAnnotation, std::nullopt);
  fleet->settings.label_mode = PlannerSettings::LabelMode::verify;
  fleet->restart_operator();
  run(90s);
  EXPECT_EQ(mark(), "");
}

}  // namespace
}  // namespace gso::test::mps_ready_test
