// Namespaces where the operator evicts no pod. The planner and the executor ask the same function; the chart's
// admission policy of evictions has the same namespaces.
#pragma once

#include <string_view>

#include "reconcilers/model/snapshot.h"

namespace gso {

// Why a node is Blocked: a pod that must leave runs in such a namespace.
inline constexpr std::string_view kProtectedNamespace = "ProtectedNamespace";

// Whose namespace it is: "the cluster", "the operator", "the device plugin", "KAI". Empty: none of these, so pods there
// can be evicted.
[[nodiscard]] std::string_view protected_for(const World& world, const PlannerSettings& settings, std::string_view ns);

}  // namespace gso
