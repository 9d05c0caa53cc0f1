// DaemonSets -> operand sets, and the watches that follow from them.
#include "reconcilers/cluster/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "reconcilers/model/labels.h"

namespace gso {

std::string_view to_string(Component component) {
  switch (component) {
    case Component::plugin:
      return "plugin";
    case Component::gfd:
      return "gfd";
    case Component::mps:
      return "mps";
  }
  return "plugin";
}

std::optional<Component> parse_component(std::string_view text) {
  for (Component component : {Component::plugin, Component::gfd, Component::mps}) {
    if (to_string(component) == text) return component;
  }
  return std::nullopt;
}

std::string_view to_string(Provider provider) {
  switch (provider) {
    case Provider::gpu_operator:
      return "GPUOperator";
    case Provider::device_plugin_chart:
      return "DevicePluginChart";
    case Provider::manifest:
      return "Manifest";
  }
  return "Manifest";
}

PluginVersion PluginVersion::of_image(std::string_view image) {
  // registry:5000/path/name:v0.17.1-ubi9@sha256:…: the tag follows the last colon of the last path segment.
  image = image.substr(0, image.find('@'));
  const auto slash = image.rfind('/');
  std::string_view name = slash == std::string_view::npos ? image : image.substr(slash + 1);
  const auto colon = name.find(':');
  if (colon == std::string_view::npos) return {};
  std::string_view tag = name.substr(colon + 1);
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

const Operand* OperandSet::find(Component component, const Node& node) const {
  const Operand* paused = nullptr;
  const Operand* tainted = nullptr;
  for (const Operand& operand : operands) {
    if (operand.component != component) continue;
    switch (selects(operand, node, component == Component::mps)) {
      case Selects::yes:
        return &operand;
      case Selects::paused:
        paused = &operand;
        break;
      case Selects::tainted:
        tainted = &operand;
        break;
      case Selects::no:
        break;
    }
  }
  return paused != nullptr ? paused : tainted;
}

const Operand* OperandSet::by_uid(std::string_view daemonset_uid) const {
  auto it = std::ranges::find_if(operands, [&](const Operand& operand) { return operand.uid == daemonset_uid; });
  return it == operands.end() ? nullptr : &*it;
}

namespace {

// Main container names: the GPU Operator's assets, the device plugin's chart and its static manifests.
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

namespace {

struct Main {
  Component component;
  const ContainerSpec* container;
};

std::optional<Main> main_container(const DaemonSet& daemonset) {
  for (const ContainerSpec& container : daemonset.containers) {
    if (const auto component = component_of_container(container.name)) return Main{*component, &container};
  }
  return std::nullopt;
}

std::string value_of(const std::map<std::string, std::string>& map, std::string_view key) {
  auto it = map.find(std::string(key));
  return it == map.end() ? std::string() : it->second;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) out.emplace_back(item);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return out;
}

// The config-manager's settings, where the template has such a sidecar.
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

// "--flag=x", or "--flag", "x"; one dash does as well as two.
std::optional<std::string> flag_value(const ContainerSpec& container, std::string_view name) {
  for (std::size_t i = 0; i < container.command.size(); ++i) {
    std::string_view word = container.command[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (word == name && i + 1 < container.command.size()) return container.command[i + 1];
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
      return std::string(word.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

// A configuration file that lies in a mounted ConfigMap, where no config-manager links it.
void read_config_file(const DaemonSet& daemonset, const ContainerSpec& main, Operand& out) {
  if (!out.config_map.empty()) return;
  const std::string file = flag_value(main, "config-file").value_or(value_of(main.env, "CONFIG_FILE"));
  if (file.empty()) return;
  std::size_t longest = 0;
  for (const auto& [path, volume] : main.volume_mounts) {
    const bool below =
        file.starts_with(path) && (file.size() == path.size() || path.ends_with('/') || file[path.size()] == '/');
    if (!below || path.size() < longest) continue;
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

// Variables that beat a field of the profile, or that the component exits on when they make no sense; the flag of that
// name beats the variable. Source: the flags of the device plugin and of GFD (v0.20.0).
struct Overriding {
  std::string_view variable;
  bool boolean = false;  // The flag needs no value.
  bool list = false;     // Repeated flags add up.
};
constexpr Overriding kOverriding[] = {{"MIG_STRATEGY"},
                                      {"MPS_ROOT"},
                                      {"DEVICE_ID_STRATEGY"},
                                      {"DEVICE_DISCOVERY_STRATEGY"},
                                      {"DEVICE_LIST_STRATEGY", false, true},
                                      {"SHARED_DEVICES_ALLOCATION_POLICY"},
                                      {"IMEX_CHANNEL_IDS", false, true},
                                      {"IMEX_REQUIRED", true},
                                      {"FAIL_ON_INIT_ERROR", true},
                                      {"PASS_DEVICE_SPECS", true},
                                      {"GDRCOPY_ENABLED", true},
                                      {"GDS_ENABLED", true},
                                      {"MOFED_ENABLED", true}};

std::string flag_name(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable) flag += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  return flag;
}

// "--mig-strategy=x", or "--mig-strategy", "x"; one dash does as well as two.
std::optional<std::string> flag_of(const ContainerSpec& container, const Overriding& setting,
                                   std::string_view two_dashes) {
  std::optional<std::string> out;
  const auto take = [&](std::string value) {
    out = setting.list && out ? fmt::format("{},{}", *out, value) : std::move(value);
  };
  for (std::size_t i = 0; i < container.command.size(); ++i) {
    std::string_view word = container.command[i];
    const bool one_dash = word.starts_with("-") && !word.starts_with("--");
    const std::string_view flag = one_dash ? two_dashes.substr(1) : two_dashes;
    if (word == flag && setting.boolean) take("true");
    if (word == flag && !setting.boolean && i + 1 < container.command.size()) take(container.command[i + 1]);
    if (word.starts_with(flag) && word.substr(flag.size()).starts_with("="))
      take(std::string(word.substr(flag.size() + 1)));
  }
  return out;
}

// The kubelet puts another variable's value there.
bool refers(std::string_view value) {
  return value.find("$(") != std::string_view::npos;
}

std::map<std::string, Operand::Override> overrides_of(const ContainerSpec& container, Component component) {
  std::map<std::string, Operand::Override> out;
  for (const Overriding& setting : kOverriding) {
    const std::string name(setting.variable);
    const std::string flag = flag_name(setting.variable);
    std::optional<Operand::Override> found;
    const auto from_environment = [&](const std::string& variable) {
      const auto set = container.env.find(variable);
      if (!found && set != container.env.end()) found = {set->second, variable};
    };
    if (auto value = flag_of(container, setting, flag)) found = {std::move(*value), flag};
    if (component == Component::gfd) from_environment("GFD_" + name);
    from_environment(name);
    if (found && !refers(found->value)) out.emplace(name, std::move(*found));
  }
  return out;
}

std::optional<Operand> operand_of(const DaemonSet& daemonset) {
  const auto main = main_container(daemonset);
  if (!main) return std::nullopt;
  Operand out;
  out.component = main->component;
  out.key = daemonset.meta.key();
  out.uid = daemonset.meta.uid;
  out.match_labels = daemonset.match_labels;
  out.node_selector = daemonset.node_selector;
  out.affinity_terms = daemonset.affinity_terms;
  out.tolerations = daemonset.tolerations;
  out.on_delete = daemonset.on_delete;
  out.generation = daemonset.meta.generation;
  out.overrides = overrides_of(*main->container, out.component);
  if (const auto mig = out.overrides.find("MIG_STRATEGY"); mig != out.overrides.end()) {
    out.mig_strategy = mig->second.value;
  }
  out.mps_root = has_mps_root(*main->container);
  out.version = PluginVersion::of_image(main->container->image);
  read_config_manager(daemonset, out);
  read_config_file(daemonset, *main->container, out);
  return out;
}

struct Owner {
  Provider provider = Provider::manifest;
  std::string name;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

Owner owner_of(const DaemonSet& daemonset) {
  if (const auto* controller = daemonset.meta.controller(); controller && controller->kind == "ClusterPolicy") {
    return {Provider::gpu_operator, std::string(controller->name.view())};
  }
  if (auto release = daemonset.meta.labels.get("app.kubernetes.io/instance")) {
    return {Provider::device_plugin_chart, std::string(*release)};
  }
  return {};
}

// Newest ControllerRevision by owning DaemonSet uid.
std::map<std::string_view, const ControllerRevision*> newest_revisions(const World& world) {
  std::map<std::string_view, const ControllerRevision*> newest;
  for (const auto& [key, revision] : world.revisions.all()) {
    const auto* owner = revision->meta.controller();
    if (owner == nullptr) continue;
    const ControllerRevision*& slot = newest[owner->uid.view()];
    if (slot == nullptr || slot->revision < revision->revision) slot = revision.get();
  }
  return newest;
}

// What the ClusterPolicy says that its DaemonSets do not say yet.
void read_announcement(const World& world, OperandSet& set) {
  if (set.provider != Provider::gpu_operator) return;
  // There can be one only; the two kinds exclude each other, so that these DaemonSets are about to go.
  if (!world.gpu_clusters.all().empty()) set.gpu_cluster = world.gpu_clusters.all().begin()->first.name;
  set.announcement_unknown = world.clusterpolicies_forbidden;
  if (set.announcement_unknown) return;
  const ClusterPolicy* policy = world.clusterpolicies.find(set.owner);
  if (policy == nullptr) return;
  set.clusterpolicy_generation = policy->meta.generation;
  auto differs = [&](const Operand& operand) {
    return operand.config_map != policy->config_name || operand.default_key != policy->config_default;
  };
  set.announced = policy->device_plugin_enabled && std::ranges::any_of(set.operands, differs);
  if (!set.announced) return;
  set.announced_config_map = policy->config_name;
  set.announced_default = policy->config_default;
}

}  // namespace

Discovery discover(const World& world) {
  const auto revisions = newest_revisions(world);
  std::map<std::tuple<std::string, Owner>, std::vector<Operand>> groups;
  for (const auto& [key, daemonset] : world.daemonsets.all()) {
    auto operand = operand_of(*daemonset);
    if (!operand) continue;
    if (auto it = revisions.find(operand->uid); it != revisions.end()) {
      operand->newest_hash = it->second->meta.labels.get(kRevisionHashLabel).value_or("");
      operand->newest_since = it->second->meta.creation_timestamp;
      operand->newest_number = it->second->revision;
    }
    groups[{key.ns, owner_of(*daemonset)}].push_back(std::move(*operand));
  }
  Discovery out;
  for (auto& [where, operands] : groups) {
    std::ranges::sort(operands, {}, &Operand::key);
    std::set<std::string> config_maps;
    for (const Operand& operand : operands) {
      if (operand.component == Component::plugin) config_maps.insert(operand.config_map);
    }
    const auto& [ns, owner] = where;
    if (config_maps.empty()) {
      out.complaints.push_back(fmt::format("DaemonSet {} has no device plugin beside it (same namespace and owner)",
                                           k8s::to_string(operands.front().key)));
    }
    for (const Operand& operand : operands) {
      const bool alone = config_maps.empty() && operand.component == Component::gfd;
      if (alone || (!config_maps.empty() && !operand.config_map.empty() && !config_maps.contains(operand.config_map))) {
        out.strays.push_back(operand);
      }
    }
    for (const std::string& config_map : config_maps) {
      OperandSet set;
      set.ns = ns;
      set.provider = owner.provider;
      set.owner = owner.name;
      set.config_map = config_map;
      for (const Operand& operand : operands) {
        // GFD or MPS without profiles of their own still serve the same nodes; what they get wrong shows in the labels.
        const bool bare = operand.component != Component::plugin && operand.config_map.empty();
        if (operand.config_map == config_map || bare) set.operands.push_back(operand);
      }
      read_announcement(world, set);
      out.sets.push_back(std::move(set));
    }
  }
  std::ranges::stable_sort(out.sets, {}, [](const OperandSet& set) {
    return std::tuple(set.provider != Provider::gpu_operator, set.config_map.empty(), set.ns);
  });
  return out;
}

const Operand* find_stray(const std::vector<Operand>& strays, Component component, const Node& node) {
  const auto found = std::ranges::find_if(strays, [&](const Operand& stray) {
    return stray.component == component && selects(stray, node, true) != Selects::no;
  });
  return found == strays.end() ? nullptr : &*found;
}

std::string config_difference(const Operand& operand, const Operand& plugin) {
  if (operand.config_map.empty()) {
    return fmt::format("mounts no ConfigMap, the plugin mounts {}", plugin.config_map);
  }
  if (operand.config_map != plugin.config_map || operand.key.ns != plugin.key.ns) {
    return fmt::format("mounts the ConfigMap {}/{}, the plugin mounts {}/{}", operand.key.ns, operand.config_map,
                       plugin.key.ns, plugin.config_map);
  }
  if (operand.node_label != plugin.node_label) {
    return fmt::format("follows the label {}, the plugin follows {}", operand.node_label, plugin.node_label);
  }
  if (operand.default_key != plugin.default_key || operand.fallbacks != plugin.fallbacks) {
    return fmt::format("has the default key \"{}\", the plugin \"{}\" (or their fallbacks differ)", operand.default_key,
                       plugin.default_key);
  }
  return {};
}

std::vector<WatchScope> wanted_scopes(const World& world, const PlannerSettings& settings) {
  using Kind = WatchScope::Kind;
  std::set<WatchScope> out;
  out.insert({Kind::configmaps, settings.operator_namespace, {}, settings.state_config_map});
  out.insert({Kind::configmaps,
              settings.operator_namespace,
              {{std::string(kRecordLabel), std::string(kRecordShardValue)}},
              {}});
  for (const OperandSet& set : discover(world).sets) {
    for (const Operand& operand : set.operands) {
      out.insert({Kind::pods, set.ns, operand.match_labels, {}});
      out.insert({Kind::controllerrevisions, set.ns, operand.match_labels, {}});
      if (!operand.config_map.empty()) out.insert({Kind::configmaps, set.ns, {}, operand.config_map});
    }
    if (!set.announced_config_map.empty()) out.insert({Kind::configmaps, set.ns, {}, set.announced_config_map});
  }
  return {out.begin(), out.end()};
}

}  // namespace gso
