// Plain JSON.
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim {
namespace {

Json open_object() {
  return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
}

Json object_of(const Json& properties) {
  Json out = open_object();
  out["properties"] = properties;
  return out;
}

std::string crd(const std::string& group, const std::string& version, const std::string& kind,
                const std::string& plural, bool namespaced, const Json& spec) {
  const Json text{{"type", "string"}};
  const Json schema{{"type", "object"},
                    {"properties",
                     {{"apiVersion", text},
                      {"kind", text},
                      {"metadata", {{"type", "object"}}},
                      {"spec", spec},
                      {"status", open_object()}}}};
  return Json{{"apiVersion", "apiextensions.k8s.io/v1"},
              {"kind", "CustomResourceDefinition"},
              {"metadata", {{"name", plural + "." + group}}},
              {"spec",
               {{"group", group},
                {"scope", namespaced ? "Namespaced" : "Cluster"},
                {"names",
                 {{"kind", kind},
                  {"listKind", kind + "List"},
                  {"plural", plural},
                  {"singular", std::string(plural.begin(), plural.end() - 1)}}},
                {"versions", Json::array({{{"name", version},
                                           {"served", true},
                                           {"storage", true},
                                           {"subresources", {{"status", Json::object()}}},
                                           {"schema", {{"openAPIV3Schema", schema}}}}})}}}}
      .dump();
}

}  // namespace

std::string kai_config_crd() {
  const Json text{{"type", "string"}};
  const Json reservation = object_of({{"namespace", text},
                                      {"appLabel", text},
                                      {"runtimeClassName", text},
                                      {"allocationTimeout", {{"type", "integer"}}}});
  const Json binder =
      object_of({{"resourceReservation", reservation}, {"volumeBindingTimeoutSeconds", {{"type", "integer"}}}});
  const Json admission = object_of({{"gpuSharing", {{"type", "boolean"}}}, {"gpuPodRuntimeClassName", text}});
  return crd("kai.scheduler", "v1", "Config", "configs", false,
             object_of({{"namespace", text},
                        {"admission", admission},
                        {"binder", binder},
                        {"global", object_of({{"schedulerName", text}})}}));
}

std::string kai_bind_request_crd() {
  const Json text{{"type", "string"}};
  const Json groups{{"type", "array"}, {"items", text}};
  const Json fractional{{"type", "array"}, {"items", object_of({{"id", text}})}};
  return crd("scheduling.run.ai", "v1alpha2", "BindRequest", "bindrequests", true,
             object_of({{"podName", text},
                        {"selectedNode", text},
                        {"selectedGPUGroups", groups},
                        {"selectedFractionalGpuGroups", fractional},
                        {"backoffLimit", {{"type", "integer"}}}}));
}

Json kai_namespace(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
}

Json kai_node(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
}

Json kai_config() {
  return {{"apiVersion", "kai.scheduler/v1"},
          {"kind", "Config"},
          {"metadata", {{"name", "kai-config"}}},
          {"spec",
           {{"namespace", "kai-scheduler"},
            {"admission", {{"gpuSharing", true}, {"gpuPodRuntimeClassName", ""}}},
            {"binder",
             {{"volumeBindingTimeoutSeconds", 20},
              {"resourceReservation",
               {{"namespace", kReservations},
                {"appLabel", kReservations},
                {"runtimeClassName", ""},
                {"allocationTimeout", 10}}}}}}}};
}

Json kai_binder() {
  const Json labels{{"app", "binder"}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", {{"name", "binder"}, {"namespace", "kai-scheduler"}}},
          {"spec",
           {{"replicas", 1},
            {"selector", {{"matchLabels", labels}}},
            {"template",
             {{"metadata", {{"labels", labels}}},
              {"spec", {{"containers", Json::array({{{"name", "binder"}, {"image", "kai/binder"}}})}}}}}}}};
}

Json kai_binder_status(bool available, const std::string& since) {
  const int count = available ? 1 : 0;
  return {{"status",
           {{"observedGeneration", 1},
            {"replicas", 1},
            {"updatedReplicas", 1},
            {"readyReplicas", count},
            {"availableReplicas", count},
            {"conditions", Json::array({{{"type", "Available"},
                                         {"status", available ? "True" : "False"},
                                         {"reason", "Told"},
                                         {"message", ""},
                                         {"lastUpdateTime", since},
                                         {"lastTransitionTime", since}}})}}}};
}

Json kai_reservation(const std::string& name, const std::string& group, const std::string& node) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"namespace", kReservations},
            {"labels", {{"app", kReservations}, {"runai-gpu-group", group}}}}},
          {"spec",
           {{"nodeName", node},
            {"containers",
             Json::array({{{"name", "resource-reservation"},
                           {"image", "kai/reservation"},
                           {"resources",
                            {{"limits", {{"nvidia.com/gpu", "1"}}}, {"requests", {{"nvidia.com/gpu", "1"}}}}}}})}}}};
}

Json kai_fraction_pod(const std::string& name, int devices, const std::string& scheduler) {
  Json annotations{{"gpu-fraction", "0.5"}};
  if (devices > 1) annotations["gpu-fraction-num-devices"] = std::to_string(devices);
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"namespace", kTeam}, {"annotations", annotations}}},
      {"spec", {{"schedulerName", scheduler}, {"containers", Json::array({{{"name", "main"}, {"image", "train"}}})}}}};
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
  return {{"apiVersion", "scheduling.run.ai/v1alpha2"},
          {"kind", "BindRequest"},
          {"metadata",
           {{"name", name},
            {"namespace", kTeam},
            {"ownerReferences", Json::array({{{"apiVersion", "v1"},
                                              {"kind", "Pod"},
                                              {"name", name},
                                              {"uid", pod["metadata"]["uid"]},
                                              {"controller", true}}})}}},
          {"spec", spec}};
}

}  // namespace gso::sim
