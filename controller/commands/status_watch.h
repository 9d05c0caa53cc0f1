// `status --watch`, `rollout status --watch` and `--wait`: the fleet as the operator's own watches see it, shown
// whenever what is shown changes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/live/view.h"
#include "controller/commands/shared/print.h"
#include "controller/reading/operator_lease.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// One look at the fleet: complete but for what `incomplete` names.
struct FleetLook {
  const World& world;
  FleetIndex& index;                // Refreshed.
  const PlannerSettings& settings;  // Those of the operator (settings_of_operator()).
  k8s::WallTime now;
  std::vector<std::string> incomplete = {};
  OperatorPresence presence = {};
  bool assumed = false;  // The fleet has no record: assume_baseline() took its place.
  // Among `incomplete`: why this view is older than it could be. Empty: the API server answers.
  std::string outage = {};
};
struct FleetView {
  std::vector<LiveLine> lines;
  int exit_status = 0;
  bool last = false;  // The watch ends.
};
// Makes one view. `room`: what lines have room for; it is no terminal where they are as long as they are.
using ShowFleet = std::function<FleetView(const FleetLook& look, const Screen& room)>;

struct FleetWatch {
  k8s::Reader* client = nullptr;
  k8s::Clock* clock = nullptr;
  k8s::Signal* stop = nullptr;  // notify() ends it.
  PlannerSettings settings;
  ShowFleet show{};
  std::string_view command = "status";  // Begins messages.
  std::string before_each{};            // Written before each view but the first, where there are no pages.
  bool only_news = false;  // Of each view only the lines that the one before had not, where there are no pages.
  // Views are written as pages, for example of a terminal: the page of the last view. Null: views as they are.
  std::function<std::string()> page{};
  k8s::Duration batch = std::chrono::milliseconds(200);  // Changes within it make one view.
  k8s::ObjectKey lease{};                                // Of the operator; without a name it is not looked at.
  std::optional<k8s::Duration> timeout{};                // The watch ends with kTimedOut then.
  std::function<void(std::ostream& err)> timed_out{};    // Says so. Can be null.
  std::optional<k8s::Duration> redraw{};                 // Pages at least that often: they have durations.
  k8s::Signal* look_again = nullptr;                     // notify() makes a view: what it is made for has changed.
  // A fleet without a record is shown as one whose nodes were just recorded, as the commands that look once show it.
  bool assumes_baseline = false;
};
inline constexpr int kTimedOut = 3;

// Until `stop`, the timeout or a last view. Level-based: a view is written when it differs from the one before,
// whatever changed; a server that is away leaves the last view standing. Exit status: that of the last view; 2 if
// watching Nodes or DaemonSets is forbidden.
boost::asio::awaitable<int> watch_fleet(FleetWatch watch, std::ostream* out, std::ostream* err);

}  // namespace gso
