// See hami.h.
#include "reconcilers/cluster/hami.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "reconcilers/cluster/node_match.h"
#include "reconcilers/cluster/operand_namespaces.h"
#include "reconcilers/model/hami_names.h"
#include "reconcilers/model/image_name.h"

namespace gso {
namespace {

bool is_hami_plugin(const DaemonSet& daemonset) {
  const auto label = daemonset.match_labels.find(std::string(hami::kComponentLabel));
  if (label != daemonset.match_labels.end() && label->second == hami::kComponent) return true;
  return std::ranges::any_of(daemonset.containers, [](const ContainerSpec& container) {
    return container.name == hami::kContainer && image_name(container.image) == hami::kImage;
  });
}

}  // namespace

std::vector<Operand> hami_plugins(const World& world) {
  std::vector<Operand> out;
  for (const DaemonSet* daemonset : all_daemonsets(world)) {
    if (is_hami_plugin(*daemonset)) out.push_back(placement_of(*daemonset));
  }
  return out;
}

const Operand* hami_plugin_on(const std::vector<Operand>& plugins, const Node& node) {
  const auto found =
      std::ranges::find_if(plugins, [&](const Operand& plugin) { return selects(plugin, node, false) != Selects::no; });
  return found == plugins.end() ? nullptr : &*found;
}

bool was_registered_by_hami(const Node& node) {
  return node.meta.annotations.contains(hami::kRegistered);
}

}  // namespace gso
