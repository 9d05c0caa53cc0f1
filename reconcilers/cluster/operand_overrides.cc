// Reads flags and environment of a main container in the same way as the component.
#include "reconcilers/cluster/operand_overrides.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace gso {
namespace {

// Variables that override a field of the profile, or on whose invalid values the component exits; the flag of that name
// overrides the variable. Source: the flags of the device plugin and of GFD (v0.20.0).
struct Overriding {
  std::string_view variable;
  bool boolean = false;  // The flag needs no value.
  bool list = false;     // Repeated flags are combined.
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

// "--mig-strategy=x", or "--mig-strategy", "x"; one dash works like two.
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

// The kubelet inserts another variable's value.
bool refers(std::string_view value) {
  return value.find("$(") != std::string_view::npos;
}

}  // namespace

std::map<std::string, Operand::Override> overrides_of(const ContainerSpec& container, Component component) {
  std::map<std::string, Operand::Override> out;
  for (const Overriding& setting : kOverriding) {
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

}  // namespace gso
