#include "reconcilers/node/applying_deferral.h"

#include <chrono>

#include "reconcilers/model/policy.h"

namespace gso {

std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& a, const SharingPolicy* policy) {
  std::optional<Deferral> deferral = deferral_of(node);
  const std::string_view retry = policy == nullptr ? std::string_view() : retry_of(*policy);
  if (!deferral || deferral->to != a.target.view() || asks_again(deferral->retry, retry)) return std::nullopt;
  const bool evicts = policy != nullptr && policy->rollout.workloads == WorkloadMode::evict;
  return evicts && !deferral->evicts ? std::nullopt : deferral;
}

Duration deferral_length(Duration idle_timeout) {
  constexpr Duration kNoPatience = std::chrono::seconds(10);
  return idle_timeout < kNoPatience ? std::chrono::minutes(1) : idle_timeout;
}

}  // namespace gso
