// Profiles in the values of a Helm chart. Two charts make the plugin's ConfigMap of their values: that of the device
// plugin (config.map) and that of the GPU Operator (devicePlugin.config.data), each also below the name of a subchart.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct ChartProfiles {
  std::string path;                     // Of the mapping from keys to profiles: "config.map".
  std::string config_map_name;          // Empty: the chart takes it from the release.
  DocumentValue config_map;             // With the mapping as its data.
  std::vector<Diagnostic> diagnostics;  // About the values; an info says what is checked.
};

// Of a values file. Empty: it has no such values.
[[nodiscard]] std::vector<ChartProfiles> chart_profiles(const DocumentValue& document);
// Of an object that installs a chart with values: Flux' HelmRelease, Argo CD's Application.
[[nodiscard]] std::vector<ChartProfiles> release_profiles(const DocumentValue& object);

}  // namespace gso
