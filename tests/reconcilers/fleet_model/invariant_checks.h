// The invariants S1 to S9 and L1 of the design as checks over a FleetModel: before a plan is applied, while it is
// applied, and once the fleet is at rest. Failures are reported to GoogleTest; SCOPED_TRACE names the story.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

// A patch that begins a change of a node.
[[nodiscard]] bool starts(const PlannedAction& planned);

// S1, S2, S3, S5, S7 and S8 of every action, against the fleet as it is before the plan is applied; starts inside
// maintenance windows only; the canary's size; revisions that failed are not tried again.
void check_plan(const FleetModel& fleet, const Plan& plan);

// The index that follows events and a new index (with the same known texts) make the same plan.
void check_same(const Plan& plan, const Plan& again);

// S4: no action from a world where any one of the stores has not synced.
void check_incomplete_views(const FleetModel& fleet);

// S9: installing, restarting or losing the operator's own state disrupts nothing.
void check_undisruptive(const Plan& plan, std::string_view when);

// Why the node is not up to date, by the names that people are shown: its phase, a finding, the status of its policy.
// Empty if nothing reports a reason.
[[nodiscard]] std::string named_reason(const FleetModel& fleet, const Plan& rest, const std::string& node);
// L1: every node runs and shows its profile, or a phase, finding or status says why not. `rest`: the plan of the fleet
// at rest.
void check_converged_or_named(const FleetModel& fleet, const Plan& rest);
// L1 as a condition, without the check of what a node shows.
[[nodiscard]] bool all_converged_or_named(const FleetModel& fleet, const Plan& rest);
// S6: nothing is planned for a fleet at rest, now and later.
void check_silent(FleetModel& fleet);

// Counts how often pods are replaced, over the whole story: feed it every action just before it is applied.
class RestartLedger {
 public:
  // No pod of a node is restarted twice in a row for one revision, except pods that had to be replaced again for a
  // reported reason (remediation, ReplaceAgain, ReloadFailed); none for a revision that the node has failed.
  void note(const FleetModel& fleet, const PlannedAction& planned);

 private:
  std::map<std::pair<std::string, std::string>, std::string> last_;  // (node, component) -> target.
};

}  // namespace gso::test
