// `status`: where every GPU node stands, read from the live cluster.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>

#include "controller/options.h"
#include "controller/text_table.h"
#include "k8sclient/client.h"
#include "k8sclient/error.h"
#include "reconcilers/fleet.h"
#include "reconcilers/snapshot.h"

namespace gso {

struct StatusOptions {
  bool json = false;
};

// Exit status: 0 fine, 1 when a node is Failed or Blocked, 2 when the cluster cannot be read.
[[nodiscard]] int run_status(const StatusOptions& status, const Options& options, std::ostream& out, std::ostream& err);

// Reads what planners read into `world`, once. Kinds that are not served stay empty; a kind or namespace that may not
// be read is named in `incomplete` and left out.
boost::asio::awaitable<k8s::Result<void>> read_world(k8s::ApiClient* client, PlannerSettings settings, World* world,
                                                     std::vector<std::string>* incomplete);

// What is to be said about kai-config now: the sharing mode in force, what cannot work, what an upgrade has wiped.
[[nodiscard]] std::vector<Finding> kai_findings(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                                k8s::WallTime now);

// Every node with GPUs, whether we have anything to do with it or not: the table, cut to the terminal's width, or the
// JSON document {"nodes":[…],"rollouts":[…],"kai":[…],"incomplete":[…]}. Returns true when a node is Failed or Blocked.
bool print_status(const World& world, FleetIndex& index, const std::vector<std::string>& incomplete, bool json,
                  TerminalWidth width, std::ostream& out, const std::vector<Finding>& kai = {});

}  // namespace gso
