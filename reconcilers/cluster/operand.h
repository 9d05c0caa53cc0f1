// One DaemonSet of a device plugin as the operator understands it: component, version, and what its flags and
// variables override.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/snapshot.h"

namespace gso {

// --- The release of the device plugin in an image.

// The device plugin's version, from an image tag ("v0.17.1", "v0.17.1-ubi9"). Unknown (digest, "latest") counts as the
// worst case in every rule that depends on it.
struct PluginVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  bool known = false;
  [[nodiscard]] static PluginVersion of_image(std::string_view image);
  // Known and below a.b.c.
  [[nodiscard]] bool known_below(int a, int b, int c) const;
  [[nodiscard]] std::string to_string() const;  // "v0.17.1" or "unknown"
  friend auto operator<=>(const PluginVersion&, const PluginVersion&) = default;
};

// --- One NVIDIA operand as its DaemonSet's template describes it: its component, the source of its profiles, and the
// settings from its flags and environment.

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
  std::string newest_hash;         // controller-revision-hash of the newest ControllerRevision; empty: unknown.
  WallTime created{};              // When the DaemonSet was created.
  WallTime newest_since{};         // When that revision was first created, also if the template returned to it later.
  std::int64_t newest_number = 0;  // Its number in the DaemonSet's history: a revision that returns gets a new number.
  std::int64_t generation = 0;
  // From the config-manager sidecar; config_map is empty without such a sidecar.
  std::string config_map;
  std::string default_key;
  std::vector<std::string> fallbacks;
  std::string node_label;
  // Without a config-manager: the ConfigMap that the main container reads directly (--config-file, CONFIG_FILE), and
  // that path. Empty: none.
  std::string file_config_map;
  std::string config_file;
  // Of a standalone MPS daemon: the host runs the daemon, and the pods only ask it.
  bool watches_host = false;
  // Of a standalone MPS daemon: its controller ends the pod of a node whose driver is replaced.
  bool follows_driver_upgrades = false;
  // A host path for MPS is set, by MPS_ROOT or --mps-root; true also if the template does not show it.
  bool mps_root = false;
  // Environment that overrides the profile (flags.migStrategy), empty when not set.
  std::string mig_strategy;
  // Values of flags and environment variables for settings of a profile, by the variable's name; an empty value counts,
  // a value that the template does not contain (valueFrom, $(OTHER)) is omitted.
  struct Override {
    std::string value;
    std::string said_by;  // "MIG_STRATEGY", "GFD_MIG_STRATEGY", "--mig-strategy"
    friend bool operator==(const Override&, const Override&) = default;
  };
  std::map<std::string, Override> overrides;
  PluginVersion version;
  friend bool operator==(const Operand&, const Operand&) = default;
};

// A setting that a variable of the main container overrides, and the flag of that name ("--mig-strategy") overrides the
// variable; or one on whose invalid values the component exits. Source: the flags of the device plugin and of GFD
// (v0.20.0).
struct OperandSetting {
  enum class Kind : std::uint8_t { text, list, boolean };  // Repeated flags of a list are combined.
  std::string_view variable;
  Kind kind = Kind::text;
  bool gfd = false;          // GFD also reads it.
  int since = 0;             // Of v0.N: the first release that reads it.
  std::string_view field{};  // Of the profile.
  std::string_view code{};   // Of errors in that field.
};
inline constexpr std::string_view kMigStrategyVariable = "MIG_STRATEGY";
inline constexpr OperandSetting kOperandSettings[] = {
    {kMigStrategyVariable, OperandSetting::Kind::text, true, 0, "flags.migStrategy", "UnknownMigStrategy"},
    {"DEVICE_DISCOVERY_STRATEGY", OperandSetting::Kind::text, true, 16, "flags.deviceDiscoveryStrategy",
     "UnknownDiscoveryStrategy"},
    {"DEVICE_ID_STRATEGY", OperandSetting::Kind::text, false, 0, "flags.plugin.deviceIDStrategy",
     "UnknownDeviceIDStrategy"},
    {"DEVICE_LIST_STRATEGY", OperandSetting::Kind::list, false, 0, "flags.plugin.deviceListStrategy",
     "UnknownDeviceListStrategy"},
    {"SHARED_DEVICES_ALLOCATION_POLICY", OperandSetting::Kind::text, false, 20,
     "flags.plugin.sharedDevicesAllocationPolicy", "UnknownAllocationPolicy"},
    {"IMEX_CHANNEL_IDS", OperandSetting::Kind::list, false, 17, "imex.channelIDs", "InvalidImexChannels"},
    {"FAIL_ON_INIT_ERROR", OperandSetting::Kind::boolean, true},
    {"PASS_DEVICE_SPECS", OperandSetting::Kind::boolean},
    {"GDRCOPY_ENABLED", OperandSetting::Kind::boolean, false, 18},
    {"GDS_ENABLED", OperandSetting::Kind::boolean},
    {"MOFED_ENABLED", OperandSetting::Kind::boolean},
    {"IMEX_REQUIRED", OperandSetting::Kind::boolean, false, 17},
    {"MPS_ROOT"},
};

// The component of a main container of that name: the names that the GPU Operator's assets, the device plugin's chart
// and its static manifests use.
[[nodiscard]] std::optional<Component> component_of_container(std::string_view name);

// A container that is a component, or a standalone MPS daemon (below).
[[nodiscard]] bool is_operand_container(std::string_view name);
// The JSON of an object might have such a container: it has one of the names somewhere, which need no escapes in JSON.
[[nodiscard]] bool mentions_operand_container(std::string_view json);

// The operand that the DaemonSet describes; nullopt if none of its containers is a component. Without the fields that
// come from ControllerRevisions.
[[nodiscard]] std::optional<Operand> operand_of(const DaemonSet& daemonset);

// The container that runs or watches an MPS daemon without a device plugin, in the chart's DaemonSet.
inline constexpr std::string_view kStandaloneMpsContainer = "standalone-mps";
// The chart's DaemonSet of standalone MPS daemons; nullopt if it is another one. Its node affinity is kept without
// nvidia.com/mps.capable, which follows the profile of the node, and without what follows driver upgrades.
[[nodiscard]] std::optional<Operand> standalone_daemon_of(const DaemonSet& daemonset);

// Where a DaemonSet of whatever kind places its pods: only `key` and the placement of the answer are filled.
[[nodiscard]] Operand placement_of(const DaemonSet& daemonset);

// How an operand's choice of profiles differs from the plugin's ("mounts ConfigMap a, but the plugin mounts b"); empty
// if both load the same.
[[nodiscard]] std::string config_difference(const Operand& operand, const Operand& plugin);

}  // namespace gso
