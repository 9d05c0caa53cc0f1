// Pods, after k8s.io/kubernetes' pkg/apis/core/v1/defaults and pkg/apis/core/validation: the part that plugin,
// reservation and workload pods exercise.
#include "tests/sim/apiserver/builtin_pods.h"

#include <fmt/format.h>
#include <algorithm>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/quantity.h"
#include "tests/sim/apiserver/validation.h"

namespace gso::sim {
namespace {

using nlohmann::json;

void default_probe(json& container, const char* name) {
  auto it = container.find(name);
  if (it == container.end()) return;
  set_default(*it, "timeoutSeconds", 1);
  set_default(*it, "periodSeconds", 10);
  set_default(*it, "successThreshold", 1);
  set_default(*it, "failureThreshold", 3);
  if (it->contains("httpGet")) {
    set_default((*it)["httpGet"], "scheme", "HTTP");
    set_default((*it)["httpGet"], "path", "/");
  }
  if (it->contains("grpc")) set_default((*it)["grpc"], "service", "");
}

std::string pull_policy(const std::string& image) {
  const auto name = image.substr(image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1);
  if (name.find('@') != std::string::npos) return "IfNotPresent";
  const auto colon = name.find(':');
  return colon == std::string::npos || name.substr(colon + 1) == "latest" ? "Always" : "IfNotPresent";
}

void default_container(json& container) {
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  set_default(container, "imagePullPolicy", pull_policy(container.value("image", "")));
  set_default(container, "resources", json::object());
  if (container.contains("ports"))
    for (auto& port : container["ports"]) set_default(port, "protocol", "TCP");
  if (container.contains("env")) {
    for (auto& env : container["env"])
      if (env.contains("valueFrom") && env["valueFrom"].contains("fieldRef"))
        set_default(env["valueFrom"]["fieldRef"], "apiVersion", "v1");
  }
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) default_probe(container, probe);
  json& resources = container["resources"];
  if (resources.contains("limits"))
    for (const auto& [name, value] : resources["limits"].items())
      set_default(resources["requests"], name.c_str(), value);
}

void default_volume(json& volume) {
  if (volume.size() <= 1) volume["emptyDir"] = json::object();
  for (const char* source : {"configMap", "secret", "projected", "downwardAPI"})
    if (volume.contains(source)) set_default(volume[source], "defaultMode", 0644);
  if (volume.contains("hostPath")) set_default(volume["hostPath"], "type", "");
}

// The lists of containers by name.
constexpr const char* kContainerLists[] = {"initContainers", "containers", "ephemeralContainers"};

void validate_container(const json& container, const std::string& path, const std::set<std::string>& volumes,
                        std::set<std::string>& names, FieldErrors& errors) {
  const std::string name = container.value("name", "");
  if (name.empty())
    errors.push_back(required_value(path + ".name"));
  else if (auto problem = dns_label_problem(name))
    errors.push_back(invalid_value(path + ".name", name, *problem));
  if (!name.empty() && !names.insert(name).second) errors.push_back(duplicate_value(path + ".name", name));
  const std::string image = container.value("image", "");
  if (image.empty()) errors.push_back(required_value(path + ".image"));
  if (!image.empty() && (image.front() == ' ' || image.back() == ' '))
    errors.push_back(invalid_value(path + ".image", image, "must not have leading or trailing whitespace"));
  check_enum(container, "imagePullPolicy", {"Always", "IfNotPresent", "Never"}, path, errors);
  const json mounts = container.value("volumeMounts", json::array());
  std::set<std::string> mount_paths;
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string at = fmt::format("{}.volumeMounts[{}]", path, i);
    const std::string volume = mounts[i].value("name", "");
    if (volume.empty())
      errors.push_back(required_value(at + ".name"));
    else if (!volumes.contains(volume))
      errors.push_back({FieldError::Type::not_found, at + ".name", json(volume).dump(), ""});
    const std::string mount = mounts[i].value("mountPath", "");
    if (mount.empty())
      errors.push_back(required_value(at + ".mountPath"));
    else if (!mount_paths.insert(mount).second)
      errors.push_back(invalid_value(at + ".mountPath", mount, "must be unique"));
  }
  const json env = container.value("env", json::array());
  for (std::size_t i = 0; i < env.size(); ++i)
    if (env[i].value("name", "").empty()) errors.push_back(required_value(fmt::format("{}.env[{}].name", path, i)));
}

}  // namespace

bool is_ready(const json& pod) {
  const json conditions = pod.value("status", json::object()).value("conditions", json::array());
  return std::any_of(conditions.begin(), conditions.end(),
                     [](const json& c) { return c.value("type", "") == "Ready" && c.value("status", "") == "True"; });
}

void default_pod_spec(json& spec) {
  if (spec.contains("volumes"))
    for (auto& volume : spec["volumes"]) default_volume(volume);
  for (const char* list : kContainerLists) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (auto& container : spec[list]) default_container(container);
  }
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "dnsPolicy", "ClusterFirst");
  set_default(spec, "schedulerName", "default-scheduler");
  set_default(spec, "securityContext", json::object());
  set_default(spec, "terminationGracePeriodSeconds", 30);
  if (spec.value("hostNetwork", false)) {
    for (auto& container : spec["containers"]) {
      if (!container.contains("ports")) continue;
      for (auto& port : container["ports"]) set_default(port, "hostPort", port.value("containerPort", 0));
    }
  }
  if (const std::string account = spec.value("serviceAccountName", spec.value("serviceAccount", ""));
      !account.empty()) {
    spec["serviceAccountName"] = account;
    spec["serviceAccount"] = account;
  }
}

void admit_pod_spec(json& spec) {
  set_default(spec, "enableServiceLinks", true);
  set_default(spec, "serviceAccountName", "default");
  spec["serviceAccount"] = spec["serviceAccountName"];
  set_default(spec, "priority", 0);
  set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
  json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = json::array();
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    bool tolerated = false;
    for (const auto& t : tolerations) {
      const std::string effect = t.value("effect", "");
      const std::string have = t.value("key", "");
      tolerated |= (have == key || have.empty()) && (effect == "NoExecute" || effect.empty());
    }
    if (tolerated) continue;
    tolerations.push_back({{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
  }
}

void validate_pod_spec(const json& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> volumes;
  const json volume_list = spec.value("volumes", json::array());
  for (std::size_t i = 0; i < volume_list.size(); ++i) {
    const std::string at = fmt::format("{}.volumes[{}].name", path, i);
    const std::string name = volume_list[i].value("name", "");
    if (name.empty())
      errors.push_back(required_value(at));
    else if (auto problem = dns_label_problem(name))
      errors.push_back(invalid_value(at, name, *problem));
    else if (!volumes.insert(name).second)
      errors.push_back(duplicate_value(at, name));
  }
  if (!spec.contains("containers") || spec["containers"].empty())
    errors.push_back(required_value(path + ".containers"));
  std::set<std::string> names;
  for (const char* list : {"containers", "initContainers"}) {
    const json containers = spec.value(list, json::array());
    for (std::size_t i = 0; containers.is_array() && i < containers.size(); ++i)
      validate_container(containers[i], fmt::format("{}.{}[{}]", path, list, i), volumes, names, errors);
  }
  check_enum(spec, "restartPolicy", {"Always", "Never", "OnFailure"}, path, errors);
  check_enum(spec, "dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"}, path, errors);
  if (spec.contains("nodeSelector")) check_labels(spec["nodeSelector"], path + ".nodeSelector", errors);
  if (const auto grace = spec.value("terminationGracePeriodSeconds", std::int64_t{0}); grace < 0) {
    errors.push_back(
        invalid_value(path + ".terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"));
  }
}

void validate_pod_update(const json& pod, const json& old, FieldErrors& errors) {
  json spec = pod["spec"];
  const json& before = old["spec"];
  for (const char* list : {"containers", "initContainers"}) {
    const std::size_t count = before.contains(list) ? before[list].size() : 0;
    if ((spec.contains(list) && spec[list].is_array() ? spec[list].size() : 0) != count) {
      errors.push_back(
          forbidden_value(fmt::format("spec.{}", list), list == std::string("containers")
                                                            ? "pod updates may not add or remove containers"
                                                            : "pod updates may not add or remove init containers"));
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      if (before[list][i].contains("image")) spec[list][i]["image"] = before[list][i]["image"];
  }
  for (const char* free : {"activeDeadlineSeconds", "terminationGracePeriodSeconds"})
    if (before.contains(free))
      spec[free] = before[free];
    else
      spec.erase(free);
  const json old_tolerations = before.value("tolerations", json::array());
  for (const auto& toleration : old_tolerations) {
    const json now = spec.value("tolerations", json::array());
    if (std::find(now.begin(), now.end(), toleration) == now.end()) {
      errors.push_back(
          forbidden_value("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"));
      return;
    }
  }
  spec["tolerations"] = old_tolerations;
  json comparable = before;
  comparable["tolerations"] = old_tolerations;
  if (spec == comparable) return;
  errors.push_back(forbidden_value(
      "spec",
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
      "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
      "previously negative)\n" +
          difference(comparable, spec)));
}

std::string qos_class(const json& spec) {
  bool any = false;
  bool guaranteed = true;
  for (const char* list : {"containers", "initContainers"}) {
    const json containers = spec.value(list, json::array());
    for (const auto& container : containers) {
      const json resources = container.value("resources", json::object());
      const json limits = resources.value("limits", json::object());
      const json requests = resources.value("requests", json::object());
      for (const char* name : {"cpu", "memory"}) {
        any |= limits.contains(name) || requests.contains(name);
        guaranteed &= limits.contains(name) && limits.value(name, "") == requests.value(name, "");
      }
    }
  }
  return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace gso::sim
