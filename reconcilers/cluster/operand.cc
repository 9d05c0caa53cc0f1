// A DaemonSet's template -> the operand that it describes.
#include "reconcilers/cluster/operand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <tuple>
#include <utility>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {

// --- The device plugin's version from an image's tag.

PluginVersion PluginVersion::of_image(std::string_view image) {
  // registry:5000/path/name:v0.17.1-ubi9@sha256:…: the tag follows the last colon of the last path segment.
  image = image.substr(0, image.find('@'));
  image = image.substr(image.rfind('/') + 1);
  const auto colon = image.find(':');
  if (colon == std::string_view::npos) return {};
  std::string_view tag = image.substr(colon + 1);
  if (tag.starts_with('v')) tag.remove_prefix(1);
  PluginVersion out;
  int* const parts[] = {&out.major, &out.minor, &out.patch};
  const char* at = tag.data();
  const char* const end = tag.data() + tag.size();
  for (int* part : parts) {
    if (part != parts[0]) {
      if (at == end || *at != '.') return {};
      ++at;
    }
    auto [rest, code] = std::from_chars(at, end, *part);
    if (code != std::errc{} || *part < 0) return {};
    at = rest;
  }
  if (at != end && *at != '-' && *at != '+') return {};
  out.known = true;
  return out;
}

bool PluginVersion::known_below(int a, int b, int c) const {
  if (!known) return false;
  return std::tie(major, minor, patch) < std::tie(a, b, c);
}

std::string PluginVersion::to_string() const {
  return known ? fmt::format("v{}.{}.{}", major, minor, patch) : "unknown";
}

std::string_view to_string(Component component) {
  constexpr std::string_view kNames[] = {"plugin", "gfd", "mps"};
  return kNames[static_cast<std::size_t>(component)];
}

std::optional<Component> parse_component(std::string_view text) {
  for (Component component : {Component::plugin, Component::gfd, Component::mps})
    if (to_string(component) == text) return component;
  return std::nullopt;
}

namespace {

struct MainContainer {
  std::string_view name;
  Component component;
};
constexpr MainContainer kMainContainers[] = {
    {"nvidia-device-plugin", Component::plugin}, {"nvidia-device-plugin-ctr", Component::plugin},
    {"gpu-feature-discovery", Component::gfd},   {"gpu-feature-discovery-ctr", Component::gfd},
    {"mps-control-daemon-ctr", Component::mps},  {"mps-control-daemon", Component::mps},
};

}  // namespace

std::optional<Component> component_of_container(std::string_view name) {
  const auto* known = std::ranges::find(kMainContainers, name, &MainContainer::name);
  return known == std::end(kMainContainers) ? std::nullopt : std::optional(known->component);
}

bool is_operand_container(std::string_view name) {
  return component_of_container(name).has_value() || name == kStandaloneMpsContainer;
}

bool mentions_operand_container(std::string_view json) {
  const auto mentions = [json](std::string_view name) { return json.find(name) != std::string_view::npos; };
  return mentions(kStandaloneMpsContainer) || std::ranges::any_of(kMainContainers, mentions, &MainContainer::name);
}

namespace {

std::string value_of(const std::map<std::string, std::string>& map, std::string_view key) {
  auto it = map.find(std::string(key));
  return it == map.end() ? std::string() : it->second;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  for (const auto part : std::views::split(text, ',')) {
    std::string_view item(part.begin(), part.end());
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) out.emplace_back(item);
  }
  return out;
}

// The config-manager's settings, if the template has such a sidecar.
void read_config_manager(const DaemonSet& daemonset, Operand& out) {
  const std::vector<ContainerSpec>* const lists[] = {&daemonset.containers, &daemonset.init_containers};
  for (const auto* list : lists) {
    for (const ContainerSpec& container : *list) {
      const std::string source = value_of(container.env, "CONFIG_FILE_SRCDIR");
      if (source.empty()) continue;
      const std::string volume = value_of(container.volume_mounts, source);
      const std::string config_map = value_of(daemonset.configmap_volumes, volume);
      if (config_map.empty()) continue;
      out.config_map = config_map;
      out.default_key = value_of(container.env, "DEFAULT_CONFIG");
      out.fallbacks = split_list(value_of(container.env, "FALLBACK_STRATEGIES"));
      out.node_label = value_of(container.env, "NODE_LABEL");
      if (out.node_label.empty()) out.node_label = kConfigLabel;
      return;
    }
  }
}

// --- Flags and variables of a main container, read in the same way as the component reads them.

std::string flag_name(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable) flag += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  return flag;
}

// The last flag of that name counts.
std::optional<std::string> flag_of(const ContainerSpec& container, const OperandSetting& setting,
                                   std::string_view flag) {
  const auto values = container.flag_values(flag, setting.kind == OperandSetting::Kind::boolean);
  if (values.empty()) return std::nullopt;
  return setting.kind == OperandSetting::Kind::list ? fmt::format("{}", fmt::join(values, ",")) : values.back();
}

// The kubelet inserts another variable's value.
bool refers(std::string_view value) {
  return value.find("$(") != std::string_view::npos;
}

// A configuration file in a mounted ConfigMap, if no config-manager links it.
void read_config_file(const DaemonSet& daemonset, const ContainerSpec& main, Operand& out) {
  if (!out.config_map.empty()) return;
  const std::string file = flag_of(main, {"CONFIG_FILE"}, "--config-file").value_or(value_of(main.env, "CONFIG_FILE"));
  if (file.empty()) return;
  std::size_t longest = 0;
  for (const auto& [path, volume] : main.volume_mounts) {
    if (!is_at_or_below(file, path) || path.size() < longest) continue;
    longest = path.size();
    out.file_config_map = value_of(daemonset.configmap_volumes, volume);
  }
  if (!out.file_config_map.empty()) out.config_file = file;
}

bool has_mps_root(const ContainerSpec& container) {
  return container.env_elsewhere || !value_of(container.env, "MPS_ROOT").empty() ||
         std::ranges::any_of(container.command,
                             [](const std::string& word) { return word.find("--mps-root") != std::string::npos; });
}

// By the variable's name; the flag of that name overrides the variable. See Operand::overrides.
std::map<std::string, Operand::Override> overrides_of(const ContainerSpec& container, Component component) {
  std::map<std::string, Operand::Override> out;
  for (const OperandSetting& setting : kOperandSettings) {
    const std::string name(setting.variable);
    const std::string flag = flag_name(setting.variable);
    std::optional<Operand::Override> found;
    const auto from_environment = [&](const std::string& variable) {
      const auto installation = container.env.find(variable);
      if (!found && installation != container.env.end()) found = {installation->second, variable};
    };
    if (auto value = flag_of(container, setting, flag)) found = {std::move(*value), flag};
    if (component == Component::gfd) from_environment("GFD_" + name);
    from_environment(name);
    if (found && !refers(found->value)) out.emplace(name, std::move(*found));
  }
  return out;
}

// What every operand has.
Operand operand_base(const DaemonSet& daemonset, Component component) {
  Operand out = placement_of(daemonset);
  out.component = component;
  out.uid = daemonset.meta.uid;
  out.created = daemonset.meta.creation_timestamp;
  out.match_labels = daemonset.match_labels;
  out.on_delete = daemonset.on_delete;
  out.generation = daemonset.meta.generation;
  return out;
}

}  // namespace

Operand placement_of(const DaemonSet& daemonset) {
  Operand out;
  out.key = daemonset.meta.key();
  out.node_selector = daemonset.node_selector;
  out.affinity_terms = daemonset.affinity_terms;
  out.tolerations = daemonset.tolerations;
  return out;
}

std::optional<Operand> standalone_daemon_of(const DaemonSet& daemonset) {
  const auto main = std::ranges::find(daemonset.containers, kStandaloneMpsContainer, &ContainerSpec::name);
  if (main == daemonset.containers.end()) return std::nullopt;
  Operand out = operand_base(daemonset, Component::mps);
  out.watches_host = std::ranges::find(main->command, "observe") != main->command.end();
  out.follows_driver_upgrades = out.node_selector.contains(std::string(kDeployClients));
  for (auto& term : out.affinity_terms) {
    const auto follows = [](const auto& at) { return at.key == kDriverUpgradeState || at.key == kDeployClients; };
    if (std::erase_if(term, follows) > 0) out.follows_driver_upgrades = true;
    std::erase_if(term, [](const NodeSelectorRequirement& requirement) { return requirement.key == kMpsCapable; });
  }
  // A term that is empty now would match every node, and the terms are alternatives.
  if (std::ranges::any_of(out.affinity_terms, [](const auto& term) { return term.empty(); }))
    out.affinity_terms.clear();
  return out;
}

std::optional<Operand> operand_of(const DaemonSet& daemonset) {
  const auto main = std::ranges::find_if(
      daemonset.containers, [](const auto& container) { return component_of_container(container.name).has_value(); });
  if (main == daemonset.containers.end()) return std::nullopt;
  Operand out = operand_base(daemonset, *component_of_container(main->name));
  out.overrides = overrides_of(*main, out.component);
  if (const auto mig = out.overrides.find(std::string(kMigStrategyVariable)); mig != out.overrides.end())
    out.mig_strategy = mig->second.value;
  out.mps_root = has_mps_root(*main);
  out.version = PluginVersion::of_image(main->image);
  read_config_manager(daemonset, out);
  read_config_file(daemonset, *main, out);
  return out;
}

std::string config_difference(const Operand& operand, const Operand& plugin) {
  if (operand.config_map.empty())
    return fmt::format("mounts no ConfigMap, but the plugin mounts ConfigMap {}", plugin.config_map);
  if (operand.config_map != plugin.config_map || operand.key.ns != plugin.key.ns) {
    return fmt::format("mounts ConfigMap {}/{}, but the plugin mounts {}/{}", operand.key.ns, operand.config_map,
                       plugin.key.ns, plugin.config_map);
  }
  if (operand.node_label != plugin.node_label)
    return fmt::format("uses the node label {}, but the plugin uses {}", operand.node_label, plugin.node_label);
  if (operand.default_key != plugin.default_key || operand.fallbacks != plugin.fallbacks) {
    return fmt::format("has the default key \"{}\", but the plugin has \"{}\" (or their fallbacks differ)",
                       shown_value(operand.default_key), shown_value(plugin.default_key));
  }
  return {};
}

}  // namespace gso
