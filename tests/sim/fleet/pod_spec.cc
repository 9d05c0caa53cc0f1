#include "tests/sim/fleet/pod_spec.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/json_view.h"

namespace gso::sim {
namespace {

using nlohmann::json;

std::int64_t quantity(const json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return value.is_string() ? std::strtoll(value.get_ref<const std::string&>().c_str(), nullptr, 10) : 0;
}

ContainerSpec read_container(const json& container) {
  ContainerSpec spec{.name = container.value("name", ""), .image = container.value("image", "")};
  for (const char* words : {"command", "args"})
    for (const json& word : items(container, words)) spec.command.push_back(word.get<std::string>());
  for (const json& env : items(container, "env"))
    if (env.contains("value")) spec.env[env.value("name", "")] = env.value("value", "");
  for (const json& mount : items(container, "volumeMounts"))
    spec.mounts[mount.value("mountPath", "")] = mount.value("name", "");
  const json& limits = member(member(container, "resources"), "limits");
  for (const auto& [resource, amount] : limits.items())
    if (resource.starts_with("nvidia.com/")) spec.gpus[resource] = quantity(amount);
  spec.message_from_log = container.value("terminationMessagePolicy", "") == "FallbackToLogsOnError" ||
                          std::ranges::find(spec.command, "--report=/dev/termination-log") != spec.command.end();
  return spec;
}

}  // namespace

PodSpec read_pod_spec(const json& pod) {
  const json& meta = pod.at("metadata");
  const json& spec = member(pod, "spec");
  PodSpec read{.key = {meta.value("namespace", ""), meta.value("name", "")},
               .uid = meta.value("uid", ""),
               .node = spec.value("nodeName", "")};
  for (const json& container : items(spec, "initContainers")) read.init_containers.push_back(read_container(container));
  for (const json& container : items(spec, "containers")) {
    read.containers.push_back(read_container(container));
    for (const auto& [resource, amount] : read.containers.back().gpus) read.gpus[resource] += amount;
  }
  for (const json& volume : items(spec, "volumes")) {
    const json& map = member(volume, "configMap");
    if (map.empty()) continue;
    auto& volumes = map.value("optional", false) ? read.optional_volumes : read.config_volumes;
    volumes[volume.value("name", "")] = map.value("name", "");
  }
  read.host_pid = spec.value("hostPID", false);
  read.restart_policy = spec.value("restartPolicy", "Always");
  for (const json& owner : items(meta, "ownerReferences")) {
    if (!owner.value("controller", false) || owner.value("kind", "") != "DaemonSet") continue;
    read.owner_daemonset = owner.value("name", "");
  }
  return read;
}

}  // namespace gso::sim
