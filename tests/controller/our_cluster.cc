#include "tests/controller/our_cluster.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "reconcilers/cluster/manifests.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso {

OurClusterWithoutCrds::OurClusterWithoutCrds() {
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

k8s::HttpResponse OurClusterWithoutCrds::send(k8s::Method method, const std::string& path, const std::string& body,
                                              const std::string& type) {
  return server.handle(sim::local_request(method, path, body, type), {});
}

void OurClusterWithoutCrds::post(const std::string& path, const std::string& body) {
  const k8s::HttpResponse answer = send(k8s::Method::post, path, body, "application/json");
  ASSERT_EQ(answer.status, 201) << answer.body;
}

void OurClusterWithoutCrds::merge(const std::string& path, const std::string& body) {
  const k8s::HttpResponse answer = send(k8s::Method::patch, path, body, "application/merge-patch+json");
  ASSERT_EQ(answer.status, 200) << answer.body;
}

nlohmann::json OurClusterWithoutCrds::get(const std::string& path) {
  return nlohmann::json::parse(send(k8s::Method::get, path, "", "").body, nullptr, false);
}

OurCluster::OurCluster() {
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

}  // namespace gso
