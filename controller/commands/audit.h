// `audit`: what is wrong with GPU sharing in a cluster, by one look with the user's own kubeconfig. Reads only, needs
// nothing installed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>
#include <vector>

#include "controller/commands/shared/print.h"
#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"

namespace gso {

struct Subcommand;

struct AuditOptions {
  std::vector<std::string> files;  // Manifests instead of the live cluster; "-" is stdin.
  OutputForm form = OutputForm::text;
  std::string lease_name = Options().lease_name;  // Of the operator.
};

// Exit status: 0 fine, 1 with a finding of severity error, 2 when the cluster cannot be read.
[[nodiscard]] int run_audit(const AuditOptions& audit, const Options& options, std::istream& in, std::ostream& out,
                            std::ostream& err);

// The same on a given client.
boost::asio::awaitable<int> audit_cluster(k8s::Reader* client, k8s::Clock* clock, AuditOptions audit,
                                          PlannerSettings settings, std::ostream* out, std::ostream* err);

// Of what has been read. `view` gets a record where it has none.
[[nodiscard]] int audit_view(ClusterView& view, const PlannerSettings& settings, k8s::WallTime now, OutputForm form,
                             std::ostream& out);

[[nodiscard]] Subcommand make_audit_command();

}  // namespace gso
