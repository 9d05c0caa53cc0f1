// `plan FILE…`: what the operator would do now, over manifests; `plan --from-cluster`: over the live cluster, which is
// only read.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Subcommand;

struct PlanOptions {
  std::vector<std::string> files;  // "-" is stdin.
  bool from_cluster = false;       // Instead of files.
  std::string now;                 // RFC 3339; empty: the present.
  std::string only;                // One reconciler's name; empty: all.
  // Conditions that the planners see count as having held for this long.
  k8s::Duration assume_observed_for{0};
  bool json = false;
  PlannerSettings settings;
  std::string lease_name = Options().lease_name;  // Of the operator.
};

// Exit status: 0 fine, 1 with a finding of severity error, 2 for unreadable input or a wrong argument.
// `connection`: for the live cluster.
[[nodiscard]] int run_plan(const PlanOptions& options, const Options& connection, std::istream& in, std::ostream& out,
                           std::ostream& err);

// The live cluster's plan, on a given client. `err` says first if no operator is at work there.
boost::asio::awaitable<int> plan_cluster(k8s::Reader* client, k8s::Clock* clock, PlanOptions options, std::ostream* out,
                                         std::ostream* err);

[[nodiscard]] Subcommand make_plan_command();

}  // namespace gso
