#include "controller/commands/rollout/edited_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

k8s::Result<EditedText> read_config_map(const World& world, const std::string& json) {
  const k8s::Result<ConfigMap> read = project_configmap(json);
  if (!read) return std::unexpected(read.error());
  const std::string& name = read->meta.name;
  const std::string ns(read->meta.ns.view());
  GivenText text;
  text.whole = true;
  for (const auto& [key, present] : world.configmaps.all()) {
    if (key.name == name && (ns.empty() || key.ns == ns)) text.config_map = key;
  }
  if (text.config_map.name.empty()) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("no device plugin mounts a ConfigMap {}{}{}", ns, ns.empty() ? "" : "/", name));
  }
  for (const auto& [key, value] : read->data) text.keys[key] = value ? *value : std::string();
  EditedText out;
  out.maps.push_back(std::move(text));
  return out;
}

// A node label names the key, which might not exist yet.
bool is_asked_for(const World& world, const PluginInstallation& installation, const std::string& key) {
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    if (operand.node_label.empty()) return false;
    return std::ranges::any_of(
        world.nodes.all(), [&](const auto& entry) { return entry.second->meta.labels.get(operand.node_label) == key; });
  });
}

// A profile: for the key that is named, or the one that is the only, or the plugin's default. A key that neither the
// ConfigMap nor a node label has is a typing error.
k8s::Result<EditedText> read_profile(const RolloutCall& call, const std::vector<PluginInstallation>& installations) {
  EditedText out;
  std::string missing;
  for (const PluginInstallation& installation : installations) {
    const ConfigMap* config_map = call.world.configmaps.find(installation.config_map_key());
    if (config_map == nullptr) continue;
    std::string key = call.options.key;
    if (key.empty() && config_map->data.size() == 1) key = config_map->data.begin()->first;
    for (const Operand& operand : installation.operands) {
      if (key.empty()) key = operand.default_key;
    }
    if (key.empty())
      return k8s::fail(k8s::Reason::invalid,
                       fmt::format("the key of {} that this profile belongs to is unknown; name the key with --key",
                                   installation.id()));
    if (!config_map->data.contains(key) && !is_asked_for(call.world, installation, key)) {
      const std::vector<std::string> keys = keys_of(*config_map);
      missing =
          fmt::format("ConfigMap {} has no key {}{}, and no node label names it. Keys: {}", installation.id(), key,
                      key_advice(key, keys), keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", ")));
      continue;
    }
    GivenText text;
    text.config_map = installation.config_map_key();
    text.keys[key] = call.input;
    const bool known =
        std::ranges::any_of(out.maps, [&](const GivenText& other) { return other.config_map == text.config_map; });
    if (!known) out.maps.push_back(std::move(text));
  }
  if (out.maps.empty())
    return k8s::fail(k8s::Reason::invalid, missing.empty() ? "no device plugin mounts a ConfigMap" : missing);
  return out;
}

// Those with content. One that cannot be read counts as well.
int documents_in(const std::string& text) {
  YamlStream stream(text);
  int out = 0;
  while (const std::optional<YamlDocument> document = stream.next()) {
    const YamlNode* root = document->root;
    const bool is_empty = root == nullptr || (root->kind == YamlNode::Kind::scalar && root->value.empty());
    out += is_empty ? 0 : 1;
  }
  return out + (stream.error() ? 1 : 0);
}

}  // namespace

k8s::Result<void> check_file(const RolloutCall& call) {
  const std::string file = call.options.file == "-" ? "the input" : call.options.file;
  if (const int documents = documents_in(call.input); documents > 1) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{} has {} documents, and diff compares one: give each a file "
                                                       "of its own",
                                                       file, documents));
  }
  if (!call.options.key.empty() && policy_in(call.input)) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("--key goes with a profile, and {} is a SharingPolicy: leave --key out, and write "
                                 "spec.profile.configMapKey",
                                 file));
  }
  return {};
}

k8s::Result<EditedText> read_edited_text(const RolloutCall& call,
                                         const std::vector<PluginInstallation>& installations) {
  const k8s::Result<std::string> json = yaml_to_json(call.input);
  if (!json) return std::unexpected(json.error());
  const OrderedJson document = OrderedJson::parse(*json, nullptr, false);
  if (!document.is_object())
    return k8s::fail(k8s::Reason::invalid, "the input is no ConfigMap, SharingPolicy or profile");
  const std::string kind = text_at(document, "kind");
  if (!kind.empty() && kind != "ConfigMap")
    return k8s::fail(k8s::Reason::invalid, fmt::format("kind {} is no ConfigMap, SharingPolicy or profile", kind));
  k8s::Result<EditedText> out = kind.empty() ? read_profile(call, installations) : read_config_map(call.world, *json);
  if (!out) return out;
  for (const GivenText& map : out->maps) {
    for (const auto& [key, text] : map.keys) {
      const ParsedProfile parsed = parse_profile(text);
      if (parsed.valid()) continue;
      out->invalid += fmt::format("{}key {}: {}", out->invalid.empty() ? "" : "; ", key, parsed.first_error());
      out->invalid_keys.push_back("key " + key);
    }
  }
  return out;
}

std::vector<DroppedKey> dropped_keys(const World& world, const FleetIndex& index, const EditedText& edited) {
  std::map<std::pair<k8s::ObjectKey, std::string>, std::vector<std::string>> users;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment* a = index.assessment(name);
    const PluginInstallation& installation = index.installations()[a->installation];
    users[{installation.config_map_key(), std::string(a->key.view())}].push_back(name);
  }
  std::vector<DroppedKey> out;
  for (const GivenText& text : edited.maps) {
    const ConfigMap* present = world.configmaps.find(text.config_map);
    if (!text.whole || present == nullptr) continue;
    for (const auto& [key, value] : present->data) {
      const auto used = users.find({text.config_map, key});
      if (text.keys.contains(key) || present->our_keys.contains(key) || used == users.end()) continue;
      out.push_back({k8s::to_string(text.config_map), key, used->second});
    }
  }
  return out;
}

}  // namespace gso
