// See kai_gate.h.
#include "reconcilers/rollout/kai_gate.h"

#include <fmt/format.h>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/profile.h"

namespace gso {

std::optional<KaiHindrance> kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  constexpr std::int64_t kLookupsPerNode = 16;  // Pods that are looked up in one pass.
  if (!excludes_kai(a.profile && a.profile->valid ? &a.profile->profile() : nullptr)) return std::nullopt;
  const KaiWorld& kai = pass.s.world.kai;
  std::int64_t asks = kLookupsPerNode;
  const UnreservedConsumers unreserved = unreserved_consumers(pass.s, pass.index.kai, node, asks, pass.plan.kai_wanted);
  std::string use = pass.index.kai.use_of(node);
  if (use.empty() && !unreserved.pods.empty()) {
    use = fmt::format("fraction pod {}, without a reservation", *unreserved.pods.begin());
  }
  if (kai.use_known && use.empty() && unreserved.known) return std::nullopt;
  if (kai.use_known && !use.empty()) return KaiHindrance{true, fmt::format("KAI shares the node's GPUs ({})", use)};
  pass.look_again_in(std::chrono::seconds(1));
  const std::string why =
      kai.use_known ? std::string("the pods that KAI has bound are being looked up") : kai.incomplete;
  return KaiHindrance{
      false, fmt::format("it is not known yet whether KAI shares the node's GPUs{}{}", why.empty() ? "" : ": ", why)};
}

bool report_kai_hindrance(Pass& pass, const std::string& node, const NodeAssessment& a) {
  const auto hindrance = kai_hindrance(pass, node, a);
  if (!hindrance) return false;
  const Finding found = finding_of(node, *hindrance);
  pass.finding(found.severity, found.object, found.reason, found.message);
  return true;
}

}  // namespace gso
