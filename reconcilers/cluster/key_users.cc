#include "reconcilers/cluster/key_users.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/store_order.h"

namespace gso {
namespace {

std::vector<std::string> labelled_nodes(const World& world, const PluginInstallation& installation,
                                        const std::string& key) {
  std::vector<std::string> out;
  for (const Node* node : in_order(world.nodes)) {
    const Operand* plugin = installation.find(Component::plugin, *node);
    if (plugin == nullptr || plugin->config_map != installation.config_map || plugin->node_label.empty()) continue;
    if (node->meta.labels.get(plugin->node_label) == key) out.push_back(node->meta.name);
  }
  return out;
}

}  // namespace

std::string key_users(const World& world, const ObjectKey& config_map, const std::string& key) {
  std::vector<std::string> users;
  for (const PluginInstallation& installation : discover(world).installations) {
    if (installation.config_map_key() != config_map) continue;
    if (const std::vector<std::string> nodes = labelled_nodes(world, installation, key); !nodes.empty())
      users.push_back(fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", first_names(nodes)));
    for (const Operand& operand : installation.operands) {
      if (operand.component == Component::plugin && operand.default_key == key)
        users.push_back(fmt::format("DaemonSet {} (DEFAULT_CONFIG)", k8s::to_string(operand.key)));
    }
  }
  for (const SharingPolicy* policy : in_order(world.policies)) {
    if (policy->config_map_key == key) users.push_back("policy " + policy->meta.name);
  }
  if (users.size() < 2) return users.empty() ? std::string() : users.front();
  const std::string last = std::move(users.back());
  users.pop_back();
  return fmt::format("{} and {}", fmt::join(users, ", "), last);
}

}  // namespace gso
