// `plan FILE…`: what the operator would do now, over manifests instead of a cluster.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/time.h"
#include "reconcilers/snapshot.h"

namespace gso {

struct PlanOptions {
  std::vector<std::string> files;  // "-" is stdin.
  std::string now;                 // RFC 3339; empty: the present.
  std::string only;                // One reconciler's name; empty: all.
  // Conditions that the planners see count as having held for this long.
  k8s::Duration assume_observed_for{0};
  bool json = false;
  PlannerSettings settings;
};

// Exit status: 0 fine, 1 with a finding of severity error, 2 for unreadable input or a wrong argument.
[[nodiscard]] int run_plan(const PlanOptions& options, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace gso
