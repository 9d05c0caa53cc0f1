// Namespaces where the operator evicts no pod: the planner and the executor ask the same class. The chart's admission
// policy of evictions has the same namespaces.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Why a node is Blocked: a pod that must leave runs in such a namespace.
inline constexpr std::string_view kProtectedNamespace = "ProtectedNamespace";

// Those of one World.
class ProtectedNamespaces {
 public:
  ProtectedNamespaces(const World& world, const PlannerSettings& settings);
  // Whose namespace it is: "the cluster", "the operator", "the device plugin", "KAI". Empty: none of these, so pods
  // there can be evicted.
  [[nodiscard]] std::string_view owner_of(std::string_view ns) const;

 private:
  std::map<std::string, std::string_view, std::less<>> owners_;
};

}  // namespace gso
