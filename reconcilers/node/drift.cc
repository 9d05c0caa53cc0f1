// See drift.h.
#include "reconcilers/node/drift.h"

#include <fmt/format.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"

namespace gso {

std::string_view baseline_excuse(const NodeAssessment& a) {
  switch (a.at_install) {
    case AtInstall::drifted:
      return kPreexistingDrift;
    case AtInstall::unproven:
      return a.verified.serving ? kUnproven : std::string_view();
    case AtInstall::shown:
      break;
  }
  return {};
}

std::string_view state_name(const NodeAssessment& a) {
  if (!drifts(a)) return to_string(phase_of(a));
  const std::string_view excuse = baseline_excuse(a);
  return excuse.empty() ? kDrift : excuse;
}

std::string drift_text(const NodeAssessment& a) {
  std::string text = a.labels_missing.empty() ? shown_difference(a) : std::string(a.labels_missing.view());
  const std::string_view obstacle = a.reload_obstacle.view();
  const bool says_why = obstacle.empty() || text.find(obstacle) != std::string::npos;
  return says_why ? text : fmt::format("{}; its pods are not restarted: {}", text, obstacle);
}

}  // namespace gso
