#include "tests/sim/story/node_expectation.h"

#include <array>

namespace gso::sim {

namespace {
constexpr std::array kLabels{"nvidia.com/gpu.replicas", "nvidia.com/gpu.product", "nvidia.com/gpu.sharing-strategy",
                             "nvidia.com/mps.capable"};
}  // namespace

std::optional<NodeExpectation> expect_node(const NodeSpec& node, const std::string& profile,
                                           const std::string& plugin_version, const std::string& mig_strategy) {
  auto config = read_plugin_config(profile, PluginVersion::of_image(plugin_version));
  if (!config) return std::nullopt;
  // The GPU Operator sets MIG_STRATEGY; a standalone plugin goes by the profile.
  if (node.nfd) config->mig_strategy = mig_strategy;
  const auto devices = plugin_devices(*config, node.gpus);
  const auto labels = discovery_labels(*config, node.gpus);
  if (!devices || !labels || !mps_daemon_error(*config, node.gpus).empty()) return std::nullopt;
  NodeExpectation expectation{.allocatable = *devices, .labels = {}, .mps = config->mps};
  for (const char* key : kLabels)
    if (auto it = labels->find(key); it != labels->end()) expectation.labels[key] = it->second;
  return expectation;
}

std::string difference(const ClusterView& view, const std::string& node, const NodeExpectation& expectation) {
  const auto allocatable = view.allocatable(node);
  const auto capacity = view.capacity(node);
  for (const auto& [resource, count] : expectation.allocatable) {
    for (const auto* amounts : {&allocatable, &capacity}) {
      auto it = amounts->find(resource);
      const std::int64_t has = it == amounts->end() ? 0 : it->second;
      if (has == count) continue;
      return (amounts == &allocatable ? "allocatable " : "capacity ") + resource + " is " + std::to_string(has) +
             ", not " + std::to_string(count);
    }
  }
  for (const auto& [resource, count] : allocatable)
    if (!expectation.allocatable.contains(resource) && count != 0)
      return "allocatable " + resource + " is " + std::to_string(count) + ", not 0";
  for (const auto& [key, value] : expectation.labels)
    if (const std::string has = view.label(node, key); has != value)
      return "label " + key + " is '" + has + "', not '" + value + "'";
  if (!view.schedulable(node)) return "it is cordoned or not Ready";
  if (view.ready_pods("nvidia-device-plugin", node) != 1) return "its device plugin pod is not Ready";
  if (expectation.mps && view.ready_pods("mps-control-daemon", node) != 1) return "its MPS daemon pod is not Ready";
  return {};
}

std::string shown(const ClusterView& view, const std::string& node) {
  std::string text;
  for (const auto& [resource, count] : view.allocatable(node)) text += resource + "=" + std::to_string(count) + " ";
  return text + view.label(node, "nvidia.com/gpu.sharing-strategy") + " x" +
         view.label(node, "nvidia.com/gpu.replicas") + " " + view.label(node, "nvidia.com/gpu.product");
}

}  // namespace gso::sim
