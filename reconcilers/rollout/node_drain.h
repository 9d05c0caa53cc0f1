// A node that loses GPU clients before it changes, whatever the change is: what the choice of the pods to evict, and
// the report of those that stay, need to know.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

struct NodeDrain {
  std::string node;
  const SharingPolicy* policy = nullptr;  // Never null.
  Drain until = Drain::idle;
  const NodeExpectation* afterwards = nullptr;  // What it will serve; null: what it serves now.
  std::map<std::string, std::int64_t> serves;   // How many of each resource it certainly serves then.
  // When its change began to wait for its pods; nullopt: no change is in progress.
  std::optional<WallTime> since;
};
// For the change of its profile, in progress or about to begin.
[[nodiscard]] NodeDrain node_drain_of(const Pass& pass, const std::string& node, const NodeAssessment& assessment);

}  // namespace gso
