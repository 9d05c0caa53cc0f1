// node.partitioning in the running operator, beside Nebuly's fork with its restarts, crash loops and late reports.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/workload.h"
#include "tests/sim/partitioning/slice_story.h"

namespace gso::sim::partitioning_story_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTwenty = "nvidia.com/gpu-20gb";

// Two GPUs of 40 GB: two slices of 10 GB on the first, one of 20 GB on the second.
const SliceCounts kFirst{{0, {{10, 2}}}, {1, {{20, 1}}}};
// Two of 10 GB on one GPU.
const SliceCounts kTens{{0, {{10, 2}}}};

NodeSpec one_gpu(const std::string& name) {
  return nos_node(name, {a100()});
}
NodeSpec two_gpus(const std::string& name) {
  return nos_node(name, {a100(), a100()});
}

TEST(PartitioningStory, PendingPodsGetSlicesAndPodsThatRunAreNotDisturbed) {
  SliceStory story({two_gpus("n1")}, {{"n1", kFirst}});
  story.ask("old", 10);
  ASSERT_TRUE(story.runs("old")) << story.record();
  story.start_operator();
  story.ask("large", 30);
  story.ask("small", 5);
  EXPECT_TRUE(story.runs("large")) << story.record();
  EXPECT_TRUE(story.runs("small")) << story.record();
  EXPECT_EQ(story.phase_of("old"), "Running");
  EXPECT_EQ(story.moves("n1"), 1U) << "one move serves all that wait";
  EXPECT_TRUE(story.hears("large", "SlicePlanned", "planned on node n1"));
  EXPECT_TRUE(story.keys().contains("nos-n1")) << "keys of nos stay";
  story.expect_silence();
}

TEST(PartitioningStory, APodThatFitsAFreeSliceChangesNothing) {
  SliceStory story({two_gpus("n1")}, {{"n1", kFirst}});
  story.start_operator();
  story.ask("p", 20);
  EXPECT_TRUE(story.runs("p")) << story.record();
  story.expect_silence();
  EXPECT_EQ(story.moves("n1"), 0U);
}

TEST(PartitioningStory, AFreshNodeGetsItsFirstSlices) {
  SliceStory story({one_gpu("n1"), one_gpu("n2")}, {});
  story.start_operator();
  for (const char* pod : {"a", "b", "c"}) story.ask(pod, 18);
  for (const char* pod : {"a", "b", "c"}) EXPECT_TRUE(story.runs(pod)) << pod << story.record();
  story.expect_silence();
}

TEST(PartitioningStory, OnlyNodesThatMustChangeAreChanged) {
  SliceStory story({one_gpu("n1"), one_gpu("n2"), one_gpu("n3")}, {{"n1", kTens}, {"n2", kTens}, {"n3", kTens}});
  story.start_operator();
  story.ask("p", 38);
  EXPECT_TRUE(story.runs("p")) << story.record();
  EXPECT_EQ(story.moves("n1") + story.moves("n2") + story.moves("n3"), 1U);
  story.expect_silence();
}

TEST(PartitioningStory, ANodeWithTheFormerNameOfTheLabelAloneIsServed) {
  NodeSpec node = nos_node("n1", {a100()}, false);
  node.labels["nos.nebuly.ai/gpu-partitioning"] = "mps";
  SliceStory story({node}, {});
  story.start_operator();
  story.ask("p", 10);
  EXPECT_TRUE(story.runs("p")) << story.record();
  EXPECT_EQ(story.label_of("n1", kPartitioningLabel), "mps") << "the plugin selects by it";
  story.expect_silence();
}

TEST(PartitioningStory, APluginThatCrashesOnTheNewKeyGetsTheKeyBefore) {
  SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
  story.ask("old", 10);
  ASSERT_TRUE(story.runs("old")) << story.record();
  story.fleet.faults().most_slices = 2;
  story.start_operator();
  for (const char* pod : {"a", "b"}) story.ask(pod, 5);
  ASSERT_TRUE(story.eventually([&] { return story.moves("n1") == 1; }, 10min)) << story.record();
  ASSERT_TRUE(story.eventually([&] { return story.label_of("n1", kConfigLabel) == "nos-n1"; }, 30min))
      << story.record();
  EXPECT_TRUE(story.hears("n1", "PartitioningRolledBack", "is set back to nos-n1")) << story.record();
  EXPECT_TRUE(story.eventually([&] { return story.allocatable("n1", "nvidia.com/gpu-10gb") == 2; }, 10min));
  EXPECT_EQ(story.phase_of("old"), "Running");
  const std::uint64_t moves = story.moves("n1");
  story.pass(5min);
  EXPECT_EQ(story.moves("n1"), moves) << "it is not tried again at once";
  // Once the plugin takes the key, the pods get their slices.
  story.fleet.faults().most_slices = 0;
  EXPECT_TRUE(story.runs("a", 5h)) << story.record();
  EXPECT_TRUE(story.runs("b", 5h)) << story.record();
  story.expect_silence();
}

TEST(PartitioningStory, LateReportsLeadToNoSecondMove) {
  SliceStory story({two_gpus("n1")}, {{"n1", kFirst}});
  story.fleet.faults().late_slice_reports = 2min;
  story.start_operator();
  story.ask("a", 30);
  EXPECT_TRUE(story.runs("a")) << story.record();
  story.ask("b", 30);
  EXPECT_TRUE(story.runs("b", 20min) || story.phase_of("b") == "Pending") << story.record();
  EXPECT_LE(story.moves("n1"), 2U);
  story.expect_silence();
}

TEST(PartitioningStory, AKeyThatIsProjectedLateIsWaitedFor) {
  SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
  story.ask("old", 10);
  ASSERT_TRUE(story.runs("old")) << story.record();
  story.fleet.faults().late_projection = 2min;
  story.pass(5min);
  story.start_operator();
  story.ask("p", 20);
  EXPECT_TRUE(story.runs("p", 30min)) << story.record();
  EXPECT_EQ(story.moves("n1"), 1U) << "the label does not return while the manager waits for the key";
  EXPECT_EQ(story.phase_of("old"), "Running");
  story.expect_silence();
}

TEST(PartitioningStory, WhileTheGpuPartitionerOfNosRunsNothingIsWritten) {
  SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
  story.fleet.nos_partitioner().start("nebuly-nvidia");
  story.pass(10s);
  story.start_operator();
  story.ask("p", 30);
  story.pass(20min);
  EXPECT_EQ(story.moves("n1"), 0U);
  EXPECT_EQ(story.keys(), std::set<std::string>{"nos-n1"});
  story.fleet.nos_partitioner().halt();
  EXPECT_TRUE(story.runs("p")) << story.record();
  story.expect_silence();
}

TEST(PartitioningStory, ObserveChangesNothingAndSaysWhatItWouldDo) {
  for (const OperatorSettings& observes :
       {OperatorSettings{{"partitioning-mode", "Observe"}}, OperatorSettings{{"max-mode", "Observe"}}}) {
    SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
    story.start_operator(observes);
    story.ask("p", 30);
    story.pass(20min);
    EXPECT_EQ(story.moves("n1"), 0U);
    EXPECT_EQ(story.keys(), std::set<std::string>{"nos-n1"});
    EXPECT_TRUE(story.event_says("p", "SlicePlanned", "planned on node n1; partitioning is only observed"));
    EXPECT_NE(story.op.recent_log().find("It would change: node n1 gets 1 x 30 GiB (2 x 10 GiB before)"),
              std::string::npos)
        << story.record();
    EXPECT_EQ(story.trouble(), "");
  }
}

TEST(PartitioningStory, OffWatchesAndWritesNothing) {
  SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
  story.start_operator({{"partitioning-mode", "Off"}});
  story.ask("p", 30);
  story.pass(20min);
  EXPECT_EQ(story.moves("n1"), 0U);
  EXPECT_FALSE(story.event_says("p", "SlicePlanned", ""));
  EXPECT_NE(story.op.recent_log().find("partitioning is switched off"), std::string::npos) << story.record();
}

TEST(PartitioningStory, ADeletedNodeIsForgottenAndItsKeyGoes) {
  SliceStory story({one_gpu("n1"), one_gpu("n2")}, {});
  story.start_operator();
  story.ask("a", 35);
  story.ask("b", 35);
  ASSERT_TRUE(story.runs("a")) << story.record();
  ASSERT_TRUE(story.runs("b")) << story.record();
  story.fleet.node("n2")->lose();
  story.remove(kNodes, {"", "n2"});
  story.end(story.place_of("a") == "n2" ? "a" : "b");
  story.pass(2h);
  EXPECT_EQ(story.keys().size(), 1U) << "the key of n1";
  story.end(story.phase_of("a") == "Running" ? "a" : "b");
  story.ask("c", 20);
  EXPECT_TRUE(story.runs("c")) << story.record();
  story.expect_silence();
}

TEST(PartitioningStory, ANodeThatLosesTheLabelIsReleased) {
  SliceStory story({one_gpu("n1"), one_gpu("n2")}, {});
  story.start_operator();
  story.ask("a", 35);
  ASSERT_TRUE(story.runs("a")) << story.record();
  const std::string node = story.place_of("a");
  story.end("a");
  story.pass(1min);
  story.label(node, kPartitioningLabel, std::nullopt);
  EXPECT_TRUE(story.eventually([&] { return story.label_of(node, kConfigLabel).empty(); }, 3min)) << story.record();
  EXPECT_TRUE(story.hears(node, "PartitioningReleased", "is removed")) << story.record();
  story.expect_silence();
  EXPECT_TRUE(story.keys().empty()) << "no node needs the key";
}

TEST(PartitioningStory, ALostRaceForANodeIsPlannedAgain) {
  SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
  FaultRule conflict;
  conflict.fault = Fault::conflict;
  conflict.verb = "patch";
  conflict.times = 3;
  story.operator_transport.faults().add(conflict);
  story.start_operator();
  story.ask("p", 30);
  EXPECT_TRUE(story.runs("p", 15min)) << story.record();
  EXPECT_EQ(story.operator_transport.faults().count(Fault::conflict), 3U);
  story.expect_silence();
}

// Starts the operator and crashes it after its write number `crash_at`, or where `done` comes first; then it is started
// anew. True if it crashed.
bool crash_once(SliceStory& story, std::uint64_t crash_at, const OperatorSettings& settings,
                const std::function<bool()>& done) {
  bool crashed = false;
  story.op.hooks.crash_after_write = [&](std::uint64_t n, const PlannedAction&) {
    crashed = crashed || n == crash_at;
    return n == crash_at;
  };
  story.start_operator(settings);
  EXPECT_TRUE(story.eventually([&] { return crashed || done(); }, 2h)) << story.record();
  story.op.hooks.crash_after_write = nullptr;
  story.kill_operator();
  story.start_operator(settings);
  return crashed;
}

// Killed after each of its writes in turn: what follows is the same, and pods that run are never touched.
TEST(PartitioningStory, ACrashAfterAnyWriteLeavesNoNodeWithoutSlicesInUse) {
  for (std::uint64_t crash_at = 1; crash_at <= 4; ++crash_at) {
    SliceStory story({one_gpu("n1"), one_gpu("n2")}, {{"n1", kTens}, {"n2", kTens}});
    story.ask("old", 10);
    ASSERT_TRUE(story.runs("old")) << story.record();
    story.ask("p", 35);
    crash_once(story, crash_at, {}, [&] { return story.phase_of("p") == "Running"; });
    EXPECT_TRUE(story.runs("p", 15min)) << "after write " << crash_at << "\n" << story.record();
    EXPECT_EQ(story.phase_of("old"), "Running");
    EXPECT_LE(story.moves("n1") + story.moves("n2"), 1U) << "after write " << crash_at;
    story.expect_silence();
  }
}

// Keys are on their way for minutes, and reports come late after that; `later` comes in the middle.
TEST(PartitioningStory, APodHearsOnceThatItIsPlanned) {
  SliceStory story({two_gpus("n1")}, {{"n1", kFirst}});
  story.fleet.faults().late_slice_reports = 2min;
  story.start_operator();
  story.ask("p", 30);
  ASSERT_TRUE(story.eventually([&] { return story.moves("n1") == 1; }, 10min)) << story.record();
  story.ask("later", 8);
  EXPECT_TRUE(story.runs("p", 20min)) << story.record();
  EXPECT_TRUE(story.runs("later", 20min)) << story.record();
  story.pass(10min);
  for (const char* pod : {"p", "later"}) {
    EXPECT_EQ(story.events_of(pod, "SlicePlanned"), 1U) << pod << story.record();
    EXPECT_EQ(story.events_of(pod, "SliceUnavailable"), 0U) << pod << story.record();
  }
}

TEST(PartitioningStory, IdleSlicesAreRemovedOnceNoPodHasUsedThemForTheTimeThatIsSet) {
  SliceStory story({two_gpus("n1")}, {{"n1", kFirst}});
  story.ask("user", 10);
  ASSERT_TRUE(story.runs("user")) << story.record();
  story.start_operator({{"partitioning-remove-idle-after", "30m"}});
  story.pass(25min);
  EXPECT_EQ(story.moves("n1"), 0U);
  EXPECT_TRUE(story.eventually([&] { return story.moves("n1") == 1; }, 30min)) << story.record();
  EXPECT_TRUE(story.eventually([&] { return story.allocatable("n1", "nvidia.com/gpu-10gb") == 1; }, 10min));
  EXPECT_EQ(story.allocatable("n1", kTwenty), 0);
  EXPECT_EQ(story.phase_of("user"), "Running");
  story.expect_silence();
  EXPECT_EQ(story.moves("n1"), 1U);
}

TEST(PartitioningStory, ACrashAfterAnyWriteOfARollbackLeavesNoNodeWithoutSlicesInUse) {
  std::uint64_t crashes = 0;
  for (std::uint64_t crash_at = 1; crash_at <= 5; ++crash_at) {
    SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
    story.ask("old", 10);
    ASSERT_TRUE(story.runs("old")) << story.record();
    story.fleet.faults().most_slices = 2;
    for (const char* pod : {"a", "b"}) story.ask(pod, 5);
    const auto is_back = [&] { return story.moves("n1") >= 2 && story.label_of("n1", kConfigLabel) == "nos-n1"; };
    if (crash_once(story, crash_at, {}, is_back)) ++crashes;
    EXPECT_TRUE(story.eventually(is_back, 1h)) << "after write " << crash_at << "\n" << story.record();
    EXPECT_TRUE(story.eventually([&] { return story.allocatable("n1", "nvidia.com/gpu-10gb") == 2; }, 10min));
    EXPECT_EQ(story.phase_of("old"), "Running");
    EXPECT_EQ(story.trouble(), "");
  }
  EXPECT_GE(crashes, 3U) << "after the key, the label, and the label that returns";
}

TEST(PartitioningStory, ACrashOrALostRaceWhileIdleSlicesAreRemovedTakesNoSliceInUse) {
  for (std::uint64_t crash_at = 1; crash_at <= 3; ++crash_at) {
    SliceStory story({two_gpus("n1")}, {{"n1", kFirst}});
    story.ask("user", 10);
    ASSERT_TRUE(story.runs("user")) << story.record();
    FaultRule conflict;
    conflict.fault = Fault::conflict;
    conflict.verb = "patch";
    conflict.times = 2;
    story.operator_transport.faults().add(conflict);
    const auto is_smaller = [&] { return story.allocatable("n1", "nvidia.com/gpu-10gb") == 1; };
    crash_once(story, crash_at, {{"partitioning-remove-idle-after", "30m"}}, is_smaller);
    EXPECT_TRUE(story.eventually(is_smaller, 2h)) << "after write " << crash_at << "\n" << story.record();
    EXPECT_EQ(story.phase_of("user"), "Running");
    story.expect_silence();
  }
}

TEST(PartitioningStory, TooLargeAndDoubleRequestsHearWhy) {
  SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
  story.start_operator();
  story.ask("huge", 50);
  story.create(kPods, consumer_pod({.name = "double", .resource = kTwenty, .count = 2}));
  story.pass(5min);
  EXPECT_TRUE(story.event_says("huge", "SliceTooLarge", "no node that is labelled"));
  EXPECT_TRUE(story.event_says("double", "SliceRequestRefused", "one slice at most"));
  EXPECT_EQ(story.moves("n1"), 0U);
  story.expect_silence();
}

}  // namespace
}  // namespace gso::sim::partitioning_story_test
