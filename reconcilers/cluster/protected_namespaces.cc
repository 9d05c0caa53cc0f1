#include "reconcilers/cluster/protected_namespaces.h"

#include "reconcilers/cluster/consumers.h"
#include "reconcilers/cluster/kai_view.h"

namespace gso {

// A namespace that has two owners is the first one's.
ProtectedNamespaces::ProtectedNamespaces(const World& world, const PlannerSettings& settings) {
  owners_.emplace("kube-system", "the cluster");
  owners_.emplace(settings.operator_namespace, "the operator");
  for (const auto& [key, daemonset] : world.daemonsets.all()) {
    if (runs_operand(*daemonset)) owners_.emplace(daemonset->meta.ns.view(), "the device plugin");
  }
  const KaiView kai = view_kai(world.kai, settings.kai);
  if (!kai.served) return;
  owners_.emplace(kai.ns, "KAI");
  owners_.emplace(kai.reservations, "KAI");
}

std::string_view ProtectedNamespaces::owner_of(std::string_view ns) const {
  const auto at = owners_.find(ns);
  return at == owners_.end() ? std::string_view() : at->second;
}

}  // namespace gso
