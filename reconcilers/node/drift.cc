#include "reconcilers/node/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reconcilers/cluster/label_owners.h"
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

std::optional<std::int64_t> served_afterwards(const NodeAssessment& assessment, std::string_view resource) {
  if (!assessment.expectation) return std::nullopt;
  const std::string name(resource);
  const auto counted = assessment.expectation->capacity.find(name);
  if (counted != assessment.expectation->capacity.end()) return counted->second;
  const auto uncounted = assessment.expectation->divisible.find(name);
  if (uncounted == assessment.expectation->divisible.end()) return std::nullopt;
  return uncounted->second * std::max<std::int64_t>(1, assessment.measured_gpus);
}

std::map<std::string, std::int64_t> served_afterwards(const NodeAssessment& assessment) {
  if (!assessment.expectation) return {};
  std::map<std::string, std::int64_t> out = assessment.expectation->capacity;
  for (const auto& [resource, replicas] : assessment.expectation->divisible)
    out[resource] = served_afterwards(assessment, resource).value_or(0);
  return out;
}

bool is_count_known(const NodeAssessment& assessment, const std::string& resource) {
  return assessment.measured_gpus > 0 || !assessment.expectation ||
         !assessment.expectation->divisible.contains(resource);
}

LabelChange hand_over_label(const Node& node, std::string_view key, std::string_view policy) {
  LabelChange change;
  OwnedLabels owned = owned_labels(node);
  const auto label = owned.find(std::string(key));
  if (label == owned.end() || label->second.policy == policy) return change;
  label->second.policy = policy;
  change.owned = std::move(owned);
  return change;
}

}  // namespace gso
