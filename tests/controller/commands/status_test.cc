// `status` on terminals of different widths, and how it reads a far server; tests/transcripts has its texts.
#include "controller/commands/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "controller/commands/live/view.h"
#include "controller/reading/cluster_reader.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/record_store.h"
#include "tests/controller/our_cluster.h"

namespace gso::status_test {
namespace {

using testing::HasSubstr;

class StatusTest : public OurClusterWithoutCrds {
 protected:
  StatusTest() {
    merge("/api/v1/nodes/gpu-1/status",
          R"({"status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"}}})");
    merge(
        "/api/v1/namespaces/gpu-operator/configmaps/mps-config",
        R"({"data":{"any":"version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"}})");
  }
  k8s::Result<void> read() { return sim.run(read_world(&client, PlannerSettings(), &world, &incomplete)); }
  std::string print(bool json, TerminalWidth width = 0) {
    FleetIndex index;
    index.refresh(world, PlannerSettings());
    std::ostringstream out;
    const PlannerSettings settings;
    const k8s::WallTime now = sim.clock.now();
    print_status({world, index, settings, now, incomplete},
                 {.form = json ? OutputForm::json : OutputForm::text, .width = width}, out);
    return out.str();
  }
  // The operator has recorded that gpu-1 did not show its profile when it was first seen.
  void record_drift() {
    ASSERT_TRUE(read().has_value());
    FleetRecord record;
    MachineRecord gpu_1;
    gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
    gpu_1.key = k8s::Interned("any");
    gpu_1.revision = k8s::Interned(nlohmann::json::parse(print(true))["nodes"][0]["target"].get<std::string>());
    gpu_1.drift = true;
    record.machines.set(machine_id(world.nodes.find("gpu-1")->meta.uid.str()), gpu_1);
    const nlohmann::json config_map{{"apiVersion", "v1"},
                                    {"kind", "ConfigMap"},
                                    {"metadata", {{"name", "gpu-sharing-operator-state"}}},
                                    {"data", {{std::string(kRecordKey), print_head({record})}}}};
    post("/api/v1/namespaces/gpu-sharing-operator/configmaps", config_map.dump());
    ASSERT_TRUE(read().has_value());
  }

  World world;
  std::vector<std::string> incomplete;
};

TEST_F(StatusTest, ANarrowTerminalHasTheCountsOfARolloutWithoutItsBar) {
  ASSERT_TRUE(read().has_value());
  SharingRollout rollout;
  rollout.meta.name = "default-any-some-length-c401";
  rollout.phase = "Progressing";
  rollout.status_json = R"({"counts":{"total":9,"updated":0,"inProgress":2,"failed":6}})";
  world.rollouts.apply(rollout);
  const std::string table = print(false, 80);
  EXPECT_THAT(table, HasSubstr(" 0/9, 6 failed, 2 in progress\n"));
  EXPECT_THAT(table, testing::Not(HasSubstr("[....")));
}

TEST_F(StatusTest, MessagesAreCutToTheTerminalAndNowhereElse) {
  record_drift();
  EXPECT_THAT(print(false), HasSubstr("and the node has 0 GPUs\n"));
  for (const TerminalWidth width : {1U, 90U, 100U}) {
    const std::string table = print(false, width);
    EXPECT_THAT(table, testing::ContainsRegex("a pod of the .*[.][.][.]\n"));
    if (width > 1) {
      EXPECT_LE(table.find('\n', table.find("gpu-1")) - table.find("gpu-1"), width);
    }
  }
  EXPECT_THAT(print(true, 100), HasSubstr("is missing or not Ready"));
}

// A message that wraps, or that is cut after three words, says less than a column of hashes.
TEST_F(StatusTest, ColumnsAreLeftOutWhereTheTerminalIsNarrow) {
  ASSERT_TRUE(read().has_value());
  const struct {
    TerminalWidth width;
    const char* heading;
  } rows[] = {
      {0, "NODE +STATE +POLICY +PROFILE +REVISION +TARGET +ALLOCATABLE +MESSAGE\n"},
      {120, "NODE +STATE +POLICY +PROFILE +REVISION +ALLOCATABLE +MESSAGE\n"},
      {112, "NODE +STATE +POLICY +PROFILE +ALLOCATABLE +MESSAGE\n"},
      {80, "NODE +STATE +ALLOCATABLE +MESSAGE\n"},
  };
  for (const auto& row : rows) {
    std::istringstream lines(print(false, row.width));
    std::string line;
    std::getline(lines, line);
    EXPECT_THAT(line + "\n", testing::ContainsRegex(row.heading)) << row.width;
    while (row.width > 0 && std::getline(lines, line)) EXPECT_LE(line.size(), row.width) << line;
  }
}

TEST_F(StatusTest, APolicyThatDoesNotExistIsNamedInEachView) {
  ASSERT_TRUE(read().has_value());
  FleetIndex index;
  const PlannerSettings settings;
  index.refresh(world, settings);
  StatusView view;
  view.only.policies = {"default", "defualt"};
  std::ostringstream out;
  (void)print_status({world, index, settings, {}, incomplete}, view, out);
  EXPECT_THAT(out.str(), HasSubstr("SharingPolicy defualt does not exist"));
  EXPECT_THAT(out.str(), HasSubstr("gpu-1"));
}

// The text is the same for all nodes of a group, and long.
TEST(StatusNodes, TheBudgetThatSeveralNodesWaitForIsNamedOnTheFirstRow) {
  const auto row = [](const char* name, const char* message) {
    NodeRow out;
    out.name = name;
    out.shown = {"Pending", message};
    out.shown.waits_for_slot = std::string_view(message).starts_with("no slot");
    out.allocatable = "gpu=4";
    return out;
  };
  const char* full = "no slot is free: n01 holds 1 of 1 slot of policy default (maxUnavailable)";
  const char* of_group = "no slot is free: t01 holds 1 of 1 slot of group T4 (maxUnavailablePerGroup)";
  const std::vector<NodeRow> rows{row("n02", full),
                                  row("n03", full),
                                  row("t02", of_group),
                                  row("t03", of_group),
                                  row("x1", "MaxFailures: 2 nodes (a01, a02) failed, so no slot is free"),
                                  row("x2", "MaxFailures: 2 nodes (a01, a02) failed, so no slot is free")};
  for (const bool wide : {false, true}) {
    const std::string table = text_of(node_lines(rows, wide, 0));
    EXPECT_THAT(table, testing::ContainsRegex("n02 .* no slot is free: n01 holds 1 of 1 slot of policy default"));
    EXPECT_THAT(table, testing::ContainsRegex("n03 .* no slot is free \\(see n02\\)\n"));
    EXPECT_THAT(table, testing::ContainsRegex("t02 .* no slot is free: t01 holds 1 of 1 slot of group T4"));
    EXPECT_THAT(table, testing::ContainsRegex("t03 .* no slot is free \\(see t02\\)\n"));
    EXPECT_THAT(table, testing::ContainsRegex("x2 .* MaxFailures: 2 nodes .a01, a02. failed, so no slot is free\n"));
  }
}

const DaemonProgress kDaemon{"gso/mps", false, "7c9d", 4, 2, {"n03"}, {"n01"}, {}, {"n04"}};

TEST(StatusOfDaemons, NamesTheNodesThatAreNotDone) {
  std::ostringstream out;
  print_daemons({kDaemon}, 0, out);
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("STANDALONE-MPS +MODE +TEMPLATE +PROGRESS\n"
                                     "gso/mps +run +7c9d +\\[.*\\] 2/4, in progress: n03, deferred: n01, pinning the "
                                     "driver: n04\n"));
}

TEST(StatusOfDaemons, IsSilentWithoutThem) {
  std::ostringstream out;
  print_daemons({}, 0, out);
  EXPECT_EQ(out.str(), "");
}

TEST(StatusOfDaemons, IsAListForPrograms) {
  EXPECT_EQ(daemons_json({kDaemon}).dump(),
            R"([{"daemonSet":"gso/mps","mode":"run","template":"7c9d","updated":2,"total":4,"inProgress":["n03"],)"
            R"("deferred":["n01"],"notReady":[],"pinsDriver":["n04"]}])");
}

// On a far server every request costs a round trip.
TEST_F(StatusTest, ListsThatDoNotDependOnEachOtherAreReadFourAtOnce) {
  sim::FaultRule far;
  far.fault = sim::Fault::latency;
  far.verb = "list";
  far.delay = std::chrono::seconds(1);
  transport.faults().add(far);
  const k8s::MonoTime begun = sim.clock.monotonic();
  const std::uint64_t before = transport.requests();
  ASSERT_TRUE(read().has_value());
  const auto lists = transport.faults().count(sim::Fault::latency);
  EXPECT_GE(lists, 7U);
  // Three round trips, and the milliseconds that the simulated transport adds to each.
  EXPECT_LT(sim.clock.monotonic() - begun, std::chrono::milliseconds(3500)) << lists << " lists";
  EXPECT_EQ(transport.requests() - before, lists + 1) << "one discovery for all kinds";
}

}  // namespace
}  // namespace gso::status_test
