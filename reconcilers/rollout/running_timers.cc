#include "reconcilers/rollout/running_timers.h"

#include <cstddef>
#include <set>

#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/deferrals.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/node_states.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/remediation.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/settling.h"

namespace gso {
namespace {

// Inputs that have settled stay settled while another gate is closed or no node is left to start.
void run_input_timers(Pass& pass) {
  std::set<std::size_t> installations;
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts)
    installations.insert(profile_rollout.installation);
  for (const std::size_t installation : installations) pass.run(settled_timer(pass, installation));
}

void run_differing_timers(Pass& pass) {
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    if (installation.announced) pass.run(differing_timer(installation));
  }
}

void run_drifting_timers(Pass& pass) {
  for (const std::string& name : pass.index.nodes_in(Bucket::repairable)) {
    const TimerKey drifts = drifting_timer(name, *pass.index.find(name));
    pass.ages.run(drifts, recorded_since(pass, drifts));
  }
}

void run_stalls_timers(Pass& pass) {
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const std::int64_t following = profile_rollout.tally.of(Phase::following_daemonset);
    if (following == 0) continue;
    const TimerKey stalls = stalls_timer(key, following);
    pass.ages.run(stalls, recorded_since(pass, stalls));
  }
}

void run_timers_beside_an_unreadable_record(Pass& pass) {
  if (pass.index.record_problem.empty()) return;
  run_text_timers(pass);
  run_loading_timers_of_all(pass);
}

// Last: a gate reads other timers.
void run_unsettled_timers(Pass& pass) {
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const Tally& nodes = profile_rollout.tally;
    const bool waits = nodes.of(Phase::pending) + nodes.moving() + nodes.repairable > 0;
    if (waits && rollout_of(pass, key).gate().gate == Gate::settling) pass.run(unsettled_timer(key));
  }
}

}  // namespace

void declare_timers(Pass& pass) {
  run_differing_timers(pass);  // A finding reads them, with a record or without one.
  if (!pass.index.record) return run_timers_beside_an_unreadable_record(pass);
  run_text_timers(pass);
  run_input_timers(pass);
  run_loading_timers(pass);
  run_drifting_timers(pass);
  run_stalls_timers(pass);
  run_hold_timers(pass);
  run_deferral_timers(pass);
  run_remediation_timers(pass);
  run_soaking_timers(pass);
  run_unsettled_timers(pass);
}

}  // namespace gso
