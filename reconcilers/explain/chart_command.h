// Commands about the Helm release of the operator's chart: what its objects do not show is said in words.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

// The chart's ConfigMap has it, beside Helm's own annotations.
inline constexpr std::string_view kChartConfigAnnotation = "gpusharing.dev/crds";

// The release that installed the operator. Empty: its ConfigMap was not read, or Helm did not install it.
struct HelmRelease {
  std::string ns;
  std::string name;
};
[[nodiscard]] HelmRelease operator_release(const World& world, const PlannerSettings& settings);

// Shows which chart the release has, because no object knows where that chart came from. The comment behind it says
// what an upgrade must set (`values`: "--set modes.rollouts=Enforce").
[[nodiscard]] std::string upgrade_chart_command(const World& world, const PlannerSettings& settings,
                                                std::string_view values);
// Takes the release back to its former values. Where the release is unknown: shows its name.
[[nodiscard]] std::string roll_back_chart_command(const World& world, const PlannerSettings& settings);

}  // namespace gso
