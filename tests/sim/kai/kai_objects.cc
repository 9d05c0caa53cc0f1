// Plain JSON.
#include "tests/sim/kai/kai_objects.h"

#include <chrono>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso::sim {
namespace {

std::string crd(const std::string& group, const std::string& version, const std::string& kind,
                const std::string& plural, bool namespaced, const char* spec) {
  Json out = Json::parse(R"({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {
    "versions": [{"served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
      "type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})");
  out["metadata"]["name"] = plural + "." + group;
  out["spec"]["group"] = group;
  out["spec"]["scope"] = namespaced ? "Namespaced" : "Cluster";
  out["spec"]["names"] = {{"kind", kind},
                          {"listKind", kind + "List"},
                          {"plural", plural},
                          {"singular", plural.substr(0, plural.size() - 1)}};
  Json& served = out["spec"]["versions"][0];
  served["name"] = version;
  served["schema"]["openAPIV3Schema"]["properties"]["spec"] = Json::parse(spec);
  return out.dump();
}

}  // namespace

std::string kai_config_crd() {
  return crd("kai.scheduler", "v1", "Config", "configs", false, R"({
    "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
      "namespace": {"type": "string"},
      "admission": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "gpuSharing": {"type": "boolean"}, "gpuPodRuntimeClassName": {"type": "string"}}},
      "binder": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "volumeBindingTimeoutSeconds": {"type": "integer"},
        "resourceReservation": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
          "namespace": {"type": "string"}, "appLabel": {"type": "string"}, "runtimeClassName": {"type": "string"},
          "allocationTimeout": {"type": "integer"}}}}},
      "global": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "schedulerName": {"type": "string"}}}}})");
}

std::string kai_bind_request_crd() {
  return crd("scheduling.run.ai", "v1alpha2", "BindRequest", "bindrequests", true, R"({
    "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
      "podName": {"type": "string"}, "selectedNode": {"type": "string"},
      "selectedGPUGroups": {"type": "array", "items": {"type": "string"}},
      "selectedFractionalGpuGroups": {"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"id": {"type": "string"}}}},
      "backoffLimit": {"type": "integer"}}})");
}

Json kai_namespace(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
}

Json kai_node(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
}

Json kai_config() {
  return Json::parse(R"({"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"},
    "spec": {"namespace": "kai-scheduler", "admission": {"gpuSharing": true, "gpuPodRuntimeClassName": ""},
      "binder": {"volumeBindingTimeoutSeconds": 20, "resourceReservation": {"namespace": "kai-resource-reservation",
        "appLabel": "kai-resource-reservation", "runtimeClassName": "", "allocationTimeout": 10}}}})");
}

Json kai_binder_status(bool available, const std::string& since) {
  const int count = available ? 1 : 0;
  const Json condition{{"type", "Available"},     {"status", available ? "True" : "False"},
                       {"reason", "Told"},        {"message", ""},
                       {"lastUpdateTime", since}, {"lastTransitionTime", since}};
  return {{"status",
           {{"observedGeneration", 1},
            {"replicas", 1},
            {"updatedReplicas", 1},
            {"readyReplicas", count},
            {"availableReplicas", count},
            {"conditions", Json::array({condition})}}}};
}

Json kai_reservation(const std::string& name, const std::string& group, const std::string& node) {
  Json out = Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"namespace": "kai-resource-reservation", "labels": {"app": "kai-resource-reservation"}},
    "spec": {"containers": [{"name": "resource-reservation", "image": "kai/reservation", "resources": {
      "limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}}]}})");
  out["metadata"]["name"] = name;
  out["metadata"]["labels"]["runai-gpu-group"] = group;
  out["spec"]["nodeName"] = node;
  return out;
}

Json kai_fraction_pod(const std::string& name, int devices, const std::string& scheduler) {
  Json out = Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"namespace": "team", "annotations": {"gpu-fraction": "0.5"}},
    "spec": {"containers": [{"name": "main", "image": "train"}]}})");
  out["metadata"]["name"] = name;
  if (devices > 1) out["metadata"]["annotations"]["gpu-fraction-num-devices"] = std::to_string(devices);
  out["spec"]["schedulerName"] = scheduler;
  return out;
}

Json kai_bind_request(const Json& pod, const std::string& node, const std::vector<std::string>& groups,
                      bool new_field) {
  const std::string name = pod["metadata"]["name"];
  Json spec{{"podName", name}, {"selectedNode", node}};
  if (new_field)
    for (const std::string& group : groups)
      spec["selectedFractionalGpuGroups"].push_back({{"id", group}, {"computeSharingMode", "time-slicing"}});
  else
    spec["selectedGPUGroups"] = groups;
  Json owner = Json::parse(R"({"apiVersion": "v1", "kind": "Pod", "controller": true})");
  owner["name"] = name;
  owner["uid"] = pod["metadata"]["uid"];
  return {{"apiVersion", "scheduling.run.ai/v1alpha2"},
          {"kind", "BindRequest"},
          {"metadata", {{"name", name}, {"namespace", kTeam}, {"ownerReferences", Json::array({owner})}}},
          {"spec", spec}};
}

int send_as_kai(ApiServer& server, k8s::Method method, const std::string& path, const Json& body,
                const std::string& type) {
  const std::string text = body.is_null() ? std::string() : body.dump();
  return server.handle(local_request(method, path, text, type), {.user = "kai", .user_agent = "kai"}).status;
}

void install_kai(ApiServer& server, SimClock& clock, const std::vector<std::string>& nodes, k8s::WallTime since) {
  const auto post = [&](const std::string& path, const Json& body) {
    send_as_kai(server, k8s::Method::post, path, body);
  };
  for (const std::string& text : {kai_config_crd(), kai_bind_request_crd()})
    post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Json::parse(text));
  for (const char* ns : {"kai-scheduler", kReservations, kTeam, "gpu-sharing-operator"})
    post("/api/v1/namespaces", kai_namespace(ns));
  for (const std::string& node : nodes) post("/api/v1/nodes", kai_node(node));
  clock.run_for(std::chrono::seconds(1));
  post("/apis/kai.scheduler/v1/configs", kai_config());
  const std::string deployments = "/apis/apps/v1/namespaces/kai-scheduler/deployments";
  post(deployments, Json::parse(R"({"apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "binder", "namespace": "kai-scheduler"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "binder"}}, "template": {
      "metadata": {"labels": {"app": "binder"}},
      "spec": {"containers": [{"name": "binder", "image": "kai/binder"}]}}}})"));
  send_as_kai(server, k8s::Method::patch, deployments + "/binder/status",
              kai_binder_status(true, k8s::format_time(since)), "application/merge-patch+json");
}

}  // namespace gso::sim
