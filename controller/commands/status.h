// `status`: the state of every GPU node, read from the live cluster, once or with --watch.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "controller/commands/live/view.h"
#include "controller/commands/shared/command.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/status_watch.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"

namespace gso {

struct StatusOptions {
  OutputForm form = OutputForm::text;
  bool watch = false;  // Shown again whenever it changes, until SIGINT.
  NodeFilterFlags only;
};

// The fleet as it is now, once. `only`: the nodes to show. The record of a fleet that has none is assumed, as `explain`
// and `audit` do. Exit status: 0 fine, 1 when a node is Failed or Blocked or the operator has stopped renewing its
// Lease, 2 when the cluster, or what device plugins load, cannot be read.
boost::asio::awaitable<int> status_on_cluster(k8s::Reader* client, k8s::Clock* clock, OutputForm form, NodeFilter only,
                                              PlannerSettings settings, k8s::ObjectKey lease, std::ostream* out,
                                              std::ostream* err);

// What is shown of a look, and how.
struct StatusView {
  OutputForm form = OutputForm::text;
  TerminalWidth width = 0;       // Tables and sentences fit it; wide tables are as wide as they are.
  NodeFilter only{};             // The nodes to show; the exit status is of these as well.
  bool in_change_first = false;  // Nodes in a change, then those in trouble; else by name.
};
// Every node with GPUs, also those that the operator does not manage, and every recorded rollout: tables, or a document
// {"operator":…,"baselineAssumed":…,"nodes":[…],"rollouts":[…],"standaloneMps":[…],"kai":[…],"findings":[…],"incomplete":[…]}.
// Returns the exit status: that of status_on_cluster().
int print_status(const FleetLook& look, const StatusView& view, std::ostream& out);

// --- Its tables, and their JSON: nodes, and standalone MPS daemons. In status_tables.cc.

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
// Nodes with GPUs or a device plugin, of those that `view.only` shows.
[[nodiscard]] std::vector<NodeRow> rows_of(const FleetLook& look, const StatusView& view);

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

[[nodiscard]] Subcommand make_status_command();

}  // namespace gso
