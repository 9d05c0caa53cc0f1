// Flags and environment variables against the profile.
#include "reconcilers/overrides.h"

#include <array>
#include <string_view>

#include "reconcilers/profile/profile_checks.h"

namespace gso {
namespace {

struct Setting {
  std::string_view variable;
  std::string_view field;
  std::string_view code;
  bool gfd;  // GFD reads it too.
};

constexpr std::array<Setting, 6> kSettings{
    {{"MIG_STRATEGY", "flags.migStrategy", "UnknownMigStrategy", true},
     {"MIG_STRATEGY", "flags.migStrategy", "MPSWithMixedMIG", false},
     {"DEVICE_DISCOVERY_STRATEGY", "flags.deviceDiscoveryStrategy", "UnknownDiscoveryStrategy", true},
     {"DEVICE_ID_STRATEGY", "flags.plugin.deviceIDStrategy", "UnknownDeviceIDStrategy", false},
     {"DEVICE_LIST_STRATEGY", "flags.plugin.deviceListStrategy", "UnknownDeviceListStrategy", false},
     {"SHARED_DEVICES_ALLOCATION_POLICY", "flags.plugin.sharedDevicesAllocationPolicy", "UnknownAllocationPolicy",
      false}}};

bool overrides(const Operand& operand, const Setting& setting) {
  const auto found = operand.overrides.find(std::string(setting.variable));
  return found != operand.overrides.end() && is_known_word(setting.field, found->second) &&
         !(setting.code == "MPSWithMixedMIG" && found->second == "mixed");
}

}  // namespace

BeatenErrors beaten_errors(const Operand& plugin, const Operand* gfd) {
  BeatenErrors out;
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
