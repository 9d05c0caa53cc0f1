#include "reconcilers/cluster/protected_namespaces.h"

#include <algorithm>

#include "reconcilers/cluster/consumers.h"
#include "reconcilers/cluster/kai_view.h"

namespace gso {

std::string_view protected_for(const World& world, const PlannerSettings& settings, std::string_view ns) {
  if (ns == "kube-system") return "the cluster";
  if (ns == settings.operator_namespace) return "the operator";
  const bool operands = std::ranges::any_of(world.daemonsets.all(), [&](const auto& entry) {
    return entry.second->meta.ns == ns && runs_operand(*entry.second);
  });
  if (operands) return "the device plugin";
  const KaiView kai = view_kai(world.kai, settings.kai);
  return kai.served && (ns == kai.ns || ns == kai.reservations) ? "KAI" : std::string_view();
}

}  // namespace gso
