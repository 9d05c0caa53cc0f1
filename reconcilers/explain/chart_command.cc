#include "reconcilers/explain/chart_command.h"

#include <fmt/format.h>

#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"

namespace gso {
namespace {

// "helm list --namespace gso": works wherever the operator was installed by Helm.
std::string list_command(const HelmRelease& release, const PlannerSettings& settings) {
  return fmt::format("helm list --namespace {}",
                     shell_word(release.name.empty() ? settings.operator_namespace : release.ns));
}

}  // namespace

HelmRelease operator_release(const World& world, const PlannerSettings& settings) {
  for (const ConfigMap* config_map : in_order(world.configmaps)) {
    const k8s::StringMap& marks = config_map->meta.annotations;
    const auto name = marks.get("meta.helm.sh/release-name");
    const bool of_chart = config_map->meta.ns == settings.operator_namespace && marks.contains(kChartConfigAnnotation);
    if (!of_chart || !name) continue;
    const auto ns = marks.get("meta.helm.sh/release-namespace");
    return {std::string(ns.value_or(settings.operator_namespace)), std::string(*name)};
  }
  return {};
}

std::string upgrade_chart_command(const World& world, const PlannerSettings& settings, std::string_view values) {
  const HelmRelease release = operator_release(world, settings);
  return fmt::format(
      "{}  # names the chart{}; upgrade the release to that chart, from the repository or folder that it was "
      "installed from, with --reset-then-reuse-values {}",
      list_command(release, settings),
      release.name.empty() ? " and its release" : fmt::format(" of release {}", shown_value(release.name)), values);
}

std::string roll_back_chart_command(const World& world, const PlannerSettings& settings) {
  const HelmRelease release = operator_release(world, settings);
  const std::string_view correct = "to go on, correct the standaloneMps values and upgrade the release";
  if (release.name.empty())
    return fmt::format("{}  # names the release: `helm rollback` of it goes back; {}", list_command(release, settings),
                       correct);
  return fmt::format("helm rollback {} --namespace {}  # to go back; {}", shell_word(release.name),
                     shell_word(release.ns), correct);
}

}  // namespace gso
