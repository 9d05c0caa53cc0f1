// `cleanup`: removes what the operator added to Nodes and policies before it is uninstalled. Uninstalling the chart
// runs it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>

#include "controller/config/options.h"
#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Subcommand;

struct CleanupOptions {
  std::string stop_deployment;                       // In --namespace: scaled to 0 first. Empty: nothing is stopped.
  k8s::Duration timeout = std::chrono::seconds(60);  // How long to wait for the leader to release the Lease; 1s to 1h.
  bool dry_run = false;                              // Only says what it would do; needs no lease.
  bool json = false;
};

// The whole of it on a given client. It holds the operator's own Lease meanwhile, so that no operator writes beside it,
// and removes Lease and record at the end. Doing it twice is harmless. Exit status: 0 nothing is left (but what is
// named as kept on purpose), 1 somebody else keeps the Lease or a write failed, 2 the cluster cannot be read.
boost::asio::awaitable<int> cleanup_command(k8s::ApiClient* client, k8s::Clock* clock, CleanupOptions cleanup,
                                            Options options, std::ostream* out, std::ostream* err);

[[nodiscard]] int run_cleanup(const CleanupOptions& cleanup, const Options& options, std::ostream& out,
                              std::ostream& err);

[[nodiscard]] Subcommand make_cleanup_command();

}  // namespace gso
