// `status`: the state of every GPU node, read from the live cluster, once or with --watch.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/print.h"
#include "controller/config/options.h"
#include "controller/reading/operator_lease.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Subcommand;

struct StatusOptions {
  OutputForm form = OutputForm::text;
  bool watch = false;  // Shown again whenever it changes, until SIGINT.
  NodeFilterFlags only;
};

// Exit status: 0 fine, 1 when a node is Failed or Blocked or the operator has stopped renewing its Lease, 2 when the
// cluster, or what device plugins load, cannot be read.
[[nodiscard]] int run_status(const StatusOptions& status, const Options& options, std::ostream& out, std::ostream& err);

// The fleet as it is now, once, with the exit status of run_status(). `only`: the nodes to show. The record of a fleet
// that has none is assumed, as `explain` and `audit` do.
boost::asio::awaitable<int> status_on_cluster(k8s::Reader* client, k8s::Clock* clock, OutputForm form, NodeFilter only,
                                              PlannerSettings settings, k8s::ObjectKey lease, std::ostream* out,
                                              std::ostream* err);

// What is to be said about kai-config now: the sharing mode in force, what cannot work, what an upgrade has wiped.
[[nodiscard]] std::vector<Finding> kai_findings(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                                k8s::WallTime now);

// What there is to print.
struct FleetStatus {
  const World& world;
  FleetIndex& index;  // Refreshed.
  const PlannerSettings& settings;
  k8s::WallTime now;
  std::vector<std::string> incomplete;
  std::vector<Finding> kai;
  std::optional<NoOperator> no_operator{};
  NodeFilter only{};             // The nodes to show; the exit status is of these as well.
  bool in_change_first = false;  // Nodes in a change, then those in trouble; else by name.
  bool assumed = false;          // The fleet has no record: assume_baseline() took its place.
  std::string operator_lease{};  // That an operator renews; empty: none does, or that is unknown.
};
// Every node with GPUs, also those that the operator does not manage, and every recorded rollout: tables, cut to the
// terminal's width (not the wide one), or a document
// {"operator":…,"baselineAssumed":…,"nodes":[…],"rollouts":[…],"standaloneMps":[…],"kai":[…],"findings":[…],"incomplete":[…]}.
// Returns true when a node is Failed or Blocked, or when the operator that ran here has stopped.
bool print_status(const FleetStatus& status, OutputForm form, TerminalWidth width, std::ostream& out);

[[nodiscard]] Subcommand make_status_command();

}  // namespace gso
