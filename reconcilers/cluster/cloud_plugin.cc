// See cloud_plugin.h.
#include "reconcilers/cluster/cloud_plugin.h"

#include <algorithm>
#include <string_view>

#include "reconcilers/cluster/node_match.h"
#include "reconcilers/cluster/operand_namespaces.h"
#include "reconcilers/model/image_name.h"

namespace gso {
namespace {

// GKE's container and its image, which has several paths: gke.gcr.io/nvidia-gpu-device-plugin@sha256:….
constexpr std::string_view kPlugin = "nvidia-gpu-device-plugin";

bool is_cloud_plugin(const DaemonSet& daemonset) {
  return std::ranges::any_of(daemonset.containers, [](const ContainerSpec& container) {
    return container.name == kPlugin || image_name(container.image) == kPlugin;
  });
}

}  // namespace

std::optional<ObjectKey> cloud_plugin_on(const World& world, const Node& node) {
  for (const DaemonSet* daemonset : all_daemonsets(world)) {
    if (is_cloud_plugin(*daemonset) && selects(placement_of(*daemonset), node, false) != Selects::no)
      return daemonset->meta.key();
  }
  return std::nullopt;
}

}  // namespace gso
