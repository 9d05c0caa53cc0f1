// `rollout status --wait`: whether what a script waits for has happened.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/rollout/view.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct WaitState {
  enum class Is {
    waiting,
    complete,  // Every node that is meant shows its target, or is held by somebody, or drifted before the operator
               // came.
    stopped,   // The revision failed, or a person ended its rollout: nothing continues by itself.
  } is = Is::waiting;
  std::string why;  // One line.
};

// `name`: of a SharingRollout, "policy/NAME", or empty for all. Judged by what the nodes show and not by statuses
// alone: between an edit and its SharingRollout, nodes are Pending. Pauses, approvals and closed windows are waited
// for. `index` is refreshed.
[[nodiscard]] WaitState wait_state(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                   k8s::WallTime now, const std::string& name);
// The same with a pass over that index, for a command that has one.
[[nodiscard]] WaitState wait_state(ReadingPass& pass, const FleetIndex& index, const std::string& name);

// "rollout x", "policy y", "all rollouts": what somebody waits for who has given that name.
[[nodiscard]] std::string waited_for(const std::string& name);

// "node gpu-1 (Draining): waits for team-a/train-0": the first nodes in a change among those that are waited for.
[[nodiscard]] std::vector<std::string> steps_of_waited(const World& world, FleetIndex& index,
                                                       const PlannerSettings& settings, k8s::WallTime now,
                                                       const std::string& name);

// Why failed nodes stop the rollout although its status names another stop, a pause for example: to end that alone
// starts no node. Empty: they do not, or the status says so.
[[nodiscard]] std::string failures_behind(ReadingPass& pass, const RolloutFacts& facts);
// The first rollout that nodes wait for and that only a retry, or another profile, continues; empty: none. `policy`:
// its rollouts alone.
[[nodiscard]] std::string stopped_rollout(ReadingPass& pass, const std::optional<std::string>& policy);

// One line for each rollout in progress and each policy that waits without one, without times: what a log shows when it
// changes. `name` as above.
[[nodiscard]] std::vector<std::string> progress_lines(const World& world, FleetIndex& index,
                                                      const PlannerSettings& settings, k8s::WallTime now,
                                                      const std::string& name);

}  // namespace gso
