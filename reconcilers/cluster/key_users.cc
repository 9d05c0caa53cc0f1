#include "reconcilers/cluster/key_users.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/store_order.h"

namespace gso {
namespace {

// Key -> nodes whose label names it.
std::map<std::string, std::vector<std::string>> labelled_nodes(const World& world,
                                                               const PluginInstallation& installation) {
  std::map<std::string, std::vector<std::string>> out;
  for (const Node* node : in_order(world.nodes)) {
    const Operand* plugin = installation.find(Component::plugin, *node);
    if (plugin == nullptr || plugin->config_map != installation.config_map || plugin->node_label.empty()) continue;
    if (const auto key = node->meta.labels.get(plugin->node_label)) out[std::string(*key)].push_back(node->meta.name);
  }
  return out;
}

}  // namespace

KeyUsers::KeyUsers(const World& world, const ObjectKey& config_map) {
  for (const PluginInstallation& installation : discover(world).installations) {
    if (installation.config_map_key() != config_map) continue;
    for (const auto& [key, nodes] : labelled_nodes(world, installation)) {
      users_[key].push_back(fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", first_names(nodes)));
    }
    for (const Operand& operand : installation.operands) {
      if (operand.component != Component::plugin || operand.default_key.empty()) continue;
      users_[operand.default_key].push_back(fmt::format("DaemonSet {} (DEFAULT_CONFIG)", k8s::to_string(operand.key)));
    }
  }
  for (const SharingPolicy* policy : in_order(world.policies)) {
    if (policy->config_map_key) users_[*policy->config_map_key].push_back("policy " + policy->meta.name);
  }
}

std::string KeyUsers::of(const std::string& key) const {
  const auto found = users_.find(key);
  if (found == users_.end()) return {};
  std::vector<std::string> users = found->second;
  const std::string last = std::move(users.back());
  users.pop_back();
  return users.empty() ? last : fmt::format("{} and {}", fmt::join(users, ", "), last);
}

}  // namespace gso
