// Flags and environment variables against the profile.
#include "reconcilers/cluster/overrides.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/profile.h"

namespace gso {
namespace {

struct Setting {
  std::string_view variable;
  std::string_view field;
  std::string_view code;
  bool gfd;  // GFD also reads it.
};

constexpr std::string_view kChannels = "IMEX_CHANNEL_IDS";
constexpr std::string_view kDiscovery = "DEVICE_DISCOVERY_STRATEGY";

constexpr std::array<Setting, 7> kSettings{
    {{"MIG_STRATEGY", "flags.migStrategy", "UnknownMigStrategy", true},
     {"MIG_STRATEGY", "flags.migStrategy", "MPSWithMixedMIG", false},
     {kDiscovery, "flags.deviceDiscoveryStrategy", "UnknownDiscoveryStrategy", true},
     {"DEVICE_ID_STRATEGY", "flags.plugin.deviceIDStrategy", "UnknownDeviceIDStrategy", false},
     {"DEVICE_LIST_STRATEGY", "flags.plugin.deviceListStrategy", "UnknownDeviceListStrategy", false},
     {"SHARED_DEVICES_ALLOCATION_POLICY", "flags.plugin.sharedDevicesAllocationPolicy", "UnknownAllocationPolicy",
      false},
     {kChannels, "imex.channelIDs", "InvalidImexChannels", false}}};

// Variables that Go reads as a boolean.
constexpr std::array<std::string_view, 6> kBooleans{"FAIL_ON_INIT_ERROR", "PASS_DEVICE_SPECS", "GDRCOPY_ENABLED",
                                                    "GDS_ENABLED",        "MOFED_ENABLED",     "IMEX_REQUIRED"};

// Like strconv.ParseBool, which is not called for an empty variable.
bool is_go_bool(std::string_view text) {
  static constexpr std::array<std::string_view, 13> kWords{"",  "1", "t", "T",     "TRUE",  "true", "True",
                                                           "0", "f", "F", "FALSE", "false", "False"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

// The plugin accepts channel 0 or none. An empty variable is not a list: the profile's value is used.
bool is_channel_zero(std::string_view text) {
  return parse_go_int(trim_space(text), 0) == 0;
}

std::optional<std::string> complaint(Component component, std::string_view field, std::string_view value) {
  if (field == "imex.channelIDs") {
    return is_channel_zero(value) ? std::nullopt : std::optional<std::string>("only 0 is allowed");
  }
  if (component == Component::gfd && field == "flags.deviceDiscoveryStrategy" && value == "vfio") {
    return std::nullopt;
  }
  return word_complaint(field, value);
}

bool overrides(const Operand& operand, const Setting& setting) {
  const auto found = operand.overrides.find(std::string(setting.variable));
  return found != operand.overrides.end() && !complaint(operand.component, setting.field, found->second.value) &&
         !(setting.code == "MPSWithMixedMIG" && found->second.value == "mixed");
}

// A variable that the release does not support yet has no effect.
bool is_read(const Operand& operand, std::string_view variable) {
  static constexpr std::array<std::pair<std::string_view, int>, 5> kSince{{{kDiscovery, 16},
                                                                           {kChannels, 17},
                                                                           {"IMEX_REQUIRED", 17},
                                                                           {"GDRCOPY_ENABLED", 18},
                                                                           {"SHARED_DEVICES_ALLOCATION_POLICY", 20}}};
  return std::none_of(kSince.begin(), kSince.end(), [&](const auto& since) {
    return since.first == variable && operand.version.known_below(0, since.second, 0);
  });
}

}  // namespace

std::vector<std::string> wrong_settings(const Operand& operand) {
  std::vector<std::string> out;
  if (operand.component == Component::mps) return out;  // The daemon checks none of them.
  const std::string_view who = operand.component == Component::gfd ? "GPU Feature Discovery" : "the plugin";
  const auto say = [&](const Operand::Override& setting, std::string_view right) {
    out.push_back(fmt::format("{} is \"{}\", and {} exits at start on every node, regardless of the profile; {}",
                              setting.said_by, shown_value(setting.value), who, right));
  };
  for (const Setting& setting : kSettings) {
    const auto found = operand.overrides.find(std::string(setting.variable));
    const bool applies = operand.component == Component::plugin || setting.gfd;
    if (found == operand.overrides.end() || setting.code == "MPSWithMixedMIG" || !applies ||
        !is_read(operand, setting.variable))
      continue;
    if (setting.variable == kChannels && found->second.value.empty()) continue;
    if (const auto right = complaint(operand.component, setting.field, found->second.value)) say(found->second, *right);
  }
  for (const std::string_view variable : kBooleans) {
    const auto found = operand.overrides.find(std::string(variable));
    const bool applies = operand.component == Component::plugin || variable == "FAIL_ON_INIT_ERROR";
    if (found != operand.overrides.end() && applies && is_read(operand, variable) && !is_go_bool(found->second.value)) {
      say(found->second, "use true or false");
    }
  }
  return out;
}

OverriddenErrors overridden_errors(const Operand& plugin, const Operand* gfd) {
  OverriddenErrors out;
  for (const Setting& setting : kSettings) {
    if (overrides(plugin, setting) && (!setting.gfd || gfd == nullptr || overrides(*gfd, setting))) {
      out.insert(setting.code);
    }
  }
  return out;
}

bool has_mps_root(const Operand& plugin, const Profile& profile) {
  if (plugin.mps_root || plugin.overrides.contains("MPS_ROOT")) {
    return plugin.mps_root;
  }
  const auto setting = profile.settings.find("flags.mpsRoot");
  return setting != profile.settings.end() && !setting->second.empty();
}

}  // namespace gso
