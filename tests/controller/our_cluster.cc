#include "tests/controller/our_cluster.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "reconcilers/cluster/manifests.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso {

sim::FaultRule always(sim::Fault fault, const std::string& resource) {
  sim::FaultRule rule;
  rule.fault = fault;
  rule.resource = resource;
  return rule;
}

namespace {

sim::ApiServerOptions with_collector_delay(Duration delay) {
  sim::ApiServerOptions out;
  out.collector_delay = delay;
  return out;
}

}  // namespace

SimulatedServer::SimulatedServer(Duration collector_delay)
    : server(sim.io.get_executor(), sim.clock, with_collector_delay(collector_delay)) {}

k8s::HttpResponse SimulatedServer::send(k8s::Method method, const std::string& path, const std::string& body) {
  const char* type = method == k8s::Method::patch ? "application/merge-patch+json" : "application/json";
  return server.handle(sim::local_request(method, path, body, type), {});
}

void SimulatedServer::post(const std::string& path, const std::string& body) {
  const k8s::HttpResponse answer = send(k8s::Method::post, path, body);
  ASSERT_EQ(answer.status, 201) << path << ": " << answer.body;
}

void SimulatedServer::add_namespace(const std::string& name) {
  post("/api/v1/namespaces", nlohmann::json{{"metadata", {{"name", name}}}}.dump());
}

void SimulatedServer::merge(const std::string& path, const std::string& body) {
  const k8s::HttpResponse answer = send(k8s::Method::patch, path, body);
  ASSERT_EQ(answer.status, 200) << path << ": " << answer.body;
}

void SimulatedServer::remove(const std::string& path) {
  const k8s::HttpResponse answer = send(k8s::Method::del, path);
  ASSERT_EQ(answer.status, 200) << path << ": " << answer.body;
}

nlohmann::json SimulatedServer::get(const std::string& path) {
  return nlohmann::json::parse(send(k8s::Method::get, path).body, nullptr, false);
}

void SimulatedServer::install_crds() {
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

OurClusterWithoutCrds::OurClusterWithoutCrds() {
  for (const char* name : {"gpu-operator", "gpu-sharing-operator"}) add_namespace(name);
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}},
      "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
  post("/api/v1/namespaces/gpu-operator/configmaps", R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"mps-config"},"data":{"any":"version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 2}\n"}})");
  post("/apis/apps/v1/namespaces/gpu-operator/daemonsets", kPlugin);
  sim.clock.run_for(std::chrono::seconds(1));
}

}  // namespace gso
