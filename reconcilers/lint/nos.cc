// Profiles written by nos are not checked against the rules of the official device plugin.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/nos.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

// Whether the plugin of nos mounts the ConfigMap and no other plugin does.
bool is_mounted_by_nos_alone(const Discovery& discovery, const ClusterObject& config_map) {
  const auto mounts = [&](const PluginInstallation& set) {
    return set.ns == config_map.ns && set.config_map == config_map.name;
  };
  return std::ranges::any_of(discovery.of_nos, mounts) && std::ranges::none_of(discovery.installations, mounts);
}

// Whether an official plugin loads the key on nodes without a label: then the key is not only for nos.
bool is_a_default(const Discovery& discovery, const std::string& key) {
  return std::ranges::any_of(discovery.installations, [&](const PluginInstallation& set) {
    return std::ranges::any_of(set.operands, [&](const Operand& operand) { return operand.default_key == key; });
  });
}

}  // namespace

void lint_nos(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents) {
  std::vector<ManifestObject> read;
  std::map<std::pair<std::string_view, std::string_view>, const ClusterObject*> config_maps;  // By source and name.
  for (const ClusterObject& object : objects) {
    if (object.kind == "Node" || object.kind == "DaemonSet")
      read.push_back({object.source, object.kind, object.api_version, object.name, object.json});
    if (object.kind == "ConfigMap") config_maps.try_emplace({object.source, object.name}, &object);
  }
  if (read.empty()) return;
  std::vector<std::string> problems;  // Of objects that have their own errors.
  const World& world = load_readable_objects(read, WallTime{}, problems).world;
  const Discovery discovery = discover(world);
  const std::set<std::string> keys = keys_of_nos(world);
  for (LintedDocument& document : documents) {
    if (document.kind != "Profile" || document.key.empty()) continue;
    const auto config_map = config_maps.find({document.source, document.name});
    const bool mounted = config_map != config_maps.end() && is_mounted_by_nos_alone(discovery, *config_map->second);
    const bool named = keys.contains(document.key) && !is_a_default(discovery, document.key);
    if (!mounted && !named) continue;
    document.diagnostics = {{Diagnostic::Severity::info, std::string(kPartitionedByNos), "", 1, 1,
                             mounted ? "only the device plugin of nos mounts this ConfigMap: not checked"
                                     : "only nodes whose GPUs nos partitions name this key: not checked"}};
  }
}

}  // namespace gso
