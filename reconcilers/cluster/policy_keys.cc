// See policy_keys.h.
#include "reconcilers/cluster/policy_keys.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/cluster/config_map_keys.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/effective_key.h"
#include "reconcilers/profile/profile.h"

namespace gso {

std::string missing_key(const SharingPolicy& policy, std::string_view id, const ConfigMap& config_map) {
  const std::vector<std::string> keys = keys_of(config_map);
  return fmt::format(
      "policy {} names the key \"{}\" (spec.profile.configMapKey), which ConfigMap {} does not have{}; it has {}",
      policy.meta.name, shown_value(*policy.config_map_key), id, key_advice(*policy.config_map_key, keys),
      first_names(keys));
}

bool relies_on_single_key(const PluginInstallation& installation, const ConfigMap& config_map) {
  const std::vector<std::string> keys = keys_of(config_map);
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    return !operand.config_map.empty() &&
           resolve_effective_key("", operand.default_key, operand.fallbacks, keys).source ==
               EffectiveKey::Source::fallback_single;
  });
}

}  // namespace gso
