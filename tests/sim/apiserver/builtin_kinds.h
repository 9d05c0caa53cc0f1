// The rules of each built-in kind.
#pragma once

#include <string>
#include <string_view>

#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

[[nodiscard]] Strategy node_strategy();
[[nodiscard]] Strategy pod_strategy();
[[nodiscard]] Strategy config_map_strategy();
[[nodiscard]] Strategy secret_strategy();
[[nodiscard]] Strategy namespace_strategy();
[[nodiscard]] Strategy daemon_set_strategy();
[[nodiscard]] Strategy deployment_strategy();  // And ReplicaSets.
[[nodiscard]] Strategy controller_revision_strategy();
[[nodiscard]] Strategy lease_strategy();
[[nodiscard]] Strategy disruption_budget_strategy();
// Events are stored as core/v1 whichever API wrote them; events.k8s.io/v1 asks for more fields.
[[nodiscard]] Strategy event_strategy(bool new_api);
[[nodiscard]] Strategy rbac_strategy();
[[nodiscard]] Strategy custom_resource_definition_strategy();  // crd.cc

[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace gso::sim
