// `rollout status --watch` and `--wait`: a live tree of rollouts, their waves and their nodes on a terminal, a line for
// each change elsewhere.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <set>
#include <string>
#include <vector>

#include "controller/commands/live/live_screen.h"
#include "controller/commands/live/view.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/command.h"
#include "controller/commands/shared/screen.h"
#include "controller/config/options.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Exit status: 0 complete, 1 stopped, 2 the cluster cannot be read or an argument is wrong, 3 timed out; with --watch
// alone 0 when it is interrupted.
[[nodiscard]] int watch_rollouts(const RolloutOptions& rollout, const Options& options, std::ostream& out,
                                 std::ostream& err);

// The same on a given client, until `stop`. `live`: where the tree is shown; null: a line for each change is written.
boost::asio::awaitable<int> watch_rollouts_until(k8s::Reader* client, k8s::Clock* clock, k8s::Signal* stop,
                                                 RolloutOptions rollout, NodeFilter only, PlannerSettings settings,
                                                 LiveScreen* live, std::ostream* out, std::ostream* err);

// The lines that were not among the last ones.
class NewLines {
 public:
  [[nodiscard]] std::string of(const std::vector<std::string>& lines);

 private:
  std::set<std::string> seen_;
};

// --- The tree.

// What to show: `name` of a SharingRollout, "policy/NAME", or empty for all in progress.
struct TreeScope {
  std::string name;
  NodeFilter only{};
};
// Nodes in a change first, each with its step and the pods that block it; then failed, blocked, held and pending ones;
// those with nothing to do are counted. Lines fit the screen's columns. `index` is refreshed.
[[nodiscard]] std::vector<LiveLine> rollout_tree(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                                 const TreeScope& scope, k8s::WallTime now, const Screen& screen);

}  // namespace gso
