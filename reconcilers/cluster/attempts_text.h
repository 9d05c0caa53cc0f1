// What the record knows of attempts <-> JSON: revisions that failed, the last good ones, switches that people have set
// on SharingRollouts, and canaries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/cluster/record.h"

namespace gso {

// Sets the fields failures, good, canaries and rollouts, each if it is not empty.
void print_attempts(const FleetRecord& record, nlohmann::json& root);
// The first error in these fields; empty: none.
[[nodiscard]] std::string read_attempts(const nlohmann::json& root, FleetRecord& out);

}  // namespace gso
