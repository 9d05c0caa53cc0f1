// What /metrics shows of the nodes, kept up to date as they change: a page of a fleet of any size costs the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "reconcilers/node/assess.h"

namespace gso {

// Of the nodes that a plugin serves.
struct ShownSums {
  using Counts = std::map<std::string, std::int64_t, std::less<>>;
  using Names = std::set<std::string>;
  Counts states;                                        // By state_name().
  std::map<std::string, Counts, std::less<>> profiles;  // "<configmap>/<key>" of the target -> nodes by state_name().
  std::map<std::string, Names, std::less<>> reasons;    // Why they are Blocked or Held -> nodes.
  Names failed;                                         // In the phase that people see.
  Names drifting;                                       // They showed their profile at the baseline.

  // Adds a node (sign 1), or subtracts it (sign -1). What has become zero or empty is removed.
  void add(const std::string& name, const NodeAssessment& assessment, std::int64_t sign);
};

}  // namespace gso
