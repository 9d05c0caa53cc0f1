#include "tests/sim/fleet/pod_spec.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace gso::sim {
namespace {

using nlohmann::json;

const json kNothing = json::object();
const json kNoItems = json::array();

const json& member(const json& object, const char* name, const json& fallback) {
  auto it = object.find(name);
  return it == object.end() || it->is_null() ? fallback : *it;
}

std::int64_t quantity(const json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return value.is_string() ? std::strtoll(value.get_ref<const std::string&>().c_str(), nullptr, 10) : 0;
}

ContainerSpec read_container(const json& container) {
  ContainerSpec spec{.name = container.value("name", ""), .image = container.value("image", "")};
  for (const json& word : member(container, "command", kNoItems)) spec.command.push_back(word.get<std::string>());
  for (const json& env : member(container, "env", kNoItems)) {
    if (env.contains("value")) spec.env[env.value("name", "")] = env.value("value", "");
  }
  for (const json& mount : member(container, "volumeMounts", kNoItems)) {
    spec.mounts[mount.value("mountPath", "")] = mount.value("name", "");
  }
  const json& limits = member(member(container, "resources", kNothing), "limits", kNothing);
  for (const auto& [resource, amount] : limits.items()) {
    if (resource.starts_with("nvidia.com/")) spec.gpus[resource] = quantity(amount);
  }
  spec.message_from_log = container.value("terminationMessagePolicy", "") == "FallbackToLogsOnError";
  return spec;
}

}  // namespace

PodSpec read_pod_spec(const json& pod) {
  const json& meta = pod.at("metadata");
  const json& spec = member(pod, "spec", kNothing);
  PodSpec read{.key = {meta.value("namespace", ""), meta.value("name", "")},
               .uid = meta.value("uid", ""),
               .node = spec.value("nodeName", "")};
  for (const json& container : member(spec, "initContainers", kNoItems)) {
    read.init_containers.push_back(read_container(container));
  }
  for (const json& container : member(spec, "containers", kNoItems)) {
    read.containers.push_back(read_container(container));
    for (const auto& [resource, amount] : read.containers.back().gpus) read.gpus[resource] += amount;
  }
  for (const json& volume : member(spec, "volumes", kNoItems)) {
    const json& map = member(volume, "configMap", kNothing);
    if (map.empty()) continue;
    auto& volumes = map.value("optional", false) ? read.optional_volumes : read.config_volumes;
    volumes[volume.value("name", "")] = map.value("name", "");
  }
  read.host_pid = spec.value("hostPID", false);
  read.restart_policy = spec.value("restartPolicy", "Always");
  const std::string run_for = member(meta, "annotations", kNothing).value("sim.gpusharing.dev/run-for", "");
  read.run_for = k8s::parse_go_duration(run_for).value_or(k8s::Duration(0));
  for (const json& owner : member(meta, "ownerReferences", kNoItems)) {
    if (!owner.value("controller", false) || owner.value("kind", "") != "DaemonSet") continue;
    read.owner_daemonset_uid = owner.value("uid", "");
    read.owner_daemonset = owner.value("name", "");
  }
  return read;
}

}  // namespace gso::sim
