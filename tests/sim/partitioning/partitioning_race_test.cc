// node.partitioning under random pods, faults of the API server, of nodes and of the plugin, and restarts of the
// operator, in virtual time: no pod that runs is disturbed, no pod waits for memory that nobody uses, and in the end
// nothing is written.
//
// GSO_SLICE_SCHEDULES=1000 runs as many (default: a few), GSO_SLICE_SEED=N starts at that one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/partitioning/slice_story.h"

namespace gso::sim::partitioning_race_test {
namespace {

using namespace std::chrono_literals;

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
  RecordProperty("moves", static_cast<int>(moves));
  EXPECT_GT(moves, count) << "otherwise nothing has been tried";
}

}  // namespace
}  // namespace gso::sim::partitioning_race_test
