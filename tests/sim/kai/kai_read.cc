// See kai_read.h.
#include "tests/sim/kai/kai_read.h"

namespace gso::sim::kai_read {

const Json& at(const Json& object, const char* a, const char* b) {
  static const Json kNone;
  if (!object.contains(a) || !object[a].contains(b)) return kNone;
  return object[a][b];
}

std::string text(const Json& object, const char* a, const char* b) {
  const Json& found = at(object, a, b);
  return found.is_string() ? found.get<std::string>() : std::string();
}

bool carries(const Json& pod, const std::string& group) {
  const Json& labels = at(pod, "metadata", "labels");
  if (!labels.is_object()) return false;
  const auto plain = labels.find("runai-gpu-group");
  return (plain != labels.end() && *plain == group) || labels.contains(kPrefix + group);
}

std::vector<std::string> groups_of(const Json& object) {
  std::vector<std::string> out;
  const Json& labels = at(object, "metadata", "labels");
  if (labels.is_object()) {
    for (const auto& [key, value] : labels.items()) {
      if (key == "runai-gpu-group") out.push_back(value);
      if (key.starts_with(kPrefix)) out.push_back(key.substr(kPrefix.size()));
    }
  }
  const Json& plain = at(object, "spec", "selectedGPUGroups");
  if (plain.is_array())
    for (const Json& group : plain) out.push_back(group);
  const Json& fractional = at(object, "spec", "selectedFractionalGpuGroups");
  if (fractional.is_array())
    for (const Json& group : fractional) out.push_back(group["id"]);
  return out;
}

bool alive(const Json& pod) {
  const std::string phase = text(pod, "status", "phase");
  return phase != "Succeeded" && phase != "Failed";
}

bool terminating(const Json& pod) {
  return !at(pod, "metadata", "deletionTimestamp").is_null();
}

std::string pod_path(const std::string& ns, const std::string& name, const std::string& sub) {
  return "/api/v1/namespaces/" + ns + "/pods/" + name + (sub.empty() ? "" : "/" + sub);
}

std::string request_path(const std::string& name) {
  return "/apis/scheduling.run.ai/v1alpha2/namespaces/" + std::string(kTeam) + "/bindrequests/" + name;
}

std::string config_map_path(const std::string& name) {
  const std::string all = std::string("/api/v1/namespaces/") + kTeam + "/configmaps";
  return name.empty() ? all : all + "/" + name;
}

bool sees(const Json* config_map, const std::string& gpu) {
  if (config_map == nullptr || gpu.empty()) return true;
  const std::string devices = "," + text(*config_map, "data", "NVIDIA_VISIBLE_DEVICES") + ",";
  return devices == ",," || devices.find("," + gpu + ",") != std::string::npos;
}

}  // namespace gso::sim::kai_read
