#include "tests/controller/runtime/plugin_fleet.h"

#include "reconcilers/model/labels.h"
#include "reconcilers/profile/profile.h"

namespace gso {
namespace {

std::string time_slicing(int replicas) {
  return "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: " +
         std::to_string(replicas) + "}\n";
}

}  // namespace

PluginFleetTest::PluginFleetTest(int replicas) {
  create_plugin("gpu-operator");
  post("/api/v1/namespaces/gpu-operator/configmaps",
       Json{{"metadata", {{"name", "mps-config"}}}, {"data", {{"any", time_slicing(replicas)}}}}.dump());
}

std::string PluginFleetTest::revision(int replicas) {
  return revision_of(parse_profile(time_slicing(replicas)).profile);
}

void PluginFleetTest::edit(int replicas) {
  merge(kConfigMap, {{"data", {{"any", time_slicing(replicas)}}}});
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
    metadata["labels"] = {{"app", "plugin"}};
    metadata["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                    {"kind", "DaemonSet"},
                                    {"name", daemonset},
                                    {"controller", true},
                                    {"uid", owner["metadata"]["uid"]}}};
  }
  post(path, Json{{"metadata", metadata}, {"spec", {{"nodeName", node}, {"containers", {container}}}}}.dump());
  const Json status{{"name", "nvidia-device-plugin"}, {"ready", true}, {"state", {{"running", Json::object()}}}};
  merge(path + "/" + name + "/status", {{"status",
                                         {{"phase", "Running"},
                                          {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
                                          {"containerStatuses", {status}}}}});
  return get(path + "/" + name)["metadata"]["uid"];
}

std::string PluginFleetTest::add_sharing_node(const std::string& name, const Json& labels) {
  const Json annotations{{kRevisionAnnotation, revision(4)}, {kProfileAnnotation, "mps-config/any"}};
  Json all{{"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "2"}};
  all.update(labels);
  merge("/api/v1/nodes/" + name, {{"metadata", {{"annotations", annotations}, {"labels", all}}}});
  merge("/api/v1/nodes/" + name + "/status", {{"status",
                                               {{"capacity", {{"nvidia.com/gpu", "8"}}},
                                                {"allocatable", {{"nvidia.com/gpu", "8"}}},
                                                {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  return create_pod("gpu-operator", "plugin-" + name, name, "", true);
}

PluginFleetTest::Json PluginFleetTest::annotations(const std::string& node) {
  return get("/api/v1/nodes/" + node)["metadata"]["annotations"];
}

bool PluginFleetTest::in_change(const std::string& node) {
  return annotations(node).contains(std::string(kChangeAnnotation));
}

}  // namespace gso
