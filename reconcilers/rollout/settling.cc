#include "reconcilers/rollout/settling.h"

#include <fmt/format.h>

#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {

TimerKey settled_timer(const Pass& pass, std::size_t installation) {
  return {Timer::settled, pass.index.discovery.installations[installation].id(), pass.index.signatures[installation]};
}

TimerKey differing_timer(const PluginInstallation& installation) {
  std::string state = fmt::format("{}|{}|{}", installation.clusterpolicy_generation, installation.announced_config_map,
                                  installation.announced_default);
  for (const Operand& operand : installation.operands) state += fmt::format("|{}:{}", operand.uid, operand.generation);
  return {Timer::differing, installation.id(), short_hash(state)};
}

std::string lasting_difference(Pass& pass, const PluginInstallation& installation) {
  if (!installation.announced || !pass.ages.has_run_for(differing_timer(installation), kDifferencePatience)) return {};
  const auto named = [&](const Operand& operand) {
    return fmt::format("DaemonSet {} has config {} default {}", k8s::to_string(operand.key),
                       operand.config_map.empty() ? "(none)" : operand.config_map,
                       operand.default_key.empty() ? "(none)" : operand.default_key);
  };
  std::vector<std::string> different;
  for (const Operand& operand : installation.operands) {
    if (operand.config_map != installation.announced_config_map ||
        operand.default_key != installation.announced_default)
      different.push_back(named(operand));
  }
  return fmt::format(
      "{}, but ClusterPolicy {} has config {} default {}, for longer than {}: someone edited the DaemonSets by hand, "
      "or the GPU Operator does not run. The GPU Operator overwrites such edits only when it has another change to "
      "write. No node starts until both agree: set spec.devicePlugin.config of the ClusterPolicy to the intended "
      "values",
      first_names(different), installation.owner,
      installation.announced_config_map.empty() ? "(none)" : installation.announced_config_map,
      installation.announced_default.empty() ? "(none)" : installation.announced_default,
      k8s::format_go_duration(kDifferencePatience));
}

}  // namespace gso
