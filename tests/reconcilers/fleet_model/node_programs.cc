#include "tests/reconcilers/fleet_model/node_programs.h"

#include <algorithm>
#include <vector>

#include "k8sclient/value/selectors.h"
#include "tests/sim/fleet/gpu.h"

namespace gso::test {

namespace {

// A MIG node is one GPU cut into as many slices as the node has devices.
std::vector<sim::Gpu> gpus_of(const NodeSpec& node, std::int64_t devices) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(devices, 0));
  sim::Gpu gpu = node.product.starts_with("Tesla-T4") ? sim::t4() : sim::a100();
  if (node.mig) gpu = sim::a100_mig_1g(static_cast<int>(count));
  if (node.product.starts_with("Tesla-V100")) gpu.compute_major = 7;
  gpu.product = node.product;
  return std::vector<sim::Gpu>(node.mig ? 1 : count, gpu);
}

}  // namespace

std::string exit_reason(std::string_view component, const sim::PluginConfig& config, const NodeSpec& node) {
  const std::vector<sim::Gpu> gpus = gpus_of(node, node.gpus);
  if (component == "mps") return sim::mps_daemon_error(config, gpus);
  if (component == "plugin") {
    const auto devices = sim::plugin_devices(config, gpus);
    return devices ? "" : devices.error();
  }
  const auto labels = sim::discovery_labels(config, gpus);
  return labels ? "" : labels.error();
}

std::map<std::string, std::int64_t> served_devices(const sim::PluginConfig& config, const NodeSpec& node,
                                                   std::int64_t broken_devices) {
  const auto devices = sim::plugin_devices(config, gpus_of(node, node.gpus - broken_devices));
  if (!devices) return {};
  // MPS is on for every resource, but a daemon exists only for the resources that an entry names.
  const bool waits = config.mps && std::ranges::any_of(*devices, [&](const auto& device) {
                       return std::ranges::none_of(config.resources, [&](const auto& resource) {
                         return config.registered_name(resource.name) == device.first;
                       });
                     });
  if (waits) return {};
  return *devices;
}

std::optional<std::map<std::string, std::string>> shown_labels(const sim::PluginConfig& config, const NodeSpec& node) {
  auto labels = sim::discovery_labels(config, gpus_of(node, node.gpus));
  if (!labels) return std::nullopt;
  std::erase_if(*labels, [](const auto& label) { return k8s::label_value_problem(label.second).has_value(); });
  return *std::move(labels);
}

}  // namespace gso::test
