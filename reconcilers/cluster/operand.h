// One NVIDIA operand as its DaemonSet's template describes it: which component it is, where its profiles come from, and
// what its flags and environment say.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/plugin_version.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

enum class Component { plugin, gfd, mps };
// "plugin", "gfd", "mps": also the keys of the annotation gpusharing.dev/replace.
[[nodiscard]] std::string_view to_string(Component component);
[[nodiscard]] std::optional<Component> parse_component(std::string_view text);

// One DaemonSet that is an operand.
struct Operand {
  Component component = Component::plugin;
  ObjectKey key;
  std::string uid;
  std::map<std::string, std::string> match_labels;
  std::map<std::string, std::string> node_selector;
  std::vector<std::vector<NodeSelectorRequirement>> affinity_terms;
  std::vector<Toleration> tolerations;
  bool on_delete = false;
  std::string newest_hash;         // controller-revision-hash of the newest ControllerRevision; empty: not known.
  WallTime newest_since{};         // When that came to be: its first day, where it has come back.
  std::int64_t newest_number = 0;  // Its place in the DaemonSet's history: one that comes back gets a new one.
  std::int64_t generation = 0;
  // From the config-manager sidecar; config_map is empty where there is none.
  std::string config_map;
  std::string default_key;
  std::vector<std::string> fallbacks;
  std::string node_label;
  // Without a config-manager: the ConfigMap that the main container reads by itself (--config-file, CONFIG_FILE), and
  // that path. Empty: none.
  std::string file_config_map;
  std::string config_file;
  // A host path for MPS is set, by MPS_ROOT or --mps-root; true too where that cannot be told from the template.
  bool mps_root = false;
  // Environment that overrides the profile (flags.migStrategy), empty when not set.
  std::string mig_strategy;
  // What flags and environment say for settings of a profile, by the variable's name; an empty value counts, one that
  // the template does not tell (valueFrom, $(OTHER)) is not in here.
  struct Override {
    std::string value;
    std::string said_by;  // "MIG_STRATEGY", "GFD_MIG_STRATEGY", "--mig-strategy"
    friend bool operator==(const Override&, const Override&) = default;
  };
  std::map<std::string, Override> overrides;
  PluginVersion version;
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Which component a main container of that name is: as the GPU Operator's assets, the device plugin's chart and its
// static manifests call it.
[[nodiscard]] std::optional<Component> component_of_container(std::string_view name);

// The operand that the DaemonSet is; nullopt where none of its containers is a component. What ControllerRevisions say
// is not in it.
[[nodiscard]] std::optional<Operand> operand_of(const DaemonSet& daemonset);

// How an operand's choice of profiles differs from the plugin's ("mounts the ConfigMap a, the plugin mounts b"); empty
// where both load the same.
[[nodiscard]] std::string config_difference(const Operand& operand, const Operand& plugin);

}  // namespace gso
