// Times of the record <-> JSON: its timers, and the last texts of its keys.
//
//   "timers": {"drifting/MACHINE/REVISION": "2026-03-02T08:00:00Z", …}
//   "history": {"namespace/configmap/key": [{"revision", "since", "doubtfulUntil"}, …], …}
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/cluster/record.h"

namespace gso {

// Sets the two fields, each if it is not empty.
void print_times(const FleetRecord& record, nlohmann::json& root);
// The first error in the two fields; empty: none.
[[nodiscard]] std::string read_times(const nlohmann::json& root, FleetRecord& out);

}  // namespace gso
