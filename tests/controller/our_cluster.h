// A simulated API server with one GPU node, the plugin's DaemonSet and ConfigMap, and (unless left out) our CRDs: for
// tests of commands.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "k8sclient/api/client.h"
#include "reconcilers/cluster/manifests.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso {

class OurClusterWithoutCrds : public testing::Test {
 protected:
  static constexpr const char* kPlugin = R"({"apiVersion":"apps/v1","kind":"DaemonSet",
    "metadata":{"name":"nvidia-device-plugin-daemonset"},"spec":{
      "selector":{"matchLabels":{"app":"plugin"}},
      "template":{"metadata":{"labels":{"app":"plugin"}},"spec":{
        "containers":[
          {"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","env":[{"name":"MPS_ROOT","value":"/run/nvidia/mps"}]},
          {"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
           "env":[{"name":"DEFAULT_CONFIG","value":"any"},{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"}],
           "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]}],
        "volumes":[{"name":"plugin-config","configMap":{"name":"mps-config"}}]}}}})";

  OurClusterWithoutCrds() {
    for (const char* name : {"gpu-operator", "gpu-sharing-operator"}) {
      post("/api/v1/namespaces",
           std::string(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")") + name + "\"}}");
    }
    post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}},
      "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
    post("/api/v1/namespaces/gpu-operator/configmaps", R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"mps-config"},"data":{"any":"version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 2}\n"}})");
    post("/apis/apps/v1/namespaces/gpu-operator/daemonsets", kPlugin);
    sim.clock.run_for(std::chrono::seconds(1));
  }

  k8s::HttpResponse send(k8s::Method method, const std::string& path, const std::string& body,
                         const std::string& type) {
    return server.handle(sim::local_request(method, path, body, type), {});
  }
  void post(const std::string& path, const std::string& body) {
    const k8s::HttpResponse answer = send(k8s::Method::post, path, body, "application/json");
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  void merge(const std::string& path, const std::string& body) {
    const k8s::HttpResponse answer = send(k8s::Method::patch, path, body, "application/merge-patch+json");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  // The object, or the Status of a refusal.
  nlohmann::json get(const std::string& path) {
    return nlohmann::json::parse(send(k8s::Method::get, path, "", "").body, nullptr, false);
  }

  Sim sim;
  sim::ApiServer server{sim.io.get_executor(), sim.clock};
  sim::InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
};

class OurCluster : public OurClusterWithoutCrds {
 protected:
  OurCluster() {
    const char* root = std::getenv("GSO_SOURCE_DIR");
    for (const char* kind : {"sharingpolicies", "sharingrollouts"}) {
      std::ifstream file(std::string(root ? root : ".") + "/crds/gpusharing.dev_" + kind + ".yaml");
      std::stringstream text;
      text << file.rdbuf();
      const auto json = yaml_to_json(text.str());
      EXPECT_TRUE(json.has_value());
      post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.value_or(""));
    }
    sim.clock.run_for(std::chrono::seconds(1));
  }
};

}  // namespace gso
