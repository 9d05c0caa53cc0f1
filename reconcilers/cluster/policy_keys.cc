// See policy_keys.h.
#include "reconcilers/cluster/policy_keys.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/effective_key.h"
#include "reconcilers/profile/profile.h"

namespace gso {

std::string missing_key(const SharingPolicy& policy, std::string_view id, const ConfigMap& config_map) {
  std::vector<std::string> keys;
  for (const auto& [key, text] : config_map.data) keys.push_back(key);
  return fmt::format(
      "policy {} names the key \"{}\" (spec.profile.configMapKey), which ConfigMap {} does not have{}; it has {}",
      policy.meta.name, shown_value(*policy.config_map_key), id, key_advice(*policy.config_map_key, keys),
      first_names(keys));
}

bool relies_on_single_key(const PluginInstallation& installation, const ConfigMap& config_map) {
  std::vector<std::string> keys;
  for (const auto& [key, text] : config_map.data) keys.push_back(key);
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    return !operand.config_map.empty() &&
           resolve_effective_key("", operand.default_key, operand.fallbacks, keys).source ==
               EffectiveKey::Source::fallback_single;
  });
}

}  // namespace gso
