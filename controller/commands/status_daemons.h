// What `status` shows of standalone MPS daemons.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "controller/commands/shared/text_table.h"
#include "reconcilers/explain/standalone_daemons.h"

namespace gso {

// A table, after an empty line; nothing without such a DaemonSet.
void print_daemons(const std::vector<DaemonProgress>& daemons, TerminalWidth width, std::ostream& out);
// Of the JSON document: "standaloneMps".
[[nodiscard]] nlohmann::ordered_json daemons_json(const std::vector<DaemonProgress>& daemons);

}  // namespace gso
