// `status` on the simulated API server: what it reads, the table, the JSON document, and what it may not read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "controller/command_status.h"
#include "reconcilers/manifests.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"

namespace gso {
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
    post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gpu-operator"}})");
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
    k8s::HttpRequest request;
    request.method = k8s::Method::post;
    request.path = path;
    request.body = body;
    request.content_type = "application/json";
    const k8s::HttpResponse answer = server.handle(request, {});
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  k8s::Result<void> read() { return sim.run(read_world(&client, PlannerSettings(), &world, &incomplete)); }
  std::string print(bool json) {
    FleetIndex index;
    index.note_everything_changed();
    index.refresh(world, PlannerSettings());
    std::ostringstream out;
    print_status(world, index, incomplete, json, out, kai_findings(world, index, PlannerSettings(), sim.clock.now()));
    return out.str();
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
  EXPECT_TRUE(document["rollouts"].empty());
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

TEST_F(StatusTest, WhatMayNotBeReadIsNamedAndTheRestIsShown) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "configmaps";
  transport.faults().add(rule);
  ASSERT_TRUE(read().has_value());
  EXPECT_THAT(print(false), HasSubstr("incomplete: configmaps of gpu-operator (mps-config): "));
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

}  // namespace
}  // namespace gso
