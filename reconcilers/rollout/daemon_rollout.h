// The rollout of one template to standalone MPS daemons, as a pass has left it: what its SharingRollout reports. The
// planner of standalone/ fills it, and status/ writes it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

// The nodes of one policy and DaemonSet.
struct DaemonRollout {
  std::string target;  // controller-revision-hash of the newest template.
  std::int64_t total = 0;
  std::int64_t updated = 0;    // Serve with that template, and are in no change.
  std::int64_t in_change = 0;  // Without those that failed.
  std::int64_t pending = 0;    // Have an older template, and are not in a change yet.
  std::int64_t blocked = 0;    // The same, and somebody holds them.
  std::int64_t failed = 0;
  std::int64_t wave = 0;  // 0: the canary.
  GateState gate;         // Why no node starts.
  // Nodes that failed, are held or wait: as in the status of a SharingRollout.
  struct Row {
    std::string name;
    std::string_view state;
    std::string reason;
    std::string message;
  };
  std::vector<Row> nodes;
};
// Why it stops after nodes have failed, and what to do.
[[nodiscard]] inline std::string why_failed(const DaemonRollout& rollout) {
  std::vector<std::string> names;
  for (const DaemonRollout::Row& row : rollout.nodes) {
    if (row.state == kStateFailed) names.push_back(row.name);
  }
  return fmt::format("{}{} failed. Correct the chart's standaloneMps values (helm upgrade), or the node",
                     counted(rollout.failed, "node"), names.empty() ? "" : fmt::format(" ({})", first_names(names)));
}
using DaemonRollouts = std::map<RolloutKey, DaemonRollout>;

}  // namespace gso
