#include "reconcilers/node/applying_deferral.h"

#include <chrono>

#include "reconcilers/model/retry.h"

namespace gso {

std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& a, std::string_view retry) {
  std::optional<Deferral> deferral = deferral_of(node);
  if (!deferral || deferral->to != a.target.view() || asks_again(deferral->retry, retry)) return std::nullopt;
  return deferral;
}

Duration deferral_length(Duration idle_timeout) {
  constexpr Duration kNoPatience = std::chrono::seconds(10);
  return idle_timeout < kNoPatience ? std::chrono::minutes(1) : idle_timeout;
}

}  // namespace gso
