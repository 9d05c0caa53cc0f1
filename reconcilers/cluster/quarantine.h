// Nodes that a remediation system has taken out of service, recognised by its labels and taints: while a node has one,
// that system holds the node, and the operator neither starts a change on it nor repairs it. The table in quarantine.cc
// has the source of each mark.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/objects.h"

namespace gso {

struct Quarantine {
  std::string_view by;  // Which system set the mark, and its meaning: "NVSentinel has quarantined the node".
  std::string mark;     // "label dgxc.nvidia.com/nvsentinel-state=draining"
};

// The first mark of the table that the node has; nullopt: none.
[[nodiscard]] std::optional<Quarantine> quarantine_of(const Node& node);

}  // namespace gso
