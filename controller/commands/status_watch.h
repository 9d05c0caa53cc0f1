// `status --watch`: the fleet as the operator's own watches see it, shown whenever what is shown changes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Writes one view; true when a node is Failed or Blocked. Called with a complete view only.
using ShowFleet = std::function<bool(const World& world, FleetIndex& index, const std::vector<std::string>& incomplete,
                                     std::ostream& out)>;

struct FleetWatch {
  k8s::Reader* client = nullptr;
  k8s::Clock* clock = nullptr;
  k8s::Signal* stop = nullptr;  // notify() ends it.
  PlannerSettings settings;
  ShowFleet show;
  std::string before_each;  // Written before each view but the first: clears a terminal, or parts documents.
  k8s::Duration batch = std::chrono::milliseconds(200);  // Changes within it make one view.
};

// Until `stop`. Level-based: a view is written when it differs from the one before, whatever changed; a server that is
// away leaves the last view standing. Exit status: that of the last view (0 or 1); 2 if watching Nodes or DaemonSets is
// forbidden.
boost::asio::awaitable<int> watch_fleet(FleetWatch watch, std::ostream* out, std::ostream* err);

}  // namespace gso
