// What a rollout is of: a key of a ConfigMap, or the template of a DaemonSet of standalone MPS daemons. A rollout of
// the second kind has no key, and SharingRollout::config_map and RolloutKey::config_map hold "DaemonSet
// namespace/name".
#pragma once

#include <string>
#include <string_view>

namespace gso {

inline constexpr std::string_view kDaemonSetSubject = "DaemonSet ";

// `daemonset`: "namespace/name".
[[nodiscard]] inline std::string daemonset_subject(std::string_view daemonset) {
  return std::string(kDaemonSetSubject) += daemonset;
}
// "namespace/name" of the DaemonSet; empty: the rollout is of a ConfigMap's key.
[[nodiscard]] inline std::string_view daemonset_of(std::string_view config_map) {
  if (!config_map.starts_with(kDaemonSetSubject)) return {};
  config_map.remove_prefix(kDaemonSetSubject.size());
  return config_map;
}
// "gpu-operator/mps-config (key any)", "the template of DaemonSet gpu-sharing-operator/mps": for people.
[[nodiscard]] inline std::string describe_subject(std::string_view config_map, std::string_view key) {
  if (!daemonset_of(config_map).empty()) return std::string("the template of ") += config_map;
  std::string out(config_map);
  out += " (key ";
  out += key.empty() ? "(none)" : key;
  return out += ")";
}

}  // namespace gso
