// node.partitioning in the running operator, beside Nebuly's fork with its restarts, crash loops and late reports; and
// under random pods, faults of the API server, of nodes and of the plugin, and restarts of the operator, in virtual
// time: no pod that runs is disturbed, no pod waits for memory that nobody uses, and in the end nothing is written.
//
// GSO_SLICE_SCHEDULES=1000 runs as many (default: a few), GSO_SLICE_SEED=N starts at that one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/workload.h"
#include "tests/sim/partitioning/slice_story.h"

namespace gso::sim::partitioning_story_test {
namespace {

using namespace std::chrono_literals;

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

TEST(PartitioningStory, UnderObserveAndOffNothingIsWrittenAndTheLogSaysSo) {
  const char* kWould = "It would change: node n1 gets 1 x 30 GiB (2 x 10 GiB before)";
  const struct {
    const char* setting;
    const char* value;
    const char* said;
  } rows[] = {{"partitioning-mode", "Observe", kWould},
              {"max-mode", "Observe", kWould},
              {"partitioning-mode", "Off", "partitioning is switched off"}};
  for (const auto& row : rows) {
    SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
    story.start_operator({{row.setting, row.value}});
    story.ask("p", 30);
    story.pass(20min);
    EXPECT_EQ(story.moves("n1"), 0U);
    EXPECT_EQ(story.keys(), std::set<std::string>{"nos-n1"});
    EXPECT_EQ(story.event_says("p", "SlicePlanned", "planned on node n1; partitioning is only observed"),
              row.said == kWould);
    EXPECT_NE(story.op.recent_log().find(row.said), std::string::npos) << story.record();
    EXPECT_EQ(story.trouble(), "");
  }
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
  EXPECT_LE(story.moves("n1"), 2U) << "late reports lead to no further move";
  story.expect_silence();
}

// And the operator is killed after each of its writes in turn, or once the key is back.
TEST(PartitioningStory, APluginThatCrashesOnTheNewKeyGetsTheKeyBefore) {
  std::uint64_t crashes = 0;
  for (std::uint64_t crash_at = 0; crash_at <= 5; ++crash_at) {
    SliceStory story({one_gpu("n1")}, {{"n1", kTens}});
    story.ask("old", 10);
    ASSERT_TRUE(story.runs("old")) << story.record();
    story.fleet.faults().most_slices = 2;
    for (const char* pod : {"a", "b"}) story.ask(pod, 5);
    const auto is_back = [&] { return story.moves("n1") >= 2 && story.label_of("n1", kConfigLabel) == "nos-n1"; };
    const auto is_told = [&] { return story.event_says("n1", "PartitioningRolledBack", "is set back to nos-n1"); };
    if (crash_once(story, crash_at, {}, [&] { return is_back() && (crash_at > 0 || is_told()); })) ++crashes;
    EXPECT_TRUE(story.eventually(is_back, 1h)) << "after write " << crash_at << "\n" << story.record();
    EXPECT_TRUE(story.eventually([&] { return story.allocatable("n1", "nvidia.com/gpu-10gb") == 2; }, 10min));
    EXPECT_EQ(story.phase_of("old"), "Running");
    EXPECT_EQ(story.trouble(), "");
    if (crash_at > 0) continue;
    EXPECT_TRUE(is_told()) << story.record();
    const std::uint64_t moves = story.moves("n1");
    story.pass(5min);
    EXPECT_EQ(story.moves("n1"), moves) << "it is not tried again at once";
    story.fleet.faults().most_slices = 0;
    for (const char* pod : {"a", "b"}) EXPECT_TRUE(story.runs(pod, 5h)) << story.record();
    story.expect_silence();
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
    EXPECT_EQ(story.allocatable("n1", "nvidia.com/gpu-20gb"), 0);
    EXPECT_EQ(story.phase_of("user"), "Running");
    story.expect_silence();
  }
}

// --- Random schedules.

constexpr std::int64_t kMostGigabytes = 39;  // Of an A100 with 40 GiB: half a GiB is reserved.

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : random_(seed * 7919 + 1), nodes_(some_nodes()), story_(nodes_, first_slices(), seed) {}

  // What went wrong, or nothing.
  std::string run() {
    story_.start_operator();
    for (int step = 0; step < 40 && story_.trouble().empty(); ++step) {
      pods_come_and_go();
      trouble_now_and_then();
      story_.pass(std::chrono::seconds(20 + random_() % 100));
    }
    story_.operator_transport.faults().clear();
    story_.fleet.faults() = {};
    // A key that failed is tried again after four hours at most.
    story_.pass(10h);
    if (!story_.trouble().empty()) return story_.trouble();
    if (!story_.op.trouble().empty()) return story_.op.trouble();
    if (const std::string waits = waiting_in_vain(); !waits.empty()) return waits;
    const std::uint64_t writes = story_.writes();
    story_.pass(1h);
    return story_.writes() == writes ? "" : "it writes although nothing changes";
  }
  [[nodiscard]] std::string record() const { return story_.record(); }
  [[nodiscard]] std::uint64_t moves() const {
    std::uint64_t out = 0;
    for (const NodeSpec& node : nodes_) out += story_.moves(node.name);
    return out;
  }

 private:
  int any(int least, int most) { return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1)); }

  std::vector<NodeSpec> some_nodes() {
    std::vector<NodeSpec> out;
    const int count = any(1, 3);
    for (int n = 1; n <= count; ++n) {
      std::vector<Gpu> gpus(static_cast<std::size_t>(any(1, 2)), a100());
      out.push_back(nos_node(fmt::format("n{}", n), gpus));
    }
    return out;
  }
  std::map<std::string, SliceCounts> first_slices() {
    std::map<std::string, SliceCounts> out;
    for (const NodeSpec& node : nodes_) {
      if (any(0, 2) == 0) continue;
      for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) out[node.name][gpu][any(1, 3) * 5] = any(1, 2);
    }
    return out;
  }

  void pods_come_and_go() {
    if (any(0, 2) > 0) {
      constexpr std::int64_t kSizes[] = {2, 5, 8, 10, 15, 20, 30, 38};
      const std::string pod = fmt::format("p{:03}", names_++);
      sizes_[pod] = kSizes[random_() % std::size(kSizes)];
      story_.ask(pod, sizes_[pod]);
    }
    if (any(0, 3) > 0 || sizes_.empty()) return;
    const auto gone = std::next(sizes_.begin(), any(0, static_cast<int>(sizes_.size()) - 1));
    story_.end(gone->first);
    sizes_.erase(gone);
  }

  void trouble_now_and_then() {
    constexpr Fault kFaults[] = {Fault::latency,  Fault::transport_error, Fault::server_error,
                                 Fault::conflict, Fault::ambiguous,       Fault::throttle};
    Faults& faults = story_.operator_transport.faults();
    if (any(0, 3) == 0) faults.clear();
    if (any(0, 2) == 0) {
      FaultRule rule;
      rule.fault = kFaults[random_() % std::size(kFaults)];
      rule.verb = "patch";
      rule.probability = 0.5;
      faults.add(rule);
    }
    if (any(0, 9) == 0) story_.operator_transport.reset_streams();
    if (any(0, 9) == 0) {
      story_.kill_operator();
      story_.start_operator();
    }
    FleetFaults& fleet = story_.fleet.faults();
    fleet.late_slice_reports = any(0, 3) == 0 ? 90s : 0s;
    fleet.late_projection = any(0, 5) == 0 ? 90s : 0s;
    fleet.most_slices = any(0, 9) == 0 ? 3 : 0;
  }

  // A pod that waits although a GPU has as much memory that no pod uses.
  std::string waiting_in_vain() {
    for (const auto& [pod, size] : sizes_) {
      if (story_.phase_of(pod) != "Pending") continue;
      for (const NodeSpec& node : nodes_) {
        const SliceCounts used = story_.fleet.node(node.name)->slices_in_use();
        for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
          std::int64_t left = kMostGigabytes;
          if (const auto at = used.find(gpu); at != used.end())
            for (const auto& [gigabytes, count] : at->second) left -= gigabytes * count;
          if (left >= size)
            return fmt::format("pod {} waits for {} GB, and GPU {} of node {} has {}", pod, size, gpu, node.name, left);
        }
      }
    }
    return {};
  }

  std::mt19937_64 random_;
  std::vector<NodeSpec> nodes_;
  SliceStory story_;
  std::map<std::string, std::int64_t> sizes_;
  int names_ = 0;
};

TEST(PartitioningRace, DisturbsNoPodLeavesNoneWaitingInVainAndFallsSilent) {
  const std::uint64_t first = from_environment("GSO_SLICE_SEED", 1);
  const std::uint64_t count = from_environment("GSO_SLICE_SCHEDULES", 8);
  std::uint64_t moves = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Schedule schedule(seed);
    const std::string wrong = schedule.run();
    ASSERT_EQ(wrong, "") << "schedule " << seed << "\n" << schedule.record();
    moves += schedule.moves();
  }
  EXPECT_GT(moves, count) << "otherwise nothing has been tried";
}

}  // namespace
}  // namespace gso::sim::partitioning_story_test
