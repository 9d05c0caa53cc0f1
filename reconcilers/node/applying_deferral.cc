#include "reconcilers/node/applying_deferral.h"

#include "reconcilers/model/retry.h"

namespace gso {

std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& a, std::string_view retry) {
  std::optional<Deferral> deferral = deferral_of(node);
  if (!deferral || deferral->to != a.target.view() || asks_again(deferral->retry, retry)) return std::nullopt;
  return deferral;
}

}  // namespace gso
