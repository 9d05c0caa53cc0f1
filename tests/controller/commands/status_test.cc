// `status` on the simulated API server: what it reads, the table, the JSON document, and what it is not
// allowed to read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "controller/commands/live/view.h"
#include "controller/commands/status.h"
#include "controller/reading/cluster_reader.h"
#include "k8sclient/api/client.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso::status_test {
namespace {

using testing::HasSubstr;

constexpr const char* kPlugin = R"({"apiVersion":"apps/v1","kind":"DaemonSet",
  "metadata":{"name":"nvidia-device-plugin-daemonset"},"spec":{
    "selector":{"matchLabels":{"app":"plugin"}},
    "template":{"metadata":{"labels":{"app":"plugin"}},"spec":{
      "containers":[
        {"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1"},
        {"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
         "env":[{"name":"DEFAULT_CONFIG","value":"any"},{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"}],
         "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]}],
      "volumes":[{"name":"plugin-config","configMap":{"name":"mps-config"}}]}}}})";

class StatusTest : public testing::Test {
 protected:
  StatusTest() {
    for (const std::string name : {"gpu-operator", "gpu-sharing-operator"}) {
      post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")" + name + R"("}})");
    }
    post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}},
      "status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
    post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"plain"}})");
    post("/api/v1/namespaces/gpu-operator/configmaps", R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"mps-config"},"data":{"any":"version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"}})");
    post("/apis/apps/v1/namespaces/gpu-operator/daemonsets", kPlugin);
    sim.clock.run_for(std::chrono::seconds(1));
  }
  void post(const std::string& path, const std::string& body) {
    const k8s::HttpResponse answer = server.handle(sim::local_request(k8s::Method::post, path, body), {});
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  void remove(const std::string& path) {
    ASSERT_EQ(server.handle(sim::local_request(k8s::Method::del, path), {}).status, 200);
  }
  k8s::Result<void> read() { return sim.run(read_world(&client, PlannerSettings(), &world, &incomplete)); }
  std::string print(bool json, TerminalWidth width = 0) {
    return print(json ? OutputForm::json : OutputForm::text, width);
  }
  std::string print(OutputForm form, TerminalWidth width = 0) {
    FleetIndex index;
    index.refresh(world, PlannerSettings());
    std::ostringstream out;
    const PlannerSettings settings;
    const k8s::WallTime now = sim.clock.now();
    print_status({world, index, settings, now, incomplete}, {.form = form, .width = width}, out);
    return out.str();
  }
  // What the operator has recorded of gpu-1: that it loaded what its profile says.
  void record_gpu_1(bool preexisting_drift) {
    ASSERT_TRUE(read().has_value());
    const std::string revision = nlohmann::json::parse(print(true))["nodes"][0]["target"];
    FleetRecord record;
    MachineRecord gpu_1;
    gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
    gpu_1.key = k8s::Interned("any");
    gpu_1.revision = k8s::Interned(revision);
    gpu_1.drift = preexisting_drift;
    record.machines.set(machine_id(world.nodes.find("gpu-1")->meta.uid.str()), gpu_1);
    const nlohmann::json config_map{{"apiVersion", "v1"},
                                    {"kind", "ConfigMap"},
                                    {"metadata", {{"name", "gpu-sharing-operator-state"}}},
                                    {"data", {{std::string(kRecordKey), print_head({record})}}}};
    post("/api/v1/namespaces/gpu-sharing-operator/configmaps", config_map.dump());
    ASSERT_TRUE(read().has_value());
  }

  Sim sim;
  sim::ApiServer server{sim.io.get_executor(), sim.clock};
  sim::InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  World world;
  std::vector<std::string> incomplete;
};

TEST_F(StatusTest, TheTableNamesTheGpuNodesTheirProfileAndWhatTheyOffer) {
  ASSERT_TRUE(read().has_value());
  const std::string table = print(false);
  EXPECT_THAT(table, testing::ContainsRegex("NODE +STATE +POLICY +PROFILE"));
  EXPECT_THAT(table, testing::ContainsRegex("gpu-1 .*mps-config/any.* gpu=8"));
  EXPECT_THAT(table, testing::Not(HasSubstr("plain")));
  EXPECT_TRUE(incomplete.empty()) << incomplete.front();
}

TEST_F(StatusTest, TheJsonDocumentHasTheSameRows) {
  ASSERT_TRUE(read().has_value());
  const auto document = nlohmann::json::parse(print(true));
  ASSERT_EQ(document["nodes"].size(), 1U);
  EXPECT_EQ(document["nodes"][0]["name"], "gpu-1");
  EXPECT_EQ(document["nodes"][0]["profile"], "mps-config/any");
  EXPECT_EQ(document["version"], 1);
  // Programs get resources and amounts, and nothing to take apart.
  EXPECT_EQ(document["nodes"][0]["allocatable"], (nlohmann::json{{"nvidia.com/gpu", 8}}));
  EXPECT_EQ(document["nodes"][0]["replicas"], (nlohmann::json{{"nvidia.com/gpu", 4}}));
  EXPECT_TRUE(document["rollouts"].empty());
}

TEST_F(StatusTest, TheWideTableSaysWhoChoseTheProfileAndWhatItMakesOfTheGpus) {
  ASSERT_TRUE(read().has_value());
  const std::string table = print(OutputForm::wide, 40);
  EXPECT_THAT(table, testing::ContainsRegex("CHOSEN-BY +STRATEGY +REPLICAS +PRODUCT +CLIENT"));
  EXPECT_THAT(table,
              testing::ContainsRegex("gpu-1 .* default +mps +gpu x4 .* 25 % of threads, memory limit not known"));
}

TEST_F(StatusTest, YamlHoldsWhatJsonDoes) {
  ASSERT_TRUE(read().has_value());
  const auto yaml = yaml_to_json(print(OutputForm::yaml));
  ASSERT_TRUE(yaml.has_value()) << yaml.error().message;
  EXPECT_EQ(nlohmann::json::parse(*yaml), nlohmann::json::parse(print(true)));
}

TEST_F(StatusTest, RolloutsHaveAProgressBar) {
  ASSERT_TRUE(read().has_value());
  SharingRollout rollout;
  rollout.meta.name = "r";
  rollout.phase = "Progressing";
  rollout.status_json = R"({"counts":{"total":4,"updated":1,"inProgress":2}})";
  world.rollouts.apply(rollout);
  EXPECT_THAT(print(false), HasSubstr("[######..................] 1/4, 2 in progress\n"));
  rollout.status_json = R"({"counts":{"total":4,"updated":1,"inProgress":2,"failed":1}})";
  world.rollouts.apply(rollout);
  EXPECT_THAT(print(false), HasSubstr("[######..................] 1/4, 1 failed, 2 in progress\n"));
}

TEST_F(StatusTest, ANarrowTerminalHasTheCountsOfARolloutWithoutItsBar) {
  ASSERT_TRUE(read().has_value());
  SharingRollout rollout;
  rollout.meta.name = "default-any-some-length-c401";
  rollout.phase = "Progressing";
  rollout.status_json = R"({"counts":{"total":9,"updated":0,"inProgress":2,"failed":6}})";
  world.rollouts.apply(rollout);
  const std::string table = print(OutputForm::text, 80);
  EXPECT_THAT(table, HasSubstr(" 0/9, 6 failed, 2 in progress\n"));
  EXPECT_THAT(table, testing::Not(HasSubstr("[....")));
}

TEST_F(StatusTest, OfRolloutsThatHaveEndedTheLastOneOfEachKeyIsShown) {
  ASSERT_TRUE(read().has_value());
  const auto rollout = [&](const std::string& name, const std::string& policy, const std::string& began) {
    SharingRollout out;
    out.meta.name = name;
    out.policy = policy;
    out.key = "any";
    out.phase = "Completed";
    out.status_json = R"({"startedAt":")" + began + "\"}";
    world.rollouts.apply(out);
  };
  rollout("first", "default", "2026-01-01T00:00:00Z");
  rollout("second", "default", "2026-01-02T00:00:00Z");
  rollout("orphan", "deleted", "2026-01-03T00:00:00Z");
  const std::string table = print(false);
  EXPECT_THAT(table, HasSubstr("second "));
  EXPECT_THAT(table, testing::Not(HasSubstr("first ")));
  EXPECT_THAT(table, testing::Not(HasSubstr("orphan ")));
}

TEST_F(StatusTest, WhatIsToBeSaidAboutKaiIsSaid) {
  ASSERT_TRUE(read().has_value());
  EXPECT_TRUE(nlohmann::json::parse(print(true))["kai"].empty());  // Not served.
  KaiConfig config;
  config.meta.name = "kai-config";
  config.gpu_sharing = true;
  world.kai.configs_served = true;
  world.kai.configs.apply(config);
  world.kai.runtime_classes.mark_absent();
  EXPECT_THAT(print(false), HasSubstr("kai-config: GPU sharing is on (decided by spec.admission.gpuSharing)"));
  const auto document = nlohmann::json::parse(print(true));
  const bool missing = std::ranges::any_of(document["kai"], [](const auto& finding) {
    return finding["reason"] == "KAIRuntimeClassMissing" && finding["severity"] == "error";
  });
  EXPECT_TRUE(missing) << document.dump();
}

TEST_F(StatusTest, ANodeThatDoesNotShowWhatItRunsIsNotUpToDateAndSaysWhy) {
  for (const bool at_install : {true, false}) {
    if (!at_install) remove("/api/v1/namespaces/gpu-sharing-operator/configmaps/gpu-sharing-operator-state");
    record_gpu_1(at_install);
    EXPECT_THAT(print(false), testing::ContainsRegex(at_install ? "gpu-1 +PreexistingDrift " : "gpu-1 +Drift "));
    EXPECT_THAT(
        print(false),
        HasSubstr(at_install ? "\nPreexistingDrift: the node did not show what its profile must produce when the "
                               "operator first saw it."
                             : "\nDrift: the node has loaded its profile, but does not show what the profile must "
                               "produce. If that lasts for verifyTimeout, the operator restarts its pods"));
    const auto node = nlohmann::json::parse(print(true))["nodes"][0];
    EXPECT_THAT(node["message"].get<std::string>(),
                testing::StartsWith("a pod of the plugin, GFD or MPS is missing or not Ready; its pods are not "
                                    "restarted: no DaemonSet of the MPS control daemon selects the node"));
  }
}

TEST_F(StatusTest, ANodeWithGpusAndWithoutAPluginIsShownToo) {
  post("/api/v1/nodes",
       R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"bare","labels":{"nvidia.com/gpu.count":"4"}},
    "spec":{"taints":[{"key":"nobody","effect":"NoSchedule"}]}})");
  ASSERT_TRUE(read().has_value());
  const auto nodes = nlohmann::json::parse(print(true))["nodes"];
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["name"], "bare");
  EXPECT_EQ(nodes[0]["state"], "NoPlugin");
  EXPECT_THAT(print(false), testing::ContainsRegex("bare +NoPlugin .*no device plugin DaemonSet selects the node"));
}

TEST_F(StatusTest, TheSlicesOfAPartitionedNodeAreShownAsBars) {
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"sliced",
    "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"1","nvidia.com/gpu.memory":"40960",
              "nos.nebuly.com/gpu-partitioning":"mps"},
    "annotations":{"nos.nebuly.com/status-gpu-0-10gb-used":"1","nos.nebuly.com/status-gpu-0-10gb-free":"2"}},
    "status":{"capacity":{"nvidia.com/gpu-10gb":"3"},"allocatable":{"nvidia.com/gpu-10gb":"3"}}})");
  ASSERT_TRUE(read().has_value());
  EXPECT_THAT(print(false),
              testing::ContainsRegex("sliced +0 +\\[#####----------[.]....\\] +40[.]0 GiB +1 x 10 GiB +2 x 10 GiB"));
  const nlohmann::json nodes = nlohmann::json::parse(print(true))["nodes"];
  EXPECT_EQ(nodes[0]["slices"], nlohmann::json::array()) << "gpu-1 has replicas";
  EXPECT_EQ(nodes[1]["slices"],
            nlohmann::json::parse(R"([{"gpu":0,"memoryMiB":40960,"used":{"10":1},"free":{"10":2}}])"));
}

TEST_F(StatusTest, MessagesAreCutToTheTerminalAndNowhereElse) {
  record_gpu_1(true);
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

TEST_F(StatusTest, WhatCannotBeReadIsNamedAndTheRestIsShown) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "configmaps";
  transport.faults().add(rule);
  ASSERT_TRUE(read().has_value());
  EXPECT_THAT(print(false), HasSubstr("incomplete: configmaps of namespace gpu-operator cannot be listed by "));
}

TEST_F(StatusTest, ASwitchThatMeansNothingIsSaid) {
  ASSERT_TRUE(read().has_value());
  Node node = *world.nodes.find("gpu-1");
  node.meta.annotations.set("gpusharing.dev/hold", "");
  world.nodes.apply(node);
  EXPECT_THAT(print(false),
              HasSubstr("\nwarning HoldIgnored: Node gpu-1: annotation gpusharing.dev/hold has no value"));
  EXPECT_EQ(nlohmann::json::parse(print(true))["findings"][0]["reason"], "HoldIgnored");
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

TEST_F(StatusTest, RevisionsAreLeftOutWhereEachNodeRunsItsTarget) {
  record_gpu_1(false);
  EXPECT_THAT(print(false), testing::ContainsRegex("NODE +STATE +POLICY +PROFILE +ALLOCATABLE +MESSAGE\n"));
  EXPECT_THAT(print(OutputForm::wide), testing::ContainsRegex("PROFILE +REVISION +TARGET +ALLOCATABLE"));
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

TEST_F(StatusTest, ADeadOperatorIsSaidFirstAndIsTrouble) {
  ASSERT_TRUE(read().has_value());
  FleetIndex index;
  const PlannerSettings settings;
  index.refresh(world, settings);
  FleetLook look{world, index, settings, {}, incomplete};
  std::ostringstream out;
  EXPECT_NE(print_status(look, {}, out), 1);
  NoOperator none{{"ns", "lease"}, "pod-1 has not renewed the Lease since 2026-01-01T00:00:00Z", true};
  look.presence.none = none;
  out.str("");
  EXPECT_EQ(print_status(look, {}, out), 1);
  EXPECT_THAT(out.str(),
              testing::StartsWith("No operator is running: pod-1 has not renewed the Lease since 2026-01-01"));
  out.str("");
  EXPECT_EQ(print_status(look, {.form = OutputForm::json}, out), 1);
  EXPECT_THAT(nlohmann::json::parse(out.str())["operator"], HasSubstr("none: pod-1"));
  // Where none has ever run, the nodes decide.
  none.was_running = false;
  look.presence.none = none;
  EXPECT_NE(print_status(look, {}, out), 1);
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

TEST_F(StatusTest, WithoutNodesThereIsNothingToShow) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "nodes";
  transport.faults().add(rule);
  const k8s::Result<void> result = read();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().reason, k8s::Reason::forbidden);
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
