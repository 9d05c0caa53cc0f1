// CustomResourceDefinitions: their own rules, and the resources that they add to the registry.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

// The resources that a definition serves, one for each served version.
[[nodiscard]] std::vector<ResourcePtr> resources_of_crd(const nlohmann::json& crd);

// The status that the server's controllers give a definition: accepted names, Established, stored versions.
[[nodiscard]] nlohmann::json established_status(const nlohmann::json& crd, k8s::WallTime now);

}  // namespace gso::sim
