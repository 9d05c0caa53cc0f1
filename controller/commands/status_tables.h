// The tables of `status`, and their JSON: nodes, and standalone MPS daemons.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "controller/commands/live/view.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/status.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/node/assess.h"

namespace gso {

// One node, in words. The pointers are into the world and the index.
struct NodeRow {
  std::string name;
  ShownState shown;
  std::string allocatable;
  const Node* node = nullptr;
  const NodeAssessment* assessment = nullptr;  // Null: no plugin.
  std::vector<GpuBar> slices = {};             // Of a node whose GPUs are partitioned.
  bool policy_is_gone = false;                 // The policy was deleted, and its last spec still governs the node.
  // The place on a screen that is too small for all: those that change come first, those with nothing to do last.
  [[nodiscard]] int rank() const {
    if (assessment != nullptr && assessment->in_change()) return 0;
    if (shown.in_trouble) return 1;
    return shown.state == "UpToDate" ? 3 : 2;
  }
};
// Nodes with GPUs or a device plugin, of those that `status.only` shows.
[[nodiscard]] std::vector<NodeRow> rows_of(const FleetStatus& status);

// As docs/json.md describes it.
[[nodiscard]] nlohmann::ordered_json node_json(const NodeRow& row);

// A table: its heading, and a line about each node.
[[nodiscard]] std::vector<LiveLine> node_lines(const std::vector<NodeRow>& nodes, bool wide, TerminalWidth width);
// Of nodes whose GPUs are partitioned; nothing, if there are none.
void print_slices(const std::vector<NodeRow>& nodes, TerminalWidth width, std::ostream& out);
// What the states mean that are no phases, each once, and what the operator does about such nodes. `assumed` and
// `operator_lease`: as for state_note().
void print_state_notes(const std::vector<NodeRow>& nodes, bool assumed, std::string_view operator_lease,
                       std::ostream& out);

// Of standalone MPS daemons: after an empty line; nothing without such a DaemonSet.
void print_daemons(const std::vector<DaemonProgress>& daemons, TerminalWidth width, std::ostream& out);
// Of the JSON document: "standaloneMps".
[[nodiscard]] nlohmann::ordered_json daemons_json(const std::vector<DaemonProgress>& daemons);

}  // namespace gso
