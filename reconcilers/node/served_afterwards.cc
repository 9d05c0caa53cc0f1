#include "reconcilers/node/served_afterwards.h"

#include <algorithm>

namespace gso {

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

}  // namespace gso
