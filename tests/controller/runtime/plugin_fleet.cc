#include "tests/controller/runtime/plugin_fleet.h"

#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/profile/profile.h"

namespace gso {

std::string time_slicing(int replicas) {
  return "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: " +
         std::to_string(replicas) + "}\n";
}

std::string PluginFleetTest::create_pod(const std::string& ns, const std::string& name, const std::string& node,
                                        const std::string& gpus, bool of_plugin) {
  const std::string path = "/api/v1/namespaces/" + ns + "/pods";
  Json container{{"name", "nvidia-device-plugin"}, {"image", "i"}};
  if (!gpus.empty()) container["resources"] = {{"limits", {{"nvidia.com/gpu", gpus}}}};
  Json metadata{{"name", name}};
  if (of_plugin) {
    const std::string daemonset = "nvidia-device-plugin-daemonset";
    const Json owner = get("/apis/apps/v1/namespaces/gpu-operator/daemonsets/" + daemonset);
    metadata["labels"] = {{"app", daemonset}};
    metadata["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                    {"kind", "DaemonSet"},
                                    {"name", daemonset},
                                    {"controller", true},
                                    {"uid", owner["metadata"]["uid"]}}};
  }
  create(path, Json{{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", metadata},
                    {"spec", {{"nodeName", node}, {"containers", {container}}}}}
                   .dump());
  const Json status{{"name", "nvidia-device-plugin"}, {"ready", true}, {"state", {{"running", Json::object()}}}};
  merge(path + "/" + name + "/status", {{"status",
                                         {{"phase", "Running"},
                                          {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
                                          {"containerStatuses", {status}}}}});
  return get(path + "/" + name)["metadata"]["uid"];
}

void PluginFleetTest::create_config(int replicas) {
  const Json config{{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", "mps-config"}}},
                    {"data", {{"any", time_slicing(replicas)}}}};
  create("/api/v1/namespaces/gpu-operator/configmaps", config.dump());
}

void PluginFleetTest::add_sharing_node(const std::string& name, const Json& labels) {
  create_pod("gpu-operator", "plugin-" + name, name, "", true);
  const std::string loaded = revision_of(parse_profile(time_slicing(4)).profile);
  const Json annotations{{kRevisionAnnotation, loaded}, {kProfileAnnotation, "mps-config/any"}};
  Json all{{"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "2"}};
  all.update(labels);
  merge("/api/v1/nodes/" + name, {{"metadata", {{"annotations", annotations}, {"labels", all}}}});
  merge("/api/v1/nodes/" + name + "/status", {{"status",
                                               {{"capacity", {{"nvidia.com/gpu", "8"}}},
                                                {"allocatable", {{"nvidia.com/gpu", "8"}}},
                                                {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
}

void PluginFleetTest::merge(const std::string& path, const Json& body) {
  const k8s::HttpResponse answer = send(k8s::Method::patch, path, body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
}

PluginFleetTest::Json PluginFleetTest::get(const std::string& path) {
  return Json::parse(send(k8s::Method::get, path, "").body);
}

}  // namespace gso
